"""A board that looks at every lane, by whatever urgency a policy has."""

from collections.abc import Callable

from headway.core.entitlement import Ledger
from headway.core.lane import LaneTier
from headway.core.promise import Board

Urgency = Callable[[int, int, int], float]
"""SLO, time at which the oldest became ready, now: the lowest goes first."""


class ScanBoard(Board):
    """Looks at every lane for each start: simple, slow, and only for comparison."""

    def __init__(
        self,
        urgency: Urgency,
        key: tuple[str, ...] | None,
        stirred: dict[Board, None],
    ) -> None:
        super().__init__(key, stirred)
        self._urgency = urgency
        self._posted: dict[LaneTier, None] = {}

    def post_due(self, lane: LaneTier) -> None:
        self._posted[lane] = None
        if self.waiters:
            self._stirred[self] = None

    def post_ahead(self, lane: LaneTier) -> None:
        self.post_due(lane)

    def pick(self, now_ms: int, ledger: Ledger) -> LaneTier | None:
        best: tuple[float, int] | None = None
        chosen: LaneTier | None = None
        for lane in self._posted:
            if lane.rank < 0 and lane.aim < 0:
                continue
            turn = lane.first(now_ms)
            job = None if turn is None else turn.head()
            if job is None:
                return lane
            ready_ms = job.run_at_ms
            key = (self._urgency(lane.lane.slo_ms, ready_ms, now_ms), lane.number)
            if best is None or key < best:
                best, chosen = key, lane
        return chosen
