"""The moves of a job between its states: one function for one verb."""

from typing import Final

from headway.core import defaults, events, retry
from headway.core.book import Book
from headway.core.config import QueueConfig
from headway.core.events import Acked, Leased
from headway.core.job import Job
from headway.core.queue import Queue
from headway.core.results import NO_VALUE, NOTHING, Result, kept
from headway.core.spec import JobError
from headway.core.states import DONE, LEASED, READY, JobState
from headway.core.turn import Turn, came_beyond

SHED: Final = "shed"
"""The reason of the error of a job for which its queue had no room."""


def make_ready(
    book: Book, queue: Queue, job: Job, now_ms: int, known: Turn | None = None
) -> None:
    """From now on the job may be chosen; `known` is a turn of its tenant."""
    job.state = READY
    turn = book.dispatch.add(queue, job, now_ms, known)
    if not came_beyond(turn, job):
        # Else it leaves memory as soon as it is written down.
        book.arm(job)


def make_scheduled(book: Book, queue: Queue, job: Job, now_ms: int) -> None:
    """Waits for its time; if that has come, it is ready at once."""
    job.state = JobState.SCHEDULED
    if job.run_at_ms <= now_ms:
        promote(book, queue, job, now_ms, was_counted=False)
    else:
        queue.scheduled += 1
        book.arm(job)


def promote(
    book: Book, queue: Queue, job: Job, now_ms: int, *, was_counted: bool = True
) -> None:
    """Its time has come."""
    if was_counted:
        queue.scheduled -= 1
    make_ready(book, queue, job, now_ms)
    book.write(job, events.Promoted(now_ms, *whose(job)))


def lease(book: Book, job: Job, until_ms: int, worker: str, now_ms: int) -> None:
    """Handed out under a token of its own."""
    turn = job.turn
    assert turn is not None
    queue = turn.strand.lane.queue
    wait_ms, held_ms = book.dispatch.start(turn, job, now_ms)
    book.last_token += 1
    job.state = LEASED
    job.token = book.last_token
    job.worker = worker
    is_again = job.started_ms != 0
    job.started_ms = now_ms
    job.lease_until_ms = until_ms
    timeout_ms = job.timeout_left_ms
    job.timeout_left_ms = 0
    job.is_continued = timeout_ms != 0
    if not job.is_continued:
        job.attempt += 1
        own_ms = job.timeout_ms
        timeout_ms = queue.rules.timeout_ms if own_ms is None else own_ms
    job.timeout_at_ms = now_ms + timeout_ms
    queue.leased += 1
    book.leases.add(job.token, job)
    book.arm(job)
    leased = Leased(
        now_ms,
        job.seq,
        job.generation,
        job.queue,
        job.slo_ms,
        job.tenant,
        job.kind,
        job.attempt,
        job.token,
        worker,
        wait_ms,
        held_ms,
        until_ms,
        is_again,
    )
    book.write(job, leased)


def end_lease(
    book: Book,
    job: Job,
    now_ms: int,
    *,
    is_waiting: bool = False,
    is_unused: bool = False,
) -> int:
    """The token is void; answers how long the job ran under it.

    An unused lease, released or lost, costs its tenant nothing.
    """
    queue = book.queues[job.queue]
    book.leases.drop(job.token, job)
    job.ended_token = job.token
    job.token = 0
    job.lease_until_ms = 0
    queue.leased -= 1
    book.dispatch.vacate(queue, job, now_ms, is_unused=is_unused)
    if not is_waiting:
        book.shared.uses.give_back(job, now_ms)
        job.timeout_at_ms = 0
    job.cleared_ms = 0
    return now_ms - job.started_ms


def finish(book: Book, job: Job, now_ms: int, result: Result = NOTHING) -> None:
    """Acked: done, and gone from memory."""
    run_ms = end_lease(book, job, now_ms)
    queue = book.queues[job.queue]
    queue.rules.kind(job.kind).ran(run_ms)
    leave(book, job, DONE, now_ms, result)
    acked = Acked(
        now_ms,
        job.seq,
        job.generation,
        job.queue,
        job.slo_ms,
        job.tenant,
        job.kind,
        job.attempt,
        run_ms,
        job.ended_token,
    )
    book.write(job, acked)


def leave(
    book: Book,
    job: Job,
    state: JobState,
    now_ms: int,
    result: Result = NO_VALUE,
) -> None:
    """Done or cancelled: its history is all that stays, and what was asked for."""
    if job.result_ms is not None:
        book.decision.results.append(kept(job, state, result, now_ms))
    job.state = state
    book.arm(job)
    book.jobs.drop(job.seq, job)


def give_back_ready(book: Book, job: Job, now_ms: int) -> None:
    """Back to the head of its tenant, as urgent as if it had not been started."""
    make_ready(book, book.queues[job.queue], job, now_ms)


