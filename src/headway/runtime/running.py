"""What runs of queues that have a throttler, counted as it changes.

Nothing is ever looked for: every count follows the jobs that a decision has changed, and
what is told to a throttler is what has changed since it was told last. A partition
without throttlers has none of this.
"""

from collections.abc import Iterable

from headway.core.book import Book
from headway.core.job import Job
from headway.core.states import LEASED, READY, WAITING
from headway.throttling.messages import KIND, LABEL, QUEUE, TENANT, Key

Changed = list[tuple[Key, int]]


class Tally:
    """What runs of one queue, and of the others as far as their number goes."""

    def __init__(self, book: Book, queue: str) -> None:
        self._book = book
        self._queue = queue
        self._counts: dict[Key, int] = {}
        self._counted: dict[int, tuple[Key, ...]] = {}
        """By seq, what each job that runs counts as."""
        self._changed: dict[Key, None] = {}
        for job in book.jobs.values():
            if job.queue == queue:
                self.look(job)
        others = book.queues.items()
        self.touch(name for name, other in others if other.leased or other.waiting)

    def look(self, job: Job) -> None:
        """The job may run now, or not any more."""
        keys = self._counted.get(job.seq)
        if runs(job) == (keys is not None):
            return
        if keys is None:
            keys = self._counted[job.seq] = keys_of(job)
            self._add(keys, 1)
        else:
            self.drop(job)

    def drop(self, job: Job) -> None:
        """It does not run."""
        keys = self._counted.pop(job.seq, None)
        if keys is not None:
            self._add(keys, -1)

    def _add(self, keys: tuple[Key, ...], more: int) -> None:
        for key in keys:
            self._changed[key] = None
            count = self._counts.get(key, 0) + more
            if count:
                self._counts[key] = count
            else:
                del self._counts[key]

    def ask(self, job: Job) -> None:
        """It is asked about: so it does not run, whatever was thought before.

        What its throttler makes of it is told there as soon as it is known here.
        """
        self.drop(job)
        for key in keys_of(job):
            self._changed[key] = None

    def touch(self, queues: Iterable[str]) -> None:
        """Jobs of these queues have changed."""
        for name in queues:
            self._changed[QUEUE, name, ""] = None

    def take(self) -> Changed:
        """What has changed since the last time, as it is now."""
        changed, self._changed = self._changed, {}
        return [(key, self._count(key)) for key in changed]

    def _count(self, key: Key) -> int:
        axis, name, _ = key
        if axis != QUEUE or name == self._queue:
            return self._counts.get(key, 0)
        queue = self._book.queues.get(name)
        return 0 if queue is None else queue.leased + queue.waiting


def runs(job: Job) -> bool:
    """Whether it holds limits, or would at once: one that was told to start counts."""
    state = job.state
    if job.is_critical:
        return False
    if state is READY:
        return bool(job.cleared_ms or job.timeout_left_ms)
    return state is LEASED or state is WAITING


def keys_of(job: Job) -> tuple[Key, ...]:
    labels = job.spec.labels or {}
    return (
        (QUEUE, job.queue, ""),
        (KIND, job.kind, ""),
        (TENANT, job.tenant, ""),
        *((LABEL, name, value) for name, value in labels.items()),
    )


class Tallies:
    """Of all queues of a partition that have a throttler."""

    def __init__(self, book: Book, queues: Iterable[str]) -> None:
        self.of = {name: Tally(book, name) for name in queues}

    def follow(self, jobs: Iterable[Job]) -> None:
        """These have changed."""
        touched: dict[str, None] = {}
        for job in jobs:
            name = job.queue
            touched[name] = None
            tally = self.of.get(name)
            if tally is not None:
                tally.look(job)
        for tally in self.of.values():
            tally.touch(touched)
