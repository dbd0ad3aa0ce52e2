"""A turn: one tenant in a strand, with its ready jobs in key order."""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

import msgspec

from headway.core.fairness import Tenancy
from headway.core.job import Job
from headway.core.shelf import DUE, FRESH, NEVER, Member

if TYPE_CHECKING:
    from headway.core.lane import Strand
    from headway.core.limits import Gauge
    from headway.core.usage import Part

ENTITLED: Final = 0
OVER: Final = 1
"""The tier of turns whose tenant is above its fair share."""
SHED_ROWS: Final = 64
"""Late rows put aside at one go."""

LATE_MAX: Final = 256
"""Late rows put aside of a turn that memory does not hold whole."""
ROWS_NOTED: Final = 64
"""A turn with more jobs than this is looked at when memory is tidied up."""

Position = tuple[int, int, int]
"""Where a job stands in its turn: its keys and its seq."""
_encode: Final = msgspec.msgpack.Encoder().encode
NOTHING_READ: Final[Position] = (-(2**63), -(2**63), -(2**63))
Row = tuple[int, int, int, Job]


class Turn(Member):
    """One tenant in a strand: its ready jobs in key order."""

    __slots__ = (
        "beyond",
        "called_by",
        "count",
        "cut",
        "held_ms",
        "is_emptied",
        "is_shedding",
        "late",
        "parked_on",
        "place",
        "rows",
        "stopped",
        "strand",
        "tenancy",
        "tier",
    )

    def __init__(self, strand: "Strand", tenancy: Tenancy, number: int) -> None:
        super().__init__(number)
        self.strand = strand
        self.tenancy = tenancy
        self.tier = ENTITLED
        self.rows: list[Row] = []
        """A heap, up to `cut`; rows whose job has left are dropped when they surface."""
        self.late: list[Row] | None = None
        """Rows put aside: their promise was broken while their tenant was over."""
        self.is_shedding = False
        """Its tenant has more than its share can serve: late jobs step aside."""
        self.count = 0
        """Jobs that are really here."""
        self.cut: Position | None = None
        """Jobs whose key is above this may be missing: they are in the store only."""
        self.beyond: list[Row] | None = None
        """Rows of such jobs that came since memory was tidied up: they are here until
        they are in the store, and none of them is next."""
        self.is_emptied = False
        """It is among its queue's turns that were empty, at most once."""
        self.parked_on: object | None = None
        """What stopped it: a gauge, a held strand, the rule of a paused tenant, or the
        job about which a throttler is asked.
        """
        self.called_by: Gauge | None = None
        self.stopped: Part | None = None
        self.place: bytes | None = None
        """Under which name the owner writes its jobs, once it has."""
        self.held_ms = 0
        """How long its strand had been held when it took its place."""

    def add(self, key: tuple[int, int], job: Job) -> None:
        row = (*key, job.seq, job)
        job.turn = self
        self.count += 1
        # One that goes on after a wait is always in memory, and may go.
        if self.cut is not None and row[:3] > self.cut and not job.timeout_left_ms:
            if self.beyond is None:
                self.beyond = []
            self.beyond.append(row)
        else:
            heappush(self.rows, row)
            if self.count <= ROWS_NOTED:
                return
        shared = self.strand.lane.queue.shared
        if shared.is_bounded:
            shared.grown[self] = None

    def head(self) -> Job | None:
        """The job to start next: of a tenant over its share, one still in time."""
        row = _first_row(self.rows, self)
        if self.late:
            late = _first_row(self.late, self)
            is_in_time_first = self.is_shedding and self.tier == ENTITLED
            if row is None or (
                not is_in_time_first and late is not None and late < row
            ):
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

    def shed(self, now_ms: int) -> bool:
        """Puts aside what is late already, so that its share keeps other promises.

        Answers whether anything was; `now_ms` is in the time of the strand.
        """
        rows = self.rows
        slo_ms = self.strand.lane.slo_ms + self.tenancy.rule.held_ms
        is_shed = False
        if self.cut is not None and self.late and len(self.late) > LATE_MAX:
            # What can be in time may be millions of rows away.
            return False
        for _ in range(SHED_ROWS):
            row = _first_row(rows, self)
            if row is None or row[3].run_at_ms - row[3].shift_ms + slo_ms > now_ms:
                break
            if self.late is None:
                self.late = []
            heappush(self.late, heappop(rows))
            is_shed = True
        return is_shed

    def seat_at(self, now_ms: int) -> None:
        """Takes its place by its head; `now_ms` is in the time of its strand."""
        if self.is_shedding and self.tier == ENTITLED:
            self.shed(now_ms)
        job = self.head()
        strand = self.strand
        lane = strand.lane
        tier = lane.tier_of(self)
        if job is None or self.parked_on is not None:
            if self.home is not None:
                self.home.off(self)
                tier.reseat()
            return
        tenancy = self.tenancy
        rank = 0
        if lane.is_ranked:
            rank = lane.queue.rules.rank_of(job)
        elif tenancy.turns > 1:
            # Good enough for one tenant's own: ties go by the turns' numbers.
            rank = (job.priority << 48) + job.run_at_ms
        held_ms = strand.held_ms
        self.held_ms = held_ms
        aim = job.run_at_ms - job.shift_ms + lane.aim_ms + tenancy.rule.held_ms
        if aim <= now_ms:
            tier.put(self, DUE, rank, NEVER)
        else:
            # On the shelf turns of several strands meet, so in their queue's time.
            tier.put(self, FRESH, rank, aim + held_ms)
        tier.reseat()

    def lane_number(self) -> int:
        return self.strand.lane.tier_of(self).lane_tier.number

    def pass_now(self) -> int:
        return self.rank if self.strand.lane.is_ranked else self.tenancy.pass_

    def units_wanted(self) -> int:
        job = self.head()
        return 0 if job is None else job.cost

    def is_standing(self) -> bool:
        return self.home is not None and not self.strand.holds

    def unpark(self, now_ms: int) -> None:
        self.parked_on = None
        self.seat_at(self.strand.now(now_ms))


def read_to(turn: Turn, cut: Position | None) -> None:
    """Memory holds all up to there, with what has come since it was read."""
    turn.cut = cut
    beyond, turn.beyond = turn.beyond, None
    for row in beyond or ():
        if row[3].turn is turn:
            turn.count -= 1
            turn.add(row[:2], row[3])


def name_of(turn: Turn) -> bytes:
    """Under which its jobs are written. Turns of one tenant lie side by side."""
    if turn.place is None:
        turn.place = place_of(turn.tenancy.name, turn.strand.key)
        if turn.strand.lane.queue.rules.is_by_run_at:
            # In another order, and so apart from what is written in the usual one.
            turn.place = b"\xff" + turn.place
    return turn.place


def place_of(tenant: str, strand_key: tuple[Any, ...]) -> bytes:
    """The name under which the jobs of a turn are written."""
    name = tenant.encode("utf-8", "surrogatepass")
    return name if not strand_key else name + b"\0" + _encode(strand_key)


def _first_row(rows: list[Row], turn: Turn) -> Row | None:
    """The first row whose job is still here; those before it are dropped."""
    while rows:
        if rows[0][3].turn is turn:
            return rows[0]
        heappop(rows)
    return None
