"""Lanes and strands: what can be stopped together, and who goes first in it.

A lane (one queue, one SLO) holds strands, a strand holds turns, a turn holds jobs.
Each keeps its members on a shelf, so a stopped strand or turn is one member away.
"""

from typing import TYPE_CHECKING, Final

from headway.core.fairness import LaneClock, Tenancy
from headway.core.held import HeldClock
from headway.core.shelf import DUE, NEVER, OFF, Shelf
from headway.core.turn import ENTITLED, OVER, Turn
from headway.core.windows import WindowSet

if TYPE_CHECKING:
    from headway.core.limits import Gauge
    from headway.core.promise import Board
    from headway.core.queue import Queue

WINDOW: Final = 1
KIND: Final = 2
TENANT: Final = 4
"""Why a strand is held: its window is closed, its kind or its tenant is paused."""


class Strand(HeldClock):
    """The part of a lane whose jobs can only be stopped together."""

    __slots__ = (
        "base",
        "closes_held_ms",
        "closes_ms",
        "entitled",
        "gauges",
        "key",
        "kind",
        "lane",
        "over",
        "shape",
        "tenant",
        "turns",
        "windows",
    )

    def __init__(self, lane: "Lane", key: tuple[object, ...], number: int) -> None:
        super().__init__()
        self.lane = lane
        self.key = key
        self.shape = 0
        """The version of its queue's rules by which its jobs were sorted."""
        self.kind: str | None = None
        """Its jobs' kind, where the queue's rules tell kinds apart."""
        self.tenant: str | None = None
        """Their tenant, where tenants have no turns of their own."""
        self.windows: WindowSet | None = None
        self.closes_ms = NEVER
        """Until when its window is known to be open."""
        self.closes_held_ms = 0
        """How long its queue had been held when that was found out."""
        self.gauges: tuple[Gauge, ...] = ()
        self.turns: dict[str, Turn] = {}
        self.base = 0
        """The lane's base when it was last let go: no turn starts below it."""
        self.entitled = StrandTier(self, lane.entitled, number)
        self.over: StrandTier | None = None

    def now(self, now_ms: int) -> int:
        """The partition's time in the time of this strand."""
        return self.time(self.lane.queue.gate.time(now_ms))

    def tier(self, which: int) -> "StrandTier":
        if which == ENTITLED:
            return self.entitled
        if self.over is None:
            self.over = StrandTier(self, self.lane.over_tier(), self.entitled.number)
        return self.over

    def hold(self, reason: int, now_ms: int, *, is_on: bool) -> None:
        """Stops it, or lets it go, for one of its reasons."""
        self._hold(reason, self.lane.queue.gate.time(now_ms), is_on=is_on)

    def hold_since(self, reason: int, queue_ms: int) -> None:
        """Stops it as of an earlier moment, in the time of its queue."""
        self._hold(reason, queue_ms, is_on=True)

    def _hold(self, reason: int, queue_ms: int, *, is_on: bool) -> None:
        self.set_hold(reason, queue_ms, is_on=is_on)
        self.base = self.lane.base
        self.entitled.reseat()
        if self.over is not None:
            self.over.reseat()


class StrandTier:
    """The entitled, or the over-share, turns of a strand."""

    __slots__ = (
        "aim",
        "home",
        "lane_tier",
        "number",
        "parked_on",
        "rank",
        "seat",
        "shelf",
        "strand",
    )

    def __init__(self, strand: Strand, lane_tier: "LaneTier", number: int) -> None:
        self.strand = strand
        self.lane_tier = lane_tier
        self.number = number
        self.shelf = Shelf()
        self.parked_on: object | None = None
        self.home: Shelf | None = None
        self.seat = OFF
        self.rank = -1
        self.aim = -1

    def first(self, now_ms: int) -> Turn | None:
        """The turn to go next; `now_ms` is in the time of the strand."""
        shelf = self.shelf
        shelf.settle(now_ms)
        while True:
            turn: Turn | None = shelf.first()
            if turn is None:
                return None
            tenancy = turn.tenancy
            if self.strand.lane.is_ranked:
                return turn
            if tenancy.pass_ < self.strand.base:
                tenancy.pass_ = self.strand.base
            if tenancy.pass_ <= turn.rank:
                return turn
            # Its clock was moved on, by another of the tenant's turns or by a hold.
            # The tenant's stale turns line up one stride apart, as they will go:
            # all at once they would be moved again at each of its starts.
            rank = tenancy.pass_ + tenancy.lag * tenancy.rule.stride
            tenancy.lag += 1
            shelf.put(turn, turn.seat, rank, turn.aim)

    def come_due(self, now_ms: int) -> None:
        self.shelf.settle(now_ms - self.strand.held_ms)
        self._place()

    def reseat(self) -> None:
        """Takes its place in the lane by its first turn, and the lane its own."""
        self._place()
        self.lane_tier.reseat()

    def lane_number(self) -> int:
        return self.lane_tier.number

    def pass_now(self) -> int:
        first: Turn | None = self.shelf.first()
        return 0 if first is None else first.rank

    def units_wanted(self) -> int:
        first: Turn | None = self.shelf.first()
        return 0 if first is None else first.units_wanted()

    def is_standing(self) -> bool:
        return self.home is not None

    def unpark(self, now_ms: int) -> None:
        self.parked_on = None
        self.strand.base = self.lane_tier.lane.base
        self.reseat()

    def _place(self) -> None:
        strand = self.strand
        shelf = self.lane_tier.shelf
        first: Turn | None = self.shelf.first()
        if first is None or strand.holds or self.parked_on is not None:
            shelf.off(self)
        else:
            aim = self.shelf.next_aim()
            if aim < NEVER:
                aim += strand.held_ms
            self.number = first.number
            shelf.put(self, first.seat, first.rank, aim)


