"""True figures: what the senders sent, and how long each job waited for its start.

Every wait was measured by the worker that got the job. A job that has waited longer than
it may counts as a broken promise, started or not.
"""

from collections import Counter, deque
from typing import Final

import msgspec

from headway.cli.demo.story import Story

RECENT_S: Final = 30.0
RATE_S: Final = 5.0
HISTORY: Final = 40


class Started(msgspec.Struct, frozen=True):
    at_s: float
    tenant: str
    waited_ms: int
    is_kept: bool


class LaneFigures:
    """One lane: what waits in it, and what has started."""

    def __init__(self, queue: str, slo_ms: int) -> None:
        self.queue = queue
        self.slo_ms = slo_ms
        self.sent = 0
        self.started = 0
        self.kept = 0
        self.expected_ms: int | None = None
        """What the server has told the newest job."""
        self.waiting: dict[int, tuple[str, int]] = {}
        """Tenant and time of sending by number, oldest first."""
        self.recent: deque[Started] = deque()
        self.arrived: deque[float] = deque()
        self.waits_ms: Counter[int] = Counter()
        self.history: deque[float] = deque(maxlen=HISTORY)
        """The oldest wait as a share of the promise, a second apart."""

    def oldest_ms(self, now_ms: int) -> int:
        for _, sent_ms in self.waiting.values():
            return max(0, now_ms - sent_ms)
        return 0

    def late(self, now_ms: int) -> Counter[str]:
        """Jobs that wait and are past their promise, by tenant."""
        found: Counter[str] = Counter()
        for tenant, sent_ms in self.waiting.values():
            if now_ms - sent_ms <= self.slo_ms:
                break
            found[tenant] += 1
        return found

    def share_kept(self, now_ms: int) -> float | None:
        """Of all jobs whose promise is decided."""
        decided = self.started + self.late(now_ms).total()
        return self.kept / decided if decided else None

    def share_recent(self, now_ms: int) -> float | None:
        """The same of what started lately, and of what is late now."""
        decided = len(self.recent) + self.late(now_ms).total()
        kept = sum(start.is_kept for start in self.recent)
        return kept / decided if decided else None

    def rates(self, now_s: float, elapsed_s: float) -> tuple[float, float]:
        """Jobs that came, and jobs that started, a second; of the last seconds."""
        over_s = max(1.0, min(RATE_S, elapsed_s))
        since_s = now_s - over_s
        came = sum(1 for at_s in reversed(self.arrived) if at_s > since_s)
        started = sum(1 for start in self.recent if start.at_s > since_s)
        return came / over_s, started / over_s

    def percentile_ms(self, share: float) -> int:
        """Of the waits of what has started."""
        left = share * self.waits_ms.total()
        for waited_ms in sorted(self.waits_ms):
            left -= self.waits_ms[waited_ms]
            if left <= 0:
                return waited_ms
        return 0

    def emptied(self, before_ms: int) -> None:
        """The server has none of them left: those of before were cancelled."""
        gone = [n for n, (_, sent_ms) in self.waiting.items() if sent_ms < before_ms]
        for number in gone:
            del self.waiting[number]

    def forget(self, now_s: float) -> None:
        while self.recent and self.recent[0].at_s < now_s - RECENT_S:
            self.recent.popleft()
        while self.arrived and self.arrived[0] < now_s - RECENT_S:
            self.arrived.popleft()


class Figures:
    """All lanes, fed with the lines that senders and workers report."""

    def __init__(self, told: Story) -> None:
        self.lanes = {
            lane.queue: LaneFigures(lane.queue, lane.slo_ms) for lane in told.lanes
        }
        self.ends: Counter[str] = Counter()
        self.started: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        """Of every tenant, from the beginning on."""
        self._early: set[int] = set()
        """Started before it was told that they were sent: two pipes, no order."""

    def tell(self, facts: list[object], now_s: float) -> None:
        """Takes one line in."""
        match facts:
            case ["sent", str(queue), str(tenant), int(number), int(sent_ms), wait_ms]:
                lane = self.lanes[queue]
                lane.sent += 1
                lane.arrived.append(now_s)
                lane.expected_ms = wait_ms if isinstance(wait_ms, int) else None
                if number in self._early:
                    self._early.remove(number)
                else:
                    lane.waiting[number] = (tenant, sent_ms)
            case ["start", str(queue), str(tenant), int(number), int(waited_ms)]:
                lane = self.lanes[queue]
                if lane.waiting.pop(number, None) is None:
                    self._early.add(number)
                is_kept = waited_ms <= lane.slo_ms
                lane.started += 1
                lane.kept += is_kept
                self.started[tenant] += 1
                self.kept[tenant] += is_kept
                lane.waits_ms[_rounded(waited_ms)] += 1
                lane.recent.append(Started(now_s, tenant, waited_ms, is_kept))
            case ["end", str(outcome)]:
                self.ends[outcome] += 1

    def tick(self, now_s: float) -> None:
        """Once a second: what is no longer recent goes, and history grows."""
        for lane in self.lanes.values():
            lane.forget(now_s)
            lane.history.append(lane.oldest_ms(int(now_s * 1_000)) / lane.slo_ms)

    def tenants(self, now_ms: int) -> dict[str, tuple[int, int, int]]:
        """Starts of late, how many of them kept, and what is late now; by tenant."""
        starts: Counter[str] = Counter()
        kept: Counter[str] = Counter()
        late: Counter[str] = Counter()
        for lane in self.lanes.values():
            late += lane.late(now_ms)
            for start in lane.recent:
                starts[start.tenant] += 1
                kept[start.tenant] += start.is_kept
        names = sorted(starts.keys() | late.keys())
        return {name: (starts[name], kept[name], late[name]) for name in names}


def _rounded(waited_ms: int) -> int:
    """To three digits, so that the counts stay few however long it runs."""
    step = 1
    while waited_ms // step >= 1_000:
        step *= 10
    return waited_ms // step * step
