"""Lanes: the ready jobs of one queue and one SLO, and who goes first among them.

A lane holds tenancies in order of pass, a tenancy holds its turns in order of key, a
turn holds jobs. A turn lies in one strand, which says what stops it. Whatever can't go
on leaves the order as a whole and waits where it was stopped.
"""

from typing import TYPE_CHECKING, Final

from headway.core.fairness import LaneClock, Tenancy
from headway.core.shelf import DUE, Shelf
from headway.core.strand import Strand
from headway.core.turn import ENTITLED, NOTHING_READ, OVER, Turn, name_of

if TYPE_CHECKING:
    from headway.core.promise import Board
    from headway.core.queue import Queue


class TenancyTier(Shelf[Turn]):
    """The shelf of one tenant's entitled, or over-share, turns in a lane."""

    __slots__ = ("lane_tier", "tenancy")

    def __init__(self, tenancy: Tenancy, lane_tier: "LaneTier", number: int) -> None:
        super().__init__(number)
        self.tenancy = tenancy
        self.lane_tier = lane_tier

    def next_turn(self, queue_ms: int) -> Turn | None:
        """The turn to go next, in the time of the queue."""
        self.settle(queue_ms)
        return self.lowest() if self.lane_tier.lane.is_ranked else self.first()

    def come_due(self, now_ms: int) -> None:
        self.settle(now_ms)
        self._place()

    def reseat(self) -> None:
        """Takes its place in the lane by its turns, and the lane its own."""
        was_away = self.home is None
        self._place()
        if not was_away or self.lane_tier.is_moved_by(self):
            self.lane_tier.reseat()

    def _place(self) -> None:
        first = self.first()
        lane_shelf = self.lane_tier.shelf
        if first is None:
            lane_shelf.off(self)
            return
        tenancy = self.tenancy
        base = self.lane_tier.lane.base
        if self.home is None and tenancy.pass_ < base:
            # Nobody gets credit for time in which it had nothing to start.
            tenancy.pass_ = base
        lane_shelf.put(self, first.seat, tenancy.pass_, self.next_aim())


TURNS_SURE: Final = 1_024
"""In a round that has met more turns than this, many more are to be expected."""
TURNS_BELOW: Final = 128
"""With fewer turns than this to choose from, or to be served yet, a round is read on."""


class Cold:
    """Turns of a lane that are in the store only, and how far they were read.

    They are read in the order of their names, round after round. In a round everybody
    is served up to the same pass: who was served waits until the round has been read.
    """

    __slots__ = (
        "after",
        "fresh",
        "is_clean",
        "is_idle",
        "is_read",
        "lane",
        "met",
        "met_before",
        "pass_",
    )

    def __init__(self, lane: "Lane") -> None:
        self.lane = lane
        self.pass_ = lane.base
        self.after: bytes | None = None
        """The last turn that was read in this round; None at its beginning."""
        self.fresh: dict[Turn, None] = {}
        """Turns that were read in this round, and of which nothing has left since."""
        self.is_read = False
        """The round has been read to its end."""
        self.is_clean = True
        """Everything that was met in this round is in memory."""
        self.is_idle = False
        """A whole round let nothing start: there is no use in another one yet."""
        self.met = 0
        """Turns that were read in this round."""
        self.met_before = -1
        """All that were read in the round before; -1 in the first."""

    def is_many(self, turns_max: int) -> bool:
        """Whether there seem to be more turns than memory may hold.

        In a round one job of a turn is served. Where all turns can be known a second
        one is worth its reading: it tells whether there are more, and the turn does
        not run dry before the next round.
        """
        if self.met_before < 0:
            return self.met >= TURNS_SURE
        return self.met_before > turns_max

    def holds_back(self, pass_: int) -> bool:
        """Whether others are to be read before one of this pass is served."""
        if self.is_read:
            if pass_ <= self.pass_:
                return False
            self._begin(pass_)
        elif pass_ <= self.pass_ and not self.lane.is_ranked:
            return False
        self.want()
        return True

    def expect(self, turn: Turn) -> None:
        """Of this turn nothing was read: the round under way meets it, or the next."""
        if self.after is not None and name_of(turn) <= self.after:
            self.is_clean = False
        self.is_idle = False
        if self.lane.entitled.shelf.size == 0:
            # Else there is enough to start, and the round goes on after that.
            self.want()

    def one_left(self, turn: Turn) -> None:
        """A job has left: the round is read on before a batch runs out of turns.

        Of those to choose from many may have been served already, and of those that
        were not, many may be stopped by a limit.
        """
        self.is_idle = False
        fresh = self.fresh
        if turn in fresh:
            del fresh[turn]
        if self.is_read:
            return
        if len(fresh) < TURNS_BELOW or self.lane.entitled.shelf.size < TURNS_BELOW:
            self.lane.queue.shared.reads[self.lane] = None

    def want(self) -> None:
        """Asks for more to be read, unless it would be to no use."""
        if self.is_read and not self.is_idle:
            self._begin(self.pass_)
            self.is_idle = True
        if not self.is_read:
            self.lane.queue.shared.reads[self.lane] = None

    def _begin(self, pass_: int) -> None:
        self.pass_ = pass_
        self.after = None
        self.is_read = False
        self.is_clean = True
        self.fresh.clear()
        self.met_before, self.met = self.met, 0