class Lane:
    """The ready jobs of one queue and one SLO: the unit of promise.

    Jobs that no limit stops (critical, or holding their units already) have a lane
    of their own, so that a queue at its limit is out of the way as a whole.
    """

    __slots__ = (
        "aim_ms",
        "base",
        "clock",
        "entitled",
        "is_exempt",
        "is_ranked",
        "over",
        "queue",
        "ready",
        "slo_ms",
        "start_cost_ms",
        "start_interval_ms",
        "started_ms",
        "strands",
        "tenancies",
    )

    def __init__(self, queue: "Queue", slo_ms: int, clock: LaneClock) -> None:
        self.queue = queue
        self.slo_ms = slo_ms
        self.clock = clock
        self.is_exempt = False
        self.is_ranked = False
        """Its turns go by the keys of their heads, not by passes."""
        self.aim_ms = slo_ms
        """How long after it is ready a job reaches its aim: SLO less margin."""
        self.base = 0
        """Pass of the last start in this lane; never moves back."""
        self.start_cost_ms = 0
        """What a start cost when the aim was worked out."""
        self.started_ms = -1
        self.start_interval_ms = 0.0
        """Mean time between its newest starts; 0 until there were two."""
        self.ready = 0
        self.strands: dict[tuple[object, ...], Strand] = {}
        self.tenancies: dict[str, Tenancy] = {}
        self.entitled = LaneTier(self, ENTITLED, queue.shared.next_number())
        self.over: LaneTier | None = None

    def over_tier(self) -> "LaneTier":
        if self.over is None:
            self.over = LaneTier(self, OVER, self.queue.shared.next_number())
        return self.over

    def reseat(self) -> None:
        self.entitled.reseat()
        if self.over is not None:
            self.over.reseat()

    def post_on(self, board: "Board") -> None:
        """Shows a board that is new what the others show already."""
        for tier in (self.entitled, self.over):
            if tier is not None and tier.rank >= 0:
                board.post_due(tier)
            elif tier is not None and tier.aim >= 0:
                board.post_ahead(tier)


class LaneTier:
    """A lane as the boards see it: its entitled, or its over-share, strands."""

    __slots__ = ("aim", "boards", "is_due", "lane", "number", "rank", "shelf", "tier")

    def __init__(self, lane: Lane, tier: int, number: int) -> None:
        self.lane = lane
        self.tier = tier
        self.number = number
        self.shelf = Shelf()
        self.boards = lane.queue.boards
        self.is_due = False
        self.rank = -1
        """Its queue's pass as posted on the boards; -1 while it is not due."""
        self.aim = -1
        """Its aim as posted on the boards; -1 while it is due or has nothing."""

    def first(self, now_ms: int) -> Turn | None:
        """The turn to go next in this lane."""
        shelf = self.shelf
        now_ms -= self.lane.queue.gate.held_ms
        shelf.settle(now_ms)
        is_ranked = self.lane.is_ranked
        while True:
            strand_tier: StrandTier | None = (
                shelf.lowest() if is_ranked else shelf.first()
            )
            if strand_tier is None:
                return None
            turn = strand_tier.first(now_ms - strand_tier.strand.held_ms)
            if (
                turn is not None
                and turn.rank == strand_tier.rank
                and turn.seat == strand_tier.seat
            ):
                return turn
            strand_tier.come_due(now_ms)

    def come_due(self, now_ms: int) -> None:
        self.shelf.settle(now_ms - self.lane.queue.gate.held_ms)
        self.reseat()

    def reseat(self) -> None:
        """Posts on its boards what it has now."""
        first: StrandTier | None = self.shelf.first()
        lane = self.lane
        if first is None or lane.queue.gate.stops(lane):
            self.is_due = False
            self.rank = self.aim = -1
            return
        if first.seat == DUE or (lane.is_ranked and self.shelf.has_due()):
            clock = lane.clock
            if not self.is_due:
                clock.catch_up()
                self.is_due = True
                self.aim = -1
            if self.rank != clock.pass_:
                self.rank = clock.pass_
                for board in self.boards:
                    board.post_due(self)
            return
        aim = self.shelf.next_aim() + lane.queue.gate.held_ms
        if self.aim != aim:
            self.is_due = False
            self.rank = -1
            self.aim = aim
            for board in self.boards:
                board.post_ahead(self)
