"""Looking through the store for jobs that somebody means, a bounded part at a time."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headway.core.bulk import SEQ_MAX, Cursor, Filter, matches
from headway.core.defaults import TIME_MAX_MS
from headway.core.errors import BadValue
from headway.core.job import Job
from headway.core.states import JobState
from headway.runtime.records import died_ms, place_of_dead, unpack_job
from headway.store.port import DEAD, START, Position, Row, Store

ROWS_AT_ONCE: Final = 128
"""Payloads come with their rows, and may be large."""
TURNS_AT_ONCE: Final = 64
EACH: Final = 8
"""Rows that are read of a turn before it is known to have more."""
SKIPPED_FOR_ONE: Final = 8
"""Rows that are passed over for the price of one that is looked at: new jobs come more
slowly than that, so who goes after old ones gets to the end."""
UNSTARTED: Final = (JobState.READY, JobState.SCHEDULED)


class Most(NamedTuple):
    """Where a scan ends, if nothing else ends it."""

    jobs: int
    rows: int


class Found(NamedTuple):
    """Jobs that are meant, in the order in which they were met."""

    jobs: list[Job]
    cursor: Cursor | None
    """Up to where everything was looked at."""
    is_end: bool
    """There is nothing behind it."""


def dead(store: Store, queue: str, which: Filter, after: Position, most: Most) -> Found:
    """Dead letters of a queue in the order of their death."""
    if which.seqs is not None:
        return _named(store, queue, which, after, most.jobs)
    if which.died_after_ms is not None:
        after = max(after, Position(which.died_after_ms, START.second, START.seq))
    turn = place_of_dead(queue)
    jobs: list[Job] = []
    scanned = 0
    while scanned < most.rows:
        limit = min(ROWS_AT_ONCE, most.rows - scanned)
        rows = store.rows(DEAD, turn, after, limit)
        for row in rows:
            if which.died_before_ms is not None and row[3] >= which.died_before_ms:
                return Found(jobs, None, is_end=True)
            after = _position(row)
            job = job_of(row)
            if matches(which, job):
                jobs.append(job)
                if len(jobs) == most.jobs:
                    return Found(jobs, _at(row), is_end=False)
        scanned += len(rows)
        if len(rows) < limit:
            return Found(jobs, None, is_end=True)
    return Found(jobs, Cursor(DEAD, turn, *after), is_end=False)


def is_meant(which: Filter, job: Job) -> bool:
    """Whether a dead letter that was found by its seq is meant."""
    at_ms = died_ms(job)
    if which.died_after_ms is not None and at_ms < which.died_after_ms:
        return False
    if which.died_before_ms is not None and at_ms >= which.died_before_ms:
        return False
    return matches(which, job)


def dead_by_seq(
    store: Store, queue: str, which: Filter, seqs: Sequence[int]
) -> list[Job]:
    """Those of the jobs that are dead letters of the queue, and meant."""
    turn = place_of_dead(queue)
    rows = [row for row in store.jobs(list(seqs)) if row[1:3] == (DEAD, turn)]
    jobs = [job for job in map(job_of, rows) if is_meant(which, job)]
    return sorted(jobs, key=lambda job: (died_ms(job), job.seq))


def unstarted(
    store: Store,
    queue: str,
    which: Filter,
    lanes: Sequence[int],
    *,
    last_seq: int,
    after: Cursor | None,
    most: Most,
) -> Found:
    """Ready and scheduled jobs of a queue up to a seq, lane by lane in their order."""
    jobs: list[Job] = []
    has_met = after is not None and after.has_met
    cursor = after
    rows = _rows_of(store, sorted(lanes), which.tenant, after)
    left = most.rows * SKIPPED_FOR_ONE
    for row in rows:
        if left <= 0 or len(jobs) == most.jobs:
            return Found(jobs, cursor, is_end=False)
        left -= 1
        if row[0] <= last_seq:
            left -= SKIPPED_FOR_ONE - 1
            job = job_of(row)
            is_his = which.tenant is None or job.spec.tenant == which.tenant
            if is_his and job.queue == queue and job.state in UNSTARTED:
                has_met = True
                jobs.append(job)
        cursor = _at(row, has_met=has_met)
    return Found(jobs, cursor, is_end=True)


def job_of(row: Row) -> Job:
    return unpack_job(row[0], row[6], row[5])


def _named(
    store: Store, queue: str, which: Filter, after: Position, most: int
) -> Found:
    seqs = which.seqs or ()
    jobs = [
        job
        for job in dead_by_seq(store, queue, which, seqs)
        if Position(died_ms(job), 0, job.seq) > after
    ]
    if len(jobs) <= most:
        return Found(jobs, None, is_end=True)
    last = jobs[most - 1]
    cursor = Cursor(DEAD, place_of_dead(queue), died_ms(last), 0, last.seq)
    return Found(jobs[:most], cursor, is_end=False)


def _rows_of(
    store: Store, lanes: Sequence[int], tenant: str | None, after: Cursor | None
) -> Iterator[Row]:
    """Everything in the lanes, turn by turn; what has gone since does not matter."""
    for lane in lanes:
        his = tenant if lane > 0 else None
        turn: bytes | None = None
        position = START
        if after is not None:
            if lane < after.lane:
                continue
            if lane == after.lane:
                turn = after.turn
                position = Position(after.first, after.second, after.seq)
        while True:
            rows: list[Row] = []
            if turn is not None and not _is_foreign(turn, his):
                rows = store.rows(lane, turn, position, ROWS_AT_ONCE)
            if not rows:
                heads = store.turns(lane, turn, TURNS_AT_ONCE, EACH)
                rows = _whole(heads, his)
            if not rows:
                break
            yield from rows
            turn, position = rows[-1][2], _position(rows[-1])


def _whole(heads: list[Row], tenant: str | None) -> list[Row]:
    """The first rows of some turns, up to one that has more behind them to be read."""
    count = 0
    for number, row in enumerate(heads, 1):
        count = count + 1 if number > 1 and heads[number - 2][2] == row[2] else 1
        if count == EACH and not _is_foreign(row[2], tenant):
            return heads[:number]
    return heads


def _is_foreign(turn: bytes, tenant: str | None) -> bool:
    """Whether the jobs of a turn are all of another tenant, by its name."""
    if tenant is None:
        return False
    name = turn.removeprefix(b"\xff")
    his = tenant.encode("utf-8", "surrogatepass")
    is_his = name == his or name.startswith(his + b"\0")
    # Where tenants have no turns of their own, the name begins with nobody's.
    return bool(name) and not name.startswith(b"\0") and not is_his


def _position(row: Row) -> Position:
    return Position(row[3], row[4], row[0])


def _at(row: Row, *, has_met: bool = False) -> Cursor:
    return Cursor(row[1], row[2], *_position(row), has_met)


def position(after: str) -> Position:
    """The place of the last dead letter of a page, as its answer told it."""
    if not after:
        return START
    died, _, seq = after.partition("-")
    if (
        died.isdecimal()
        and seq.isdecimal()
        and len(after) <= 40
        and int(died) <= TIME_MAX_MS
        and int(seq) <= SEQ_MAX
    ):
        return Position(int(died), 0, int(seq))
    raise BadValue("after", after, "is not what an earlier answer said")
