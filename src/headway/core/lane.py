"""Lanes, strands, turns: who may go, and in which order.

A lane (one queue, one SLO) holds strands, a strand holds turns, a turn holds jobs.
Each keeps its members on a shelf, so a stopped strand or turn is one member away.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from headway.core.fairness import LaneClock, Tenancy
from headway.core.held import HeldClock
from headway.core.job import Job
from headway.core.shelf import DUE, FRESH, NEVER, OFF, Shelf
from headway.core.windows import WindowSet

if TYPE_CHECKING:
    from headway.core.limits import Gauge
    from headway.core.promise import Board
    from headway.core.queue import Queue

ENTITLED: Final = 0
OVER: Final = 1
"""The tier of turns whose tenant is above its fair share."""

SHED_ROWS: Final = 64
"""Late rows put aside at one go."""

Row = tuple[int, int, int, Job]


class Turn:
    """One tenant in a strand: its ready jobs in key order."""

    __slots__ = (
        "aim",
        "count",
        "home",
        "is_shedding",
        "late",
        "number",
        "parked_on",
        "rank",
        "rows",
        "seat",
        "strand",
        "tenancy",
        "tier",
    )

    def __init__(self, strand: "Strand", tenancy: Tenancy, number: int) -> None:
        self.strand = strand
        self.tenancy = tenancy
        self.number = number
        self.tier = ENTITLED
        self.rows: list[Row] = []
        """A heap; rows whose job has left are dropped when they surface."""
        self.late: list[Row] | None = None
        """Rows put aside: their promise was broken while their tenant was over."""
        self.is_shedding = False
        """Its tenant has more than its share can serve: late jobs step aside."""
        self.count = 0
        """Jobs that are really here."""
        self.parked_on: object | None = None
        """What stopped it: a gauge, a tenant's rule, or its head being asked about."""
        self.home: Shelf | None = None
        self.seat = OFF
        self.rank = -1
        self.aim = -1

    def add(self, key: tuple[int, int], job: Job) -> None:
        heappush(self.rows, (*key, job.seq, job))
        job.turn = self
        self.count += 1

    def head(self) -> Job | None:
        """The job to start next: of a tenant over its share, one still in time."""
        row = _first_row(self.rows, self)
        if self.late:
            late = _first_row(self.late, self)
            is_in_time_first = self.is_shedding and self.tier == ENTITLED
            if row is None or (not is_in_time_first and late is not None and late < row):
                row = late
        return None if row is None else row[3]

    def remove(self, job: Job) -> None:
        """The job leaves, from wherever it stands."""
        job.turn = None
        self.count -= 1
        if self.rows and self.rows[0][3] is job:
            heappop(self.rows)

    def due_ms(self, now_ms: int) -> int:
        """When its head is due; in the past if it has none."""
        job = self.head()
        if job is None:
            return -1
        held_ms = now_ms - self.strand.now(now_ms) + self.tenancy.rule.held_ms
        return job.run_at_ms + self.strand.lane.slo_ms + held_ms - job.shift_ms

    def shed(self, now_ms: int) -> None:
        """Puts aside what is late already, so that its share keeps other promises."""
        rows = self.rows
        slo_ms = self.strand.lane.slo_ms + self.tenancy.rule.held_ms
        for _ in range(SHED_ROWS):
            row = _first_row(rows, self)
            if row is None or row[3].run_at_ms - row[3].shift_ms + slo_ms > now_ms:
                return
            if self.late is None:
                self.late = []
            heappush(self.late, heappop(rows))

    def come_due(self, now_ms: int) -> None:
        assert self.home is not None
        self.home.put(self, DUE, self.rank, NEVER)

    def seat_at(self, now_ms: int) -> None:
        """Takes its place by its head; `now_ms` is in the time of its strand."""
        if self.is_shedding and self.tier == ENTITLED:
            self.shed(now_ms)
        job = self.head()
        strand = self.strand
        tier = strand.tier(self.tier)
        if job is None or self.parked_on is not None:
            if self.home is not None:
                self.home.off(self)
                tier.reseat()
            return
        tenancy = self.tenancy
        lane = strand.lane
        if self.home is None and tenancy.pass_ < lane.base:
            tenancy.pass_ = lane.base
        aim = job.run_at_ms - job.shift_ms + lane.aim_ms + tenancy.rule.held_ms
        if aim <= now_ms:
            tier.shelf.put(self, DUE, tenancy.pass_, NEVER)
        else:
            tier.shelf.put(self, FRESH, tenancy.pass_, aim)
        tier.reseat()

    def move_to(self, tier: int, now_ms: int) -> None:
        """Changes between entitled and over share; `now_ms` is the partition's."""
        if self.home is not None:
            self.home.off(self)
            self.strand.tier(self.tier).reseat()
        self.tier = tier
        self.seat_at(self.strand.now(now_ms))

    def lane_number(self) -> int:
        return self.strand.tier(self.tier).lane_tier.number

    def pass_now(self) -> int:
        return self.tenancy.pass_

    def units_wanted(self) -> int:
        job = self.head()
        return 0 if job is None else job.cost

    def is_standing(self) -> bool:
        return self.home is not None and not self.strand.holds

    def unpark(self, now_ms: int) -> None:
        self.parked_on = None
        self.seat_at(self.strand.now(now_ms))


def _first_row(rows: list[Row], turn: Turn) -> Row | None:
    """The first row whose job is still here; those before it are dropped."""
    while rows:
        if rows[0][3].turn is turn:
            return rows[0]
        heappop(rows)
    return None


WINDOW: Final = 1
KIND: Final = 2
"""Why a strand is held: its window is closed, its kind is paused."""


class Strand(HeldClock):
    """The part of a lane whose jobs can only be stopped together."""

    __slots__ = (
        "base",
        "closes_ms",
        "entitled",
        "gauges",
        "key",
        "kind",
        "lane",
        "over",
        "shape",
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
        self.windows: WindowSet | None = None
        self.closes_ms = NEVER
        """Until when its window is known to be open."""
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
        self.set_hold(reason, self.lane.queue.gate.time(now_ms), is_on=is_on)
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
            if tenancy.pass_ < self.strand.base:
                tenancy.pass_ = self.strand.base
            if tenancy.pass_ <= turn.rank:
                return turn
            # Its clock was moved on, by another of the tenant's turns or by a hold.
            shelf.put(turn, turn.seat, tenancy.pass_, turn.aim)

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
        "over",
        "queue",
        "ready",
        "slo_ms",
        "strands",
        "tenancies",
    )

    def __init__(self, queue: "Queue", slo_ms: int, clock: LaneClock) -> None:
        self.queue = queue
        self.slo_ms = slo_ms
        self.clock = clock
        self.is_exempt = False
        self.aim_ms = slo_ms
        """How long after it is ready a job reaches its aim: SLO less margin."""
        self.base = 0
        """Pass of the last start in this lane; never moves back."""
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
        while True:
            strand_tier: StrandTier | None = shelf.first()
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
