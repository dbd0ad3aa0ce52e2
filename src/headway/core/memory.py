"""What of a partition is in memory, where a store holds all of it.

Memory holds the jobs that are next: the head of every turn it knows, and what is
scheduled soon. After a commit the rest goes (`tidy`); what is needed again is named in
`Shared.reads`, and comes back as a command (`fetched.py`). Counts are of everything, in
memory or not.
"""

from typing import Final

from headway.core.book import Book
from headway.core.bounds import Bounds
from headway.core.commands import Decision, Enqueue
from headway.core.fetched import time_of
from headway.core.job import Job
from headway.core.lane import Cold, read_anew
from headway.core.queue import Queue, ask_no_more
from headway.core.states import DEAD, READY, SCHEDULED
from headway.core.turn import NOTHING_READ, Turn, keep_rows, rows_of

READ_BELOW: Final = 128
"""A turn with fewer jobs than this is read on, however many memory could hold."""


def rows_max(book: Book, bounds: Bounds) -> int:
    """How many jobs of one turn memory may hold."""
    each = bounds.jobs_max // max(1, book.shared.turns)
    return max(4, min(4_096, each))


def read_below(most: int) -> int:
    """Jobs left of a turn when it is read on, where memory may hold so many of it.

    Enough for a batch where there are few turns: one that runs dry in the middle of
    a lease costs it another commit. Where there are many, a batch takes a few of each.
    """
    return max(16, min(READ_BELOW, most // 8))


def tidy(book: Book, decision: Decision, bounds: Bounds, now_ms: int) -> None:
    """To be called when a decision is durable: what is far away leaves memory."""
    for job in decision.jobs:
        _tidy_job(book, job)
    for seq in book.visited:
        if seq in book.jobs:
            _tidy_job(book, book.jobs[seq])
    book.visited.clear()
    for command, _ in decision.answers:
        if type(command) is Enqueue and command.queue in book.queues:
            book.queues[command.queue].keys.shrink(bounds.keys_max)
    _tidy_scheduled(book, bounds)
    shared = book.shared
    for queue in shared.reshaped:
        _begin_anew(book, queue, now_ms)
    shared.reshaped.clear()
    most = rows_max(book, bounds)
    shared.read_below = read_below(most)
    if shared.grown:
        for turn in shared.grown:
            _cut(book, turn, most, now_ms)
        shared.grown.clear()
    for turn in shared.new_turns:
        if shared.turns > bounds.turns_max:
            _drop(book, turn, now_ms)
    shared.new_turns.clear()


def _cut(book: Book, turn: Turn, most: int, now_ms: int) -> None:
    """Of a turn that has grown, the far end goes."""
    if turn.cut is not None:
        _drop_beyond(book, turn, now_ms)
        return
    if turn.count <= most:
        return
    key_of = turn.strand.lane.queue.rules.key_of
    # One that left and came back has an old row, too.
    rows = sorted(
        {
            row[2]: row
            for row in rows_of(turn)
            if row[3].turn is turn and row[:2] == key_of(row[3])
        }.values()
    )
    if len(rows) <= most:
        return
    kept = rows[: most // 2]
    turn.cut = kept[-1][:3]
    for row in rows[most // 2 :]:
        if row[3].timeout_left_ms:
            kept.append(row)
        else:
            _forget(book, row[3], now_ms)
    keep_rows(turn, kept)
    _ask_anew(turn, now_ms)
    if turn.count == 0:
        _read_later(book, turn)


def _ask_anew(turn: Turn, now_ms: int) -> None:
    """A job that others have overtaken left with the rest, and its turn must not wait
    for a verdict on it: the one that is read back is another object."""
    asked = turn.parked_on
    if isinstance(asked, Job) and asked.turn is not turn:
        ask_no_more(turn.strand.lane.queue, asked)
        turn.unpark(now_ms)


def _drop_beyond(book: Book, turn: Turn, now_ms: int) -> None:
    """What came to the part of a turn that memory does not hold is in the store now."""
    beyond = turn.beyond
    if beyond is not None:
        turn.beyond = None
        # Spelled out: where a backlog grows, this runs for every job that is enqueued.
        jobs = book.jobs
        gone = want = 0
        for job in beyond:
            if job.turn is turn:
                gone += 1
                want += job.want
                job.turn = None
                book.disarm(job)
                jobs.drop(job.seq, job)
        turn.count -= gone
        tenancy = turn.tenancy
        tenancy.ready -= gone
        if tenancy.is_named and gone:
            book.shared.ledger.wants(tenancy.account, -want, now_ms)
    if turn.count == 0:
        _read_later(book, turn)


def _read_later(book: Book, turn: Turn) -> None:
    """All that waits in the turn is in the store, and has to be read to be started."""
    cold = turn.strand.lane.cold
    if cold is None:
        book.shared.reads[turn] = None
    else:
        cold.expect(turn)


def _drop(book: Book, turn: Turn, now_ms: int) -> None:
    """Too many turns: a new one is left to the rounds in which its lane is read."""
    lane = turn.strand.lane
    if turn.parked_on is not None or lane.is_exempt:
        return
    if any(row[3].timeout_left_ms for row in rows_of(turn)):
        return
    if lane.cold is None:
        lane.cold = Cold(lane)
    rows = [*rows_of(turn), *(turn.late or ())]
    for job in [*(row[3] for row in rows), *(turn.beyond or ())]:
        if job.turn is turn:
            _forget(book, job, now_ms)
    keep_rows(turn, [])
    turn.beyond = None
    turn.cut = NOTHING_READ
    turn.seat_at(turn.strand.now(now_ms))
    lane.cold.expect(turn)
    lane.queue.drop_turn(turn)


def _begin_anew(book: Book, queue: Queue, now_ms: int) -> None:
    """The rules have changed: all that waits leaves, and comes back to new turns."""
    turns: dict[Turn, None] = {}
    for job in book.jobs.values():
        if job.state is READY and job.queue == queue.name and not job.timeout_left_ms:
            turn = job.turn
            assert turn is not None
            turns[turn] = None
            _forget(book, job, now_ms)
    for turn in turns:
        turn.cut = turn.beyond = None
        keep_rows(turn, [row for row in rows_of(turn) if row[3].turn is turn])
        _ask_anew(turn, now_ms)
        turn.seat_at(turn.strand.now(now_ms))
        if turn.count == 0:
            queue.drop_turn(turn)
    for lane in queue.all_lanes():
        lane.cold = None
        if lane.ready:
            read_anew(lane)
        for strand in lane.strands.values():
            for turn in strand.turns.values():
                if not lane.ready:
                    turn.cut = None
                turn.seat_at(strand.now(now_ms))


def _forget(book: Book, job: Job, now_ms: int) -> None:
    book.dispatch.take_out(job, now_ms)
    book.disarm(job)
    book.jobs.drop(job.seq, job)


def _tidy_job(book: Book, job: Job) -> None:
    """Dead letters stay in the store, and what is scheduled for later."""
    near = book.near
    if job.state is not SCHEDULED:
        near.jobs.pop(job.seq, None)
        if job.state is DEAD and job.seq in book.jobs:
            book.jobs.drop(job.seq, job)
    elif near.cut is None or time_of(job) <= near.cut:
        near.jobs[job.seq] = job
    else:
        _put_off(book, job)


def _tidy_scheduled(book: Book, bounds: Bounds) -> None:
    near = book.near
    kept = bounds.scheduled_max // 2
    if len(near.jobs) > bounds.scheduled_max:
        ordered = sorted(near.jobs.values(), key=time_of)
        for job in ordered[kept:]:
            _put_off(book, job)
        near.cut = time_of(ordered[kept - 1])
    if near.cut is not None and len(near.jobs) < kept // 2:
        book.shared.reads[near] = None


def _put_off(book: Book, job: Job) -> None:
    book.near.jobs.pop(job.seq, None)
    book.disarm(job)
    if job.seq in book.jobs:
        book.jobs.drop(job.seq, job)
