"""What was read from the store takes its place in memory, as if it had never left.

Nothing happens to a job by that, unless its time has come or is over meanwhile.
"""

from headway.core import life
from headway.core.book import Book
from headway.core.commands import Fetched
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.restore import held_so_far
from headway.core.rules import Rules
from headway.core.states import DEAD, READY, SCHEDULED
from headway.core.turn import NOTHING_READ, Position, Turn, name_of, read_to


def take_in(book: Book, command: Fetched, now_ms: int) -> None:
    """Rows that the store had: they take their places, unless they have them."""
    source = command.source
    book.shared.reads.pop(source, None)
    if isinstance(source, Turn):
        _take_turn(book, source, command, now_ms)
    elif isinstance(source, Lane):
        _take_lane(book, source, command, now_ms)
    else:
        for job in command.jobs:
            _place(book, job, now_ms)
        if source is book.near:
            book.near.cut = None if command.is_end else time_of(command.jobs[-1])
            book.look_ahead(now_ms)
        else:
            book.visited += [job.seq for job in command.jobs]


def _take_turn(book: Book, turn: Turn, command: Fetched, now_ms: int) -> None:
    queue = turn.strand.lane.queue
    # Set first: what comes now is to be seen.
    cut = None if command.is_end else _position(queue.rules, command.jobs[-1])
    _read_to(book, turn, cut)
    is_plain = _is_plain(turn)
    for job in command.jobs:
        target = turn if is_plain and _fits(job, turn) else None
        _place(book, job, now_ms, turn, target)
    turn.seat_at(turn.strand.now(now_ms))
    if turn.count == 0:
        if turn.cut is None:
            queue.drop_turn(turn)
        else:
            # What was read stands elsewhere: there is more behind it.
            book.shared.reads[turn] = None
    for board in queue.boards:
        board.stir()


def _is_plain(turn: Turn) -> bool:
    """Whether the turn of a job is told by its lane and its tenant alone."""
    strand = turn.strand
    lane, rules = strand.lane, strand.lane.queue.rules
    return (
        rules.is_fair
        and not rules.dims
        and not lane.is_exempt
        and strand is lane.common
        and strand.shape == rules.shape
        and strand.turn_of(turn.tenancy.name) is turn
    )


def _fits(job: Job, turn: Turn) -> bool:
    """Whether its jobs are where this one belongs, with nothing to look up: they all
    do unless rules have changed."""
    return (
        job.state is READY
        and job.windows is None
        and not job.is_critical
        and not job.holds
        and job.slo_ms == turn.strand.lane.slo_ms
        and job.tenant == turn.tenancy.name
    )


def _take_lane(book: Book, lane: Lane, command: Fetched, now_ms: int) -> None:
    """The next turns of a lane, in the order of their names."""
    cold = lane.cold
    if cold is None:
        return
    names, jobs = command.names, command.jobs
    begin = 0
    while begin < len(jobs):
        name = names[begin]
        end = begin + 1
        while end < len(jobs) and names[end] == name:
            end += 1
        _take_group(book, lane, command, (name, jobs[begin:end]), now_ms)
        begin = end
        cold.after = name
        cold.met += 1
    if command.is_end:
        cold.is_read = True
        if cold.is_clean:
            lane.cold = None
            for strand in lane.strands.values():
                for turn in strand.turns.values():
                    if turn.cut is not None:
                        book.shared.reads[turn] = None
    # Turns that came by this are no reason to read on; that nothing is left is one.
    book.shared.reads.pop(lane, None)
    lane.reseat()
    for board in lane.queue.boards:
        board.stir()


def _take_group(
    book: Book,
    lane: Lane,
    command: Fetched,
    group: tuple[bytes, list[Job]],
    now_ms: int,
) -> None:
    """The first jobs of one turn."""
    name, jobs = group
    queue = lane.queue
    cold = lane.cold
    assert cold is not None
    turn = queue.turn_of(jobs[0], now_ms)
    new_turns = book.shared.new_turns
    if new_turns and new_turns[-1] is turn:
        # It is here to be served, however many there are.
        new_turns.pop()
    is_whole = len(jobs) < command.each
    if name_of(turn) != name:
        # The rules have changed since they were written: they go where they belong,
        # and the next round meets the rest of them.
        cold.is_clean = cold.is_idle = False
        for job in jobs:
            _place(book, job, now_ms)
            book.shared.moved[job.seq] = book.jobs[job.seq]
        return
    if turn.count and turn.cut is not NOTHING_READ:
        # Memory knows it: what is missing will be read after what it has.
        return
    if not is_whole:
        cold.is_clean &= not command.is_full
    _read_to(book, turn, None if is_whole else _position(queue.rules, jobs[-1]))
    cold.fresh[turn] = None
    _place(book, jobs[0], now_ms, turn, turn)
    for number in range(1, len(jobs)):
        _place(book, jobs[number], now_ms, turn)
    if not turn.is_first(jobs[0]):
        # Else it took its place when that one joined it.
        turn.seat_at(turn.strand.now(now_ms))


def _read_to(book: Book, turn: Turn, cut: Position | None) -> None:
    """What came to the far end of a turn may be near now, and needs its timer."""
    for job in read_to(turn, cut):
        if job.turn is turn:
            book.arm(job)


def _place(
    book: Book,
    job: Job,
    now_ms: int,
    source: Turn | None = None,
    turn: Turn | None = None,
) -> None:
    """A job that is counted already comes into memory; `turn` is its turn, if known."""
    if job.seq in book.jobs:
        return
    book.jobs.add(job.seq, job)
    if job.state is READY:
        queue = book.queues[job.queue]
        if turn is None:
            turn = queue.turn_of(job, now_ms)
        job.credit_ms = held_so_far(queue, job, now_ms)
        book.dispatch.put_back(turn, job, now_ms)
        if source is not None and turn is not source:
            # The rules have changed since it was written.
            book.shared.moved[job.seq] = job
    elif job.state is SCHEDULED:
        book.near.jobs[job.seq] = job
        if job.run_at_ms <= now_ms < job.expires_ms:
            life.promote(book, book.queues[job.queue], job, now_ms)
            return
    if job.expires_ms <= now_ms and job.state is not DEAD:
        life.expire(book, job, now_ms)
    else:
        book.arm(job)


def time_of(job: Job) -> Position:
    """Where a scheduled job stands."""
    return job.run_at_ms, 0, job.seq


def _position(rules: Rules, job: Job) -> Position:
    first, second = rules.key_of(job)
    return first, second, job.seq
