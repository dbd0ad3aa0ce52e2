"""A turn: one tenant in a strand, with its ready jobs in key order."""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

import msgspec

from headway.core.fairness import Tenancy
from headway.core.job import Job
from headway.core.shelf import DUE, FRESH, NEVER, Member

if TYPE_CHECKING:
    from mypy_extensions import i64

    from headway.core.limits import Gauge
    from headway.core.part import Hold, Part
    from headway.core.strand import Strand

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
        "back",
        "beyond",
        "called_by",
        "count",
        "cut",
        "emptied_after",
        "emptied_before",
        "front",
        "held_ms",
        "holds",
        "holds_as_of",
        "is_emptied",
        "is_shedding",
        "last_first",
        "last_second",
        "last_seq",
        "late",
        "odd",
        "parked_on",
        "place",
        "stopped",
        "strand",
        "tenancy",
        "tier",
    )

    def __init__(self, strand: "Strand", tenancy: Tenancy, number: int) -> None:
        super().__init__(number)
        # Compiled classes lie in memory as this writes them: what starts ask for first.
        self.strand = strand
        self.tenancy = tenancy
        self.front: Job | None = None
        """The first of the line: jobs up to `cut` that came in order, as nearly all do.
        Each knows who is behind it. One that leaves from the middle is passed over when
        it comes to the front."""
        self.count = 0
        """Jobs that are really here."""
        self.tier = ENTITLED
        self.late: list[Row] | None = None
        """Rows put aside: their promise was broken while their tenant was over."""
        self.odd: list[Row] | None = None
        """A heap of those that came out of order."""
        self.parked_on: object | None = None
        """What stopped it: a gauge, a held strand, the rule of a paused tenant, or the
        job about which a throttler is asked.
        """
        self.cut: Position | None = None
        """Jobs whose key is above this may be missing: they are in the store only."""
        self.held_ms = 0
        """How long its strand had been held when it took its place."""
        self.holds: tuple[Hold, ...] = ()
        """What the last job that started holds, or held: the next takes the same..."""
        self.holds_as_of: i64 = -1
        """...if it takes one unit, and no part of a limit was closed since this one was."""
        self.called_by: Gauge | None = None
        self.is_shedding = False
        """Its tenant has more than its share can serve: late jobs step aside."""
        self.is_emptied = False
        """It is among its queue's turns that are empty, at most once, next to these."""
        self.emptied_before: Turn | None = None
        self.emptied_after: Turn | None = None
        self.back: Job | None = None
        """The last of the line."""
        self.last_first = self.last_second = self.last_seq = 0
        """Where the last of the line stood when it came: jobs that leave may change."""
        self.stopped: Part | None = None
        self.beyond: list[Job] | None = None
        """Such jobs that came since memory was tidied up: they are here until
        they are in the store, and none of them is next."""
        self.place: bytes | None = None
        """Under which name the owner writes its jobs, once it has."""

    def add(self, key: tuple[int, int], job: Job) -> None:
        first, second = key
        job.turn = self
        job.first_key = first
        job.second_key = second
        job.is_in_line = False
        self.count += 1
        cut = self.cut
        # One that goes on after a wait is always in memory, and may go.
        if (
            cut is not None
            and not job.timeout_left_ms
            and _is_after(first, second, job.seq, cut)
        ):
            if self.beyond is None:
                self.beyond = []
                self._note_growth()
            self.beyond.append(job)
            return
        if job.has_left_line or not self._line_up(first, second, job):
            self.odd = self.odd or []
            heappush(self.odd, (first, second, job.seq, job))
        if self.count > ROWS_NOTED:
            self._note_growth()

    def _line_up(self, first: int, second: int, job: Job) -> bool:
        """Puts the job at the end of the line, if that is its place."""
        seq = job.seq
        back = self.back
        if back is None:
            self.front = job
        else:
            if first != self.last_first:
                if first < self.last_first:
                    return False
            elif second != self.last_second:
                if second < self.last_second:
                    return False
            elif seq <= self.last_seq:
                return False
            back.behind = job
        self.back = job
        self.last_first = first
        self.last_second = second
        self.last_seq = seq
        job.is_in_line = True
        return True

    def head(self) -> Job | None:
        """The job to start next: of a tenant over its share, one still in time."""
        if not self.late and not self.odd:
            return self._first_in_line()
        row = self._first()
        if self.late:
            late = _first_of(self.late, self)
            is_in_time_first = self.is_shedding and self.tier == ENTITLED
            if row is None or (
                not is_in_time_first and late is not None and late < row
            ):
                row = late
        return None if row is None else row[3]

    def is_first(self, job: Job) -> bool:
        """Whether no row is before the job's, but for late ones."""
        if not self.odd:
            if self.back is job and not self.late and self.beyond is None:
                # All others are in line before it. Who is first is in no cache.
                return self.count == 1
            return self._first_in_line() is job
        row = self._first()
        return row is not None and row[3] is job

    def remove(self, job: Job) -> None:
        """The job leaves, from wherever it stands."""
        if self.front is job:
            self._drop_first()
        else:
            if self.odd and self.odd[0][3] is job:
                heappop(self.odd)
            if job.is_in_line:
                # It is passed over when it surfaces, and can't stand there twice.
                job.has_left_line = True
        job.is_in_line = False
        job.turn = None
        self.count -= 1

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
        slo_ms = self.strand.lane.slo_ms + self.tenancy.rule.held_ms
        is_shed = False
        if self.cut is not None and self.late and len(self.late) > LATE_MAX:
            # What can be in time may be millions of rows away.
            return False
        for _ in range(SHED_ROWS):
            row = self._first()
            if row is None or row[3].run_at_ms - row[3].shift_ms + slo_ms > now_ms:
                break
            self.late = self.late or []
            heappush(self.late, row)
            if not row[3].is_in_line:
                assert self.odd
                heappop(self.odd)
            else:
                row[3].is_in_line = False
                self._drop_first()
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
        if self.home is None:
            # Whoever is let go now stands behind those of its rank.
            lane = self.strand.lane
            self.renumber(lane.queue.shared.next_number())
            tier = lane.tier_of(self)
            if tier.home is None:
                tier.renumber(self.number)
        self.seat_at(self.strand.now(now_ms))

    def _first_in_line(self) -> Job | None:
        """The first job in line that is still here; places before it are dropped."""
        while (job := self.front) is not None:
            if job.turn is self and job.is_in_line:
                return job
            job.has_left_line = False
            self._drop_first()
        return None

    def _first(self) -> Row | None:
        """The first row of all but the late ones."""
        job = self._first_in_line()
        row = None if job is None else (job.first_key, job.second_key, job.seq, job)
        if self.odd:
            odd = _first_of(self.odd, self)
            if row is None or (odd is not None and odd < row):
                row = odd
        return row

    def _drop_first(self) -> None:
        """The line goes on behind its first place."""
        first = self.front
        assert first is not None
        self.front = first.behind
        first.behind = None
        if self.front is None:
            self.back = None

    def _note_growth(self) -> None:
        shared = self.strand.lane.queue.shared
        if shared.is_bounded:
            shared.grown[self] = None


