"""Jobs that hold something take their places in a new book.

Nothing happens to a job by that: no event, no attempt, and what it held it holds.
"""

from headway.core.book import Book
from headway.core.entitlement import PROBATION_MS
from headway.core.job import Job
from headway.core.limits import RateGauge
from headway.core.parking import closed_ms
from headway.core.queue import Queue
from headway.core.rulings import gauges_of
from headway.core.states import JobState


def begin(book: Book, now_ms: int) -> None:
    """Before anything else: from when on this partition knows what happens."""
    book.shared.since_ms = now_ms
    book.shared.ledger.trusts_until_ms = now_ms + PROBATION_MS


def restore_job(book: Book, job: Job, now_ms: int) -> None:
    """Puts a job that holds something where it stood.

    It is counted already, unless it is ready: that depends on where it now stands.

    Its queue and the rules of it are there. Other jobs are read when they are needed.
    """
    queue = book.queues[job.queue]
    book.jobs.add(job.seq, job)
    if job.state is JobState.LEASED:
        book.dispatch.resume(queue, job, now_ms)
        _hold(queue, job, now_ms)
        book.leases.add(job.token, job)
    elif job.state is JobState.WAITING:
        _hold(queue, job, now_ms)
        queue.replies.resume(job.reply_key, job)
    else:
        assert job.state is JobState.READY, f"a {job.state} job can't be held"
        assert job.timeout_left_ms, "only a continuation holds while it is ready"
        _hold(queue, job, now_ms)
        job.credit_ms = held_so_far(queue, job, now_ms)
        book.dispatch.add(queue, job, now_ms)
    book.arm(job)


def _hold(queue: Queue, job: Job, now_ms: int) -> None:
    """Takes the units that the job had; what a rate has let pass is past."""
    if not job.is_critical:
        gauges = [x for x in gauges_of(queue, job) if not isinstance(x, RateGauge)]
        queue.shared.uses.take(tuple(gauges), job, now_ms)


def held_so_far(queue: Queue, job: Job, now_ms: int) -> int:
    """How much of its wait does not count, by the clocks that were written down.

    The pauses of its kind are not among them.
    """
    if job.credit_ms:
        return job.credit_ms
    gate, rules = queue.gate, queue.rules
    if (
        not (gate.holds or gate.held_ms or rules.tenants)
        and rules.windows is None
        and job.windows is None
    ):
        # Nothing here was ever held.
        return max(-job.shift_ms, 0)
    queue_ms = queue.gate.time(now_ms)
    rule = queue.rules.rule_of(job.spec.tenant)
    held_ms = now_ms - queue_ms + queue_ms - rule.time(queue_ms) - job.shift_ms
    windows, since_ms = job.spec.windows, job.run_at_ms
    if windows is None:
        windows = queue.rules.config.windows
        since_ms = max(since_ms, queue.rules.windows_ms)
    if windows is not None:
        held_ms += closed_ms(windows, since_ms, now_ms)
    return min(max(held_ms, 0), now_ms - job.run_at_ms)
