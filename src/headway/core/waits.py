"""Waiting for an answer from outside, and the answers."""

from headway.core import defaults, events, life
from headway.core.book import Book
from headway.core.commands import Changed, Reply, ReplyFate, Wait
from headway.core.errors import BadValue, WrongState
from headway.core.job import Job
from headway.core.results import Result
from headway.core.states import JobState


def wait(book: Book, command: Wait, now_ms: int) -> Changed:
    """The job gives its worker back and keeps its units: its partner is still busy."""
    key = command.reply_key
    if not 1 <= len(key) <= 1_024:
        raise BadValue("reply_key", key, "must have 1 to 1024 characters")
    if not 1 <= command.timeout_ms <= defaults.DURATION_MAX_MS:
        raise BadValue("timeout_ms", command.timeout_ms, "must be a duration")
    job = book.leased(command.token)
    replies = book.queues[job.queue].replies
    if replies.waits(key) is not None:
        raise WrongState(f"another job waits for reply key {key!r}")
    run_ms = life.end_lease(book, job, now_ms, is_waiting=True)
    if job.is_cancel_requested:
        _cancel_instead(book, job, now_ms)
        return Changed(1)
    queue = book.queues[job.queue]
    job.state = JobState.WAITING
    job.reply_key = key
    job.is_done_on_reply = command.is_done_on_reply
    job.wait_until_ms = now_ms + command.timeout_ms
    job.waiting_ms = now_ms
    queue.waiting += 1
    replies.wait(key, job)
    waited = events.Waited(
        now_ms,
        *life.whose(job),
        job.attempt,
        run_ms,
        key,
        job.wait_until_ms,
        life.told_token(job),
    )
    book.write(job, waited)
    early = replies.take_early(key, now_ms)
    if early is None:
        book.arm(job)
    else:
        _resolve(book, job, early, now_ms, is_early=True)
    return Changed(1)


def reply(book: Book, command: Reply, now_ms: int) -> ReplyFate:
    """Resolves the one wait for its key; early, late and repeated ones resolve none."""
    queue = book.queue(command.queue)
    key = command.reply_key
    if not 1 <= len(key) <= 1_024:
        raise BadValue("reply_key", key, "must have 1 to 1024 characters")
    job = queue.replies.waits(key)
    if job is not None:
        _resolve(book, job, command.payload, now_ms, is_early=False)
        return ReplyFate.RESOLVED
    if queue.replies.is_early(key, now_ms):
        fate = ReplyFate.REPEATED
    elif (was_answered := queue.replies.was_answered(key)) is not None:
        fate = ReplyFate.REPEATED if was_answered else ReplyFate.LATE
    else:
        queue.replies.keep_early(key, command.payload, queue.rules.config, now_ms)
        fate = ReplyFate.EARLY
    kept = events.ReplyKept(now_ms, command.queue, key, str(fate), command.payload)
    book.decision.events.append(kept)
    return fate


def _resolve(
    book: Book, job: Job, payload: bytes, now_ms: int, *, is_early: bool
) -> None:
    queue = book.queues[job.queue]
    queue.waiting -= 1
    queue.replies.stop_waiting(job.reply_key, is_answered=True)
    job.reply = payload
    job.wait_until_ms = 0
    book.write(
        job,
        events.Replied(
            now_ms,
            *life.whose(job),
            job.reply_key,
            is_early,
            job.is_done_on_reply,
            now_ms - job.waiting_ms,
        ),
    )
    if job.is_done_on_reply:
        book.shared.uses.give_back(job, now_ms)
        life.leave(book, job, JobState.DONE, now_ms, Result(payload))
        return
    # The continuation is a new wait for a worker, and so a new promise.
    job.run_at_ms = now_ms
    job.started_ms = 0
    job.credit_ms = 0
    job.timeout_left_ms = max(1, job.timeout_at_ms - now_ms)
    job.timeout_at_ms = 0
    life.make_ready(book, queue, job, now_ms)


def _cancel_instead(book: Book, job: Job, now_ms: int) -> None:
    book.shared.uses.give_back(job, now_ms)
    life.leave(book, job, JobState.CANCELLED, now_ms)
    book.write(job, events.Cancelled(now_ms, *life.whose(job), *life.told_end(job)))
