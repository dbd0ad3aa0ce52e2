"""The gate of a queue: what stops all of its lanes at once."""

from typing import TYPE_CHECKING, Final

from headway.core.held import HeldClock
from headway.core.limits import Gauge

if TYPE_CHECKING:
    from headway.core.lane import Lane
    from headway.core.part import Part
    from headway.core.queue import Queue

PAUSED: Final = 1
"""By the user."""
BLOCKED: Final = 2
"""By the operator. The queue runs when neither is set."""


class Gate(HeldClock):
    """Pause, block, and a limit of the whole queue that is used up."""

    __slots__ = ("called_by", "cost", "number", "parked_on", "queue", "stopped")

    def __init__(self, queue: "Queue", number: int) -> None:
        super().__init__()
        self.queue = queue
        self.number = number
        self.parked_on: object | None = None
        """The gauge whose units the queue waits for."""
        self.called_by: Gauge | None = None
        self.stopped: Part | None = None
        self.cost = 0

    def stops(self, lane: "Lane") -> bool:
        """Whether nothing of this lane may start."""
        return bool(self.holds) or (self.parked_on is not None and not lane.is_exempt)

    def hold(self, reason: int, now_ms: int, *, is_on: bool) -> None:
        self.set_hold(reason, now_ms, is_on=is_on)
        self.queue.reseat()

    def leave(self, now_ms: int) -> None:
        """Whatever the queue waited for stops it no more."""
        gauge, self.parked_on = self.parked_on, None
        if isinstance(gauge, Gauge) and gauge.use is not None:
            gauge.use.free(self, now_ms)

    def lane_number(self) -> int:
        return 0

    def pass_now(self) -> int:
        return 0

    def units_wanted(self) -> int:
        return self.cost

    def is_standing(self) -> bool:
        return not self.holds and self.queue.ready > 0

    def unpark(self, now_ms: int) -> None:
        self.queue.reseat()