def rows_of(turn: Turn, most: int = -1) -> list[Row]:
    """Rows up to `cut`, but for late ones; of some out of order the job may have left.

    `most` is enough of those in line, and of those out of order.
    """
    rows: list[Row] = []
    job = turn.front
    while job is not None and most != len(rows):
        if job.turn is turn and job.is_in_line:
            rows.append((job.first_key, job.second_key, job.seq, job))
        job = job.behind
    if turn.odd is not None:
        rows += turn.odd if most < 0 else turn.odd[:most]
    return rows


def keep_rows(turn: Turn, rows: list[Row]) -> None:
    """Of all rows up to `cut`, but for late ones, those that are left."""
    place = turn.front
    while place is not None:
        place.is_in_line = place.has_left_line = False
        behind, place.behind = place.behind, None
        place = behind
    turn.front = turn.back = None
    turn.odd = None
    for row in sorted(rows):
        first, second, _, job = row
        if job.has_left_line or not turn._line_up(first, second, job):
            # It stands in another line still, where it counts no more.
            turn.odd = [*(turn.odd or ()), row]


def came_beyond(turn: Turn, job: Job) -> bool:
    """Whether the job that came last stands where memory does not hold the turn."""
    return turn.beyond is not None and turn.beyond[-1] is job


def read_to(turn: Turn, cut: Position | None) -> list[Job]:
    """Memory holds all up to there, with what has come since it was read: the answer."""
    turn.cut = cut
    beyond = turn.beyond
    if beyond is None:
        return []
    turn.beyond = None
    for job in beyond:
        if job.turn is turn:
            turn.count -= 1
            turn.add((job.first_key, job.second_key), job)
    return beyond


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


def _is_after(first: int, second: int, seq: int, position: Position) -> bool:
    if first != position[0]:
        return first > position[0]
    if second != position[1]:
        return second > position[1]
    return seq > position[2]


def _first_of(heap: list[Row], turn: Turn) -> Row | None:
    """The first row whose job is still here; those before it are dropped."""
    while heap:
        if heap[0][3].turn is turn:
            return heap[0]
        heappop(heap)
    return None
