"""What a node counts of itself, as text that Prometheus reads."""

import time
from bisect import bisect_left
from collections import Counter

from headway.runtime.measures import DURATIONS_MS, Histogram
from headway.server.cluster.peers import NotSent, PeerFailure
from headway.server.metric_names import NODE_METRICS
from headway.server.metrics import Text, labels

BOUNDS = tuple(repr(bound / 1e3) for bound in DURATIONS_MS)


class Meter:
    """Counts from the start of its process; all on the loop."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.renewals_missed = 0
        self.opened = 0
        self.handed_over = 0
        self.lost = 0
        self.forwarded = 0
        self._errors: Counter[str] = Counter(not_sent=0, lost=0)
        self._counts = [0] * (len(DURATIONS_MS) + 1)
        self._total_ms = 0.0

    def failed(self, error: PeerFailure) -> None:
        """Another node could not be asked, or has not answered."""
        self._errors["not_sent" if isinstance(error, NotSent) else "lost"] += 1

    def answered(self, began_s: float) -> None:
        """Another node has answered what it need not hold back; began by `now_s`."""
        spent_ms = (now_s() - began_s) * 1_000
        self._counts[bisect_left(DURATIONS_MS, spent_ms)] += 1
        self._total_ms += spent_ms

    def text(self, lease_left_s: float, partitions: int) -> bytes:
        own = labels(node=self._node)
        text = Text(NODE_METRICS)
        for name, value in (
            ("lease_left_seconds", max(0.0, lease_left_s)),
            ("partitions", partitions),
            ("renewals_missed_total", self.renewals_missed),
            ("opened_total", self.opened),
            ("handovers_total", self.handed_over),
            ("lost_total", self.lost),
            ("forwarded_total", self.forwarded),
        ):
            text.add(f"headway_node_{name}", [(own, value)])
        times = Histogram(tuple(self._counts), self._total_ms)
        text.histogram("headway_node_forward_seconds", BOUNDS, [(own, times)], 1e3)
        text.add(
            "headway_node_peer_errors_total",
            [
                (labels(node=self._node, outcome=outcome), count)
                for outcome, count in sorted(self._errors.items())
            ],
        )
        return text.encode()


def now_s() -> float:
    return time.perf_counter()