def retry_or_bury(
    book: Book, job: Job, error: JobError, now_ms: int, delay_ms: int | None = None
) -> None:
    """An attempt failed: the retry strategy, or the caller's delay, says what next."""
    queue = book.queues[job.queue]
    config = queue.rules.config
    keep_error(job, error)
    outcome = _after(job, config, delay_ms)
    job.timeout_at_ms = 0
    if isinstance(outcome, retry.Stop):
        bury(book, job, error, now_ms)
        return
    if outcome.payload is not None:
        replace_payload(job, outcome.payload)
    job.credit_ms = 0
    job.reply = None
    job.run_at_ms = opening_ms(job, config, now_ms + outcome.delay_ms)
    run_ms = now_ms - job.started_ms
    retried = events.Retried(
        now_ms,
        *whose(job),
        job.attempt,
        run_ms,
        error.reason,
        error.text,
        job.run_at_ms,
        told_token(job),
        _unanswered(job, error),
    )
    job.started_ms = 0
    book.write(job, retried)
    make_scheduled(book, queue, job, now_ms)


def bury(book: Book, job: Job, error: JobError, now_ms: int) -> None:
    """To the dead letters, with everything it has."""
    _die(book, job)
    buried = events.Buried(
        now_ms,
        *whose(job),
        job.attempt,
        error.reason,
        error.text,
        *told_end(job),
        _unanswered(job, error),
    )
    book.write(job, buried)


def shed(book: Book, queue: Queue, job: Job, now_ms: int) -> None:
    """Accepted by a queue that has no room for it: a dead letter from the start."""
    most = queue.rules.config.max_length
    error = JobError(now_ms, 0, SHED, f"queue {queue.name!r} is full: {most} jobs")
    keep_error(job, error)
    bury(book, job, error, now_ms)


def expire(book: Book, job: Job, now_ms: int) -> None:
    """Its lifetime is over, whatever it was doing."""
    detach(book, job, now_ms)
    keep_error(job, JobError(now_ms, job.attempt, "expired"))
    _die(book, job)
    book.write(job, events.Expired(now_ms, *whose(job), *told_end(job)))


def cancel(book: Book, job: Job, now_ms: int) -> None:
    """Gone by request. A leased job is cancelled when its lease ends."""
    detach(book, job, now_ms)
    leave(book, job, JobState.CANCELLED, now_ms)
    book.write(job, events.Cancelled(now_ms, *whose(job), *told_end(job)))


def discard(book: Book, job: Job, now_ms: int) -> None:
    """A dead letter is deleted for good: its history is all that stays."""
    book.queues[job.queue].dead -= 1
    leave(book, job, JobState.CANCELLED, now_ms)
    book.write(job, events.Discarded(now_ms, *whose(job)))


def detach(book: Book, job: Job, now_ms: int) -> None:
    """Takes an open job out of whatever holds it in its state."""
    queue = book.queues[job.queue]
    match job.state:
        case JobState.SCHEDULED:
            queue.scheduled -= 1
        case JobState.READY:
            book.dispatch.remove(queue, job, now_ms)
            book.shared.uses.give_back(job, now_ms)
        case JobState.LEASED:
            end_lease(book, job, now_ms)
        case JobState.WAITING:
            queue.waiting -= 1
            queue.replies.stop_waiting(job.reply_key, is_answered=False)
            book.shared.uses.give_back(job, now_ms)
        case _:
            pass


def whose(job: Job) -> tuple[int, int, str, int, str, str]:
    """What every event says of its job."""
    return job.seq, job.generation, job.queue, job.slo_ms, job.tenant, job.kind


def told_token(job: Job) -> int:
    """The lease that has just ended, told once; 0 if the job held none."""
    token, job.ended_token = job.ended_token, 0
    return token


def told_end(job: Job) -> tuple[int, int]:
    """The lease that ended with the job, and the wait that ends without a start."""
    return told_token(job), 0 if job.started_ms else job.run_at_ms


def _unanswered(job: Job, error: JobError) -> str:
    """The key of the reply for whose absence the attempt failed."""
    return job.reply_key if error.reason == "no reply" else ""


def opening_ms(job: Job, config: QueueConfig, at_ms: int) -> int:
    """`at_ms`, or the next moment after it at which the job's window is open."""
    windows = job.spec.windows or config.windows
    return at_ms if windows is None else windows.opens_ms(at_ms)


def replace_payload(job: Job, payload: bytes) -> None:
    """The next attempt runs with another payload."""
    job.payload = payload


def keep_error(job: Job, error: JobError) -> None:
    """Keeps the first error and the newest ones."""
    errors = (*job.errors, error)
    if len(errors) > defaults.ERRORS_KEPT:
        errors = (errors[0], *errors[2:])
    job.errors = errors


def _after(
    job: Job, config: QueueConfig, delay_ms: int | None
) -> retry.RetryAfter | retry.Stop:
    if job.attempt >= job.attempts_max:
        return retry.Stop()
    if delay_ms is not None:
        return retry.RetryAfter(delay_ms, None)
    strategy = job.spec.retry if job.spec.retry is not None else config.retry
    return retry.decide(strategy, job.attempt, retry.draw(job.seq, job.attempt))


def _die(book: Book, job: Job) -> None:
    queue = book.queues[job.queue]
    queue.dead += 1
    job.state = JobState.DEAD
    job.timeout_at_ms = 0
    job.timeout_left_ms = 0
    job.credit_ms = 0
    book.arm(job)
