"""What workers say: lease, extend, ack, nack, release, and what silence means."""

from headway.core import ahead, defaults, events, life
from headway.core.book import Book
from headway.core.commands import Ack, Changed, Extend, Nack, Release, Settled
from headway.core.errors import BadValue
from headway.core.job import Job
from headway.core.results import NOTHING
from headway.core.spec import JobError
from headway.core.states import JobState


def ack(book: Book, command: Ack, now_ms: int) -> Settled:
    """Done, even where a cancel was asked for: the work has happened."""
    stale: list[int] = []
    leases = book.leases
    results = command.results
    looks = ahead.is_worth_it(book, len(command.tokens))
    for number, token in enumerate(command.tokens):
        if looks and number % ahead.PIECE == 0:
            ahead.at_ends(book, command.tokens, number)
        job = leases.get(token)
        if job is None:
            stale.append(token)
        elif results:
            life.finish(book, job, now_ms, results.get(token, NOTHING))
        else:
            life.finish(book, job, now_ms)
    return Settled(stale, [])


def extend(book: Book, command: Extend, now_ms: int) -> Settled:
    """Heartbeat. A lease is never made shorter than it is."""
    if not 1 <= command.lease_ms <= defaults.DURATION_MAX_MS:
        raise BadValue("lease_ms", command.lease_ms, "must be a positive duration")
    stale: list[int] = []
    cancelled: list[int] = []
    for token in command.tokens:
        job = book.leases.get(token)
        if job is None:
            stale.append(token)
            continue
        if job.is_cancel_requested:
            cancelled.append(token)
        until_ms = now_ms + command.lease_ms
        if until_ms > job.lease_until_ms:
            job.lease_until_ms = until_ms
            book.arm(job)
            book.write(job, events.Extended(now_ms, *life.whose(job), until_ms))
    return Settled(stale, cancelled)


def nack(book: Book, command: Nack, now_ms: int) -> Changed:
    """The attempt failed and counts."""
    delay_ms = command.retry_in_ms
    if delay_ms is not None and not 0 <= delay_ms <= defaults.DURATION_MAX_MS:
        raise BadValue("retry_in_ms", delay_ms, "must be a duration from 0 on")
    job = book.leased(command.token)
    if command.is_unused and not (command.is_bury or job.is_cancel_requested):
        _put_off(book, job, command, now_ms)
        return Changed(1)
    life.end_lease(book, job, now_ms)
    if command.payload is not None:
        life.replace_payload(job, command.payload)
    error = JobError(now_ms, job.attempt, "failed", command.error)
    if job.is_cancel_requested:
        life.keep_error(job, error)
        _cancel_ended(book, job, now_ms)
    elif command.is_bury:
        life.keep_error(job, error)
        life.bury(book, job, error, now_ms)
    else:
        life.retry_or_bury(book, job, error, now_ms, delay_ms)
    return Changed(1)


def _put_off(book: Book, job: Job, command: Nack, now_ms: int) -> None:
    """Looked at and left for later: uncounted, as if it had been released."""
    run_ms = life.end_lease(book, job, now_ms, is_unused=True)
    if command.payload is not None:
        life.replace_payload(job, command.payload)
    token = life.told_token(job)
    released = events.Released(now_ms, *life.whose(job), job.attempt, run_ms, token)
    job.attempt -= 1
    life.keep_error(job, JobError(now_ms, job.attempt, "put off", command.error))
    book.write(job, released)
    if not command.retry_in_ms:
        life.give_back_ready(book, job, now_ms)
        return
    queue = book.queues[job.queue]
    job.credit_ms = 0
    job.started_ms = 0
    at_ms = now_ms + command.retry_in_ms
    job.run_at_ms = life.opening_ms(job, queue.rules.config, at_ms)
    book.write(job, events.Rescheduled(now_ms, *life.whose(job), job.run_at_ms))
    life.make_scheduled(book, queue, job, now_ms)


def release(book: Book, command: Release, now_ms: int) -> Settled:
    """Given back unused: the attempt does not count."""
    stale: list[int] = []
    cancelled: list[int] = []
    for token in command.tokens:
        job = book.leases.get(token)
        if job is None:
            stale.append(token)
            continue
        run_ms = life.end_lease(book, job, now_ms, is_unused=True)
        if job.is_cancel_requested:
            cancelled.append(token)
            _cancel_ended(book, job, now_ms)
            continue
        job.ended_token = 0
        released = events.Released(now_ms, *life.whose(job), job.attempt, run_ms, token)
        job.attempt -= 1
        book.write(job, released)
        life.give_back_ready(book, job, now_ms)
    return Settled(stale, cancelled)


def on_timer(book: Book, job: Job, now_ms: int) -> None:
    """A moment came that matters to the job: which one, its state says."""
    job.timer_ms = 0
    if job.expires_ms <= now_ms:
        life.expire(book, job, now_ms)
        return
    match job.state:
        case JobState.SCHEDULED:
            life.promote(book, book.queues[job.queue], job, now_ms)
        case JobState.LEASED if job.timeout_at_ms <= now_ms:
            life.end_lease(book, job, now_ms)
            _fail(book, job, "timed out", now_ms)
        case JobState.LEASED:
            _lose(book, job, now_ms)
        case JobState.WAITING:
            is_timeout = job.timeout_at_ms <= now_ms
            life.detach(book, job, now_ms)
            _fail(book, job, "timed out" if is_timeout else "no reply", now_ms)
        case _:
            raise AssertionError(f"timer of a {job.state} job")


def _fail(book: Book, job: Job, reason: str, now_ms: int) -> None:
    if job.is_cancel_requested:
        _cancel_ended(book, job, now_ms)
        return
    life.retry_or_bury(book, job, JobError(now_ms, job.attempt, reason), now_ms)


def _lose(book: Book, job: Job, now_ms: int) -> None:
    """The lease ran out: another worker may have it, if attempts are left."""
    run_ms = life.end_lease(book, job, now_ms, is_unused=True)
    if job.is_cancel_requested:
        _cancel_ended(book, job, now_ms)
        return
    who = f"worker {job.worker}" if job.worker else "its worker"
    text = f"nothing was heard of {who} until the lease ended"
    error = JobError(now_ms, job.attempt, "lease lost", text)
    life.keep_error(job, error)
    if job.attempt >= job.attempts_max:
        life.bury(book, job, error, now_ms)
        return
    token = life.told_token(job)
    book.write(job, events.Lost(now_ms, *life.whose(job), job.attempt, run_ms, token))
    life.give_back_ready(book, job, now_ms)


def _cancel_ended(book: Book, job: Job, now_ms: int) -> None:
    """Its lease is over already: the cancel that was asked for takes hold."""
    life.leave(book, job, JobState.CANCELLED, now_ms)
    book.write(job, events.Cancelled(now_ms, *life.whose(job), *life.told_end(job)))
