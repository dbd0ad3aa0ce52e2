"""Jobs as they are handed to workers: thousands in a second, so it may be compiled."""

from collections.abc import Sequence

from headway.core.job import Job
from headway.runtime.views import Handed, LeasedJob


def handed(jobs: Sequence[Job]) -> Handed:
    """The jobs of one lease, in their order."""
    return Handed([_leased_job(job) for job in jobs])


def _leased_job(job: Job) -> LeasedJob:
    return LeasedJob(
        job.seq,
        job.token,
        job.queue,
        job.spec,
        job.payload,
        job.attempt,
        job.attempts_max,
        job.lease_until_ms,
        job.errors,
        job.reply,
        job.is_continued,
    )