def read_anew(lane: "Lane") -> None:
    """Nothing is known any more of what the store has of this lane."""
    lane.cold = Cold(lane)
    for strand in lane.strands.values():
        for turn in strand.turns.values():
            turn.cut = NOTHING_READ
    lane.cold.want()


class Lane:
    """The ready jobs of one queue and one SLO: the unit of promise.

    Jobs that no limit stops (critical, or holding their units already) have a lane
    of their own, so that a queue at its limit is out of the way as a whole.
    """

    __slots__ = (
        "aim_ms",
        "base",
        "by_value",
        "clock",
        "cold",
        "common",
        "entitled",
        "going",
        "is_exempt",
        "is_ranked",
        "over",
        "place",
        "queue",
        "ready",
        "slo_ms",
        "start_cost_ms",
        "start_interval_ms",
        "started_ms",
        "strands",
        "tenancies",
        "top",
    )

    def __init__(self, queue: "Queue", slo_ms: int, clock: LaneClock) -> None:
        self.queue = queue
        self.slo_ms = slo_ms
        self.clock = clock
        self.is_exempt = False
        self.is_ranked = False
        """Its jobs go by their keys alone: a turn that is due does not go before."""
        self.aim_ms = slo_ms
        """How long after it is ready a job reaches its aim: SLO less margin."""
        self.base = 0
        """Pass of the last start in this lane; never moves back."""
        self.top = 0
        """The highest pass that a start has left: the base once the lane is empty."""
        self.start_cost_ms = 0
        """What a start cost when the aim was worked out."""
        self.started_ms = -1
        self.start_interval_ms = 0.0
        """Mean time between its newest starts; 0 until there were two."""
        self.ready = 0
        self.going = 0
        """Of the ready ones, those that go on after a wait: they are always in memory."""
        self.place = 0
        """Under which number the owner writes its jobs; 0 until it has."""
        self.cold: Cold | None = None
        """What of it is in the store only; None while memory knows all of its turns."""
        self.strands: dict[tuple[object, ...], Strand] = {}
        self.common: Strand | None = None
        """That of jobs of which nothing is said that would tell them apart."""
        self.by_value: dict[str, Strand] = {}
        """Those that one value tells apart: for each job a key would have to be made."""
        self.tenancies: dict[str, Tenancy] = {}
        self.entitled = LaneTier(self, ENTITLED, queue.shared.next_number())
        self.over: LaneTier | None = None

    def tier_of(self, turn: Turn) -> TenancyTier:
        """Where the turn takes its place."""
        tenancy = turn.tenancy
        if turn.tier == ENTITLED:
            tier = tenancy.entitled
            if tier is None:
                tier = TenancyTier(tenancy, self.entitled, turn.number)
                tenancy.entitled = tier
            return tier
        if tenancy.over is None:
            if self.over is None:
                self.over = LaneTier(self, OVER, self.queue.shared.next_number())
            tenancy.over = TenancyTier(tenancy, self.over, turn.number)
        return tenancy.over

    def forget(self, strand: Strand) -> None:
        """Nothing is left of the strand."""
        key = strand.key
        if self.strands.get(key) is strand:
            del self.strands[key]
        if self.common is strand:
            self.common = None
        if len(key) == 2 and self.by_value.get(str(key[1])) is strand:
            del self.by_value[str(key[1])]

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
    """A lane as the boards see it: its entitled, or its over-share, tenancies."""

    __slots__ = ("aim", "boards", "is_due", "lane", "number", "rank", "shelf", "tier")

    def __init__(self, lane: Lane, tier: int, number: int) -> None:
        self.lane = lane
        self.tier = tier
        self.number = number
        self.shelf: Shelf[TenancyTier] = Shelf(number)
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
        while True:
            tier = shelf.first()
            if tier is None:
                return None
            turn = tier.next_turn(now_ms)
            if turn is not None and tier.tenancy.pass_ == tier.rank:
                return turn
            # Its clock was moved on by its other tier.
            tier.come_due(now_ms)

    def come_due(self, now_ms: int) -> None:
        self.shelf.settle(now_ms - self.lane.queue.gate.held_ms)
        self.reseat()

    def is_moved_by(self, tier: TenancyTier) -> bool:
        """Whether one that has joined changes what is posted on its boards."""
        if self.is_due:
            return self.rank != self.lane.clock.pass_
        held_ms = self.lane.queue.gate.held_ms
        return self.aim < 0 or tier.seat == DUE or tier.aim + held_ms < self.aim

    def reseat(self) -> None:
        """Posts on its boards what it has now."""
        first = self.shelf.first()
        lane = self.lane
        is_stopped = lane.queue.gate.stops(lane)
        if first is None or is_stopped:
            if lane.cold is not None and not is_stopped:
                lane.cold.want()
            self.is_due = False
            self.rank = self.aim = -1
            return
        if first.seat == DUE:
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
