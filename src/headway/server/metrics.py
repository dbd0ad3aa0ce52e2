"""An owner's measures as text that Prometheus reads.

Labels are bounded: queue, SLO and limit, never a tenant, and beyond a number of queues
or lanes one row for the others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from resource import getpagesize
from typing import Final

import msgspec

from headway.core.capacity import Wanted
from headway.runtime.measures import (
    BATCHES,
    COMMITS_US,
    DURATIONS_MS,
    Histogram,
    LaneMeasures,
    Measures,
    QueueMeasures,
)
from headway.server.metric_names import METRICS, Kind

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_STATM: Final = Path("/proc/self/statm")
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[str, float | None]
"""Labels, written out, and a value; None leaves the sample out."""
_DURATIONS: Final = tuple(repr(bound / 1e3) for bound in DURATIONS_MS)
_COMMITS: Final = tuple(repr(bound / 1e6) for bound in COMMITS_US)
_BATCHES: Final = tuple(str(bound) for bound in BATCHES)


class Memory(msgspec.Struct, frozen=True):
    """What the process holds, in bytes."""

    private: int
    """Resident and its own: heap and stacks, without mapped files."""
    resident: int


def memory_of_process() -> Memory:
    """As the kernel counts it: one read of a small file, and nothing to switch on."""
    _, resident, shared, *_ = map(int, _STATM.read_text().split())
    page = getpagesize()
    return Memory((resident - shared) * page, resident * page)


def exposition(
    measures: Measures,
    *,
    default_queue: str,
    memory: Memory,
    wanted: Wanted | None = None,
    over_rate: int = 0,
) -> bytes:
    """All metrics. Those without a prefix are of the default queue, if it is there."""
    text = Text()
    _write_lanes(text, measures.lanes)
    _write_queues(text, measures)
    _write_owner(text, measures)
    text.add(
        "headway_slots",
        [
            (labels(state="busy"), measures.slots_busy),
            (labels(state="idle"), measures.slots_idle),
        ],
    )
    text.one("headway_slots_wanted", None if wanted is None else wanted.slots)
    text.one("headway_requests_rate_limited_total", over_rate)
    _write_default(text, measures, default_queue)
    text.one("mem_bytes_heap", memory.private)
    text.one("mem_bytes_sys", memory.resident)
    return text.encode()


def labels(**values: str) -> str:
    """Labels as they are written; what their values hold breaks out of nothing."""
    pairs = (f'{name}="{_escape(value)}"' for name, value in values.items())
    return ",".join(pairs)


class Text:
    """Lines of the text, family by family."""

    def __init__(self, table: Mapping[str, tuple[Kind, str]] = METRICS) -> None:
        """The table says of each family what it is."""
        self._table = table
        self._lines: list[str] = []

    def add(self, name: str, samples: Iterable[Sample]) -> None:
        """A family of counters or gauges; none of it if it has no samples."""
        written = [
            f"{name}{{{own}}} {_number(value)}" if own else f"{name} {_number(value)}"
            for own, value in samples
            if value is not None
        ]
        if written:
            self._head(name)
            self._lines += written

    def one(self, name: str, value: float | None) -> None:
        self.add(name, [("", value)])

    def histogram(
        self,
        name: str,
        bounds: tuple[str, ...],
        rows: Iterable[tuple[str, Histogram]],
        per: float = 1.0,
    ) -> None:
        """A family of histograms; sums are divided by `per` to be in base units."""
        self._head(name)
        lines = self._lines
        for own, row in rows:
            comma = f"{own}," if own else ""
            count = 0
            for bound, more in zip(bounds, row.counts[:-1], strict=True):
                count += more
                lines.append(f'{name}_bucket{{{comma}le="{bound}"}} {count}')
            count += row.counts[-1]
            braced = f"{{{own}}}" if own else ""
            lines.append(f'{name}_bucket{{{comma}le="+Inf"}} {count}')
            lines.append(f"{name}_sum{braced} {_number(row.total / per)}")
            lines.append(f"{name}_count{braced} {count}")

    def encode(self) -> bytes:
        return ("\n".join(self._lines) + "\n").encode()

    def _head(self, name: str) -> None:
        kind, meaning = self._table[name]
        self._lines.append(f"# HELP {name} {meaning}")
        self._lines.append(f"# TYPE {name} {kind.value}")


_LANE_FAMILIES: Final[dict[str, Callable[[LaneMeasures], float]]] = {
    "headway_jobs_enqueued_total": lambda lane: lane.enqueued,
    "headway_jobs_started_total": lambda lane: lane.started,
    "headway_starts_in_time_total": lambda lane: lane.in_time,
    "headway_starts_late_total": lambda lane: lane.late,
    "headway_jobs_acked_total": lambda lane: lane.acked,
    "headway_jobs_retried_total": lambda lane: lane.retried,
    "headway_jobs_lost_total": lambda lane: lane.lost,
    "headway_jobs_buried_total": lambda lane: lane.buried,
    "headway_jobs_expired_total": lambda lane: lane.expired,
    "headway_jobs_cancelled_total": lambda lane: lane.cancelled,
    "headway_jobs_released_total": lambda lane: lane.released,
    "headway_lane_ready_jobs": lambda lane: lane.waiting.ready,
    "headway_lane_late_jobs": lambda lane: lane.waiting.late,
    "headway_lane_oldest_wait_seconds": lambda lane: lane.waiting.oldest_ms / 1e3,
    "headway_lane_is_sure": lambda lane: int(lane.waiting.is_sure),
    "headway_lane_arrivals_per_second": lambda lane: lane.per_s,
    "headway_lane_run_mean_seconds": lambda lane: lane.run_ms / 1e3,
}
_STATES: Final[dict[str, Callable[[QueueMeasures], int]]] = {
    "ready": lambda queue: queue.ready,
    "scheduled": lambda queue: queue.scheduled,
    "leased": lambda queue: queue.leased,
    "waiting": lambda queue: queue.waiting,
    "dead": lambda queue: queue.dead,
}


def _write_lanes(text: Text, lanes: tuple[LaneMeasures, ...]) -> None:
    named = [(labels(queue=x.queue, slo=_slo(x.slo_ms)), x) for x in lanes]
    for name, read in _LANE_FAMILIES.items():
        text.add(name, [(own, read(lane)) for own, lane in named])
    waits = [(own, lane.wait) for own, lane in named]
    text.histogram("headway_wait_seconds", _DURATIONS, waits, 1e3)
    runs = [(own, lane.run) for own, lane in named]
    text.histogram("headway_run_seconds", _DURATIONS, runs, 1e3)


def _write_queues(text: Text, measures: Measures) -> None:
    named = [(labels(queue=queue.name), queue) for queue in measures.queues]
    text.add("headway_queue_jobs", _by_state(measures.queues))
    bounds = [(own, queue.length_max) for own, queue in named]
    text.add("headway_queue_length_max", bounds)
    sizes = [(own, queue.enqueued_bytes) for own, queue in named]
    text.add("headway_queue_enqueued_bytes_total", sizes)
    replies = [(own, queue.replies_kept) for own, queue in named]
    text.add("headway_queue_replies_kept", replies)
    limits = [(labels(queue=x.queue, limit=x.limit), x) for x in measures.limits]
    text.add("headway_limit_used", [(own, limit.used) for own, limit in limits])
    text.add("headway_limit_max", [(own, limit.max) for own, limit in limits])
    throttlers = measures.throttlers
    verdicts = [
        (labels(queue=one.queue, verdict=verdict), count)
        for one in throttlers
        for verdict, count in sorted(one.verdicts.items())
    ]
    text.add("headway_throttler_verdicts_total", verdicts)
    errors = [
        (labels(queue=one.queue, error=error), count)
        for one in throttlers
        for error, count in sorted(one.errors.items())
    ]
    text.add("headway_throttler_errors_total", errors)


def _write_owner(text: Text, measures: Measures) -> None:
    commits = measures.commits
    text.one("headway_commits_total", commits.commits)
    text.one("headway_commit_rows_total", commits.rows)
    text.histogram("headway_commit_seconds", _COMMITS, [("", commits.time_us)], 1e6)
    text.histogram("headway_batch_commands", _BATCHES, [("", commits.batch)])
    late = [("", measures.tick_late)]
    text.histogram("headway_tick_late_seconds", _DURATIONS, late, 1e3)
    text.one("headway_ticks_skipped_total", measures.ticks_skipped)
    fates = [(labels(fate=fate), n) for fate, n in sorted(measures.replies.items())]
    text.add("headway_replies_unclaimed_total", fates)
    text.one("headway_memory_jobs", measures.jobs_in_memory)
    text.one("headway_memory_jobs_max", measures.jobs_in_memory_max)
    text.one("headway_memory_turns", measures.turns_in_memory)
    text.one("headway_store_bytes", measures.store_bytes)
    text.one("headway_store_log_bytes", measures.log_bytes)


def _write_default(text: Text, measures: Measures, name: str) -> None:
    queue = next((x for x in measures.queues if x.name == name), None)
    if queue is None:
        queue = QueueMeasures(name=name)
    ever = sum(lane.enqueued for lane in measures.lanes if lane.queue == name)
    text.one("queued_messages", queue.ready)
    text.one("delayed_messages", queue.scheduled)
    text.one("queue_max_len", queue.length_max or 0)
    text.one("total_queued_messages", ever)
    text.one("queued_messages_size", queue.enqueued_bytes)


def _by_state(queues: tuple[QueueMeasures, ...]) -> Iterator[Sample]:
    for queue in queues:
        for state, read in _STATES.items():
            yield labels(queue=queue.name, state=state), read(queue)


def _slo(slo_ms: int) -> str:
    """In seconds and exact, or two lanes might look like one; none of the others."""
    return f"{slo_ms / 1e3!r}".removesuffix(".0") if slo_ms else ""


def _escape(value: str) -> str:
    return value.translate(_ESCAPES)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
