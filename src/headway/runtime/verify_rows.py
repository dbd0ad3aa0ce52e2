"""What must hold for every row of a store: the job in it, and the place it is in."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from headway.core.book import Book
from headway.core.config import Order
from headway.core.job import Job
from headway.core.states import JobState
from headway.runtime.forms import Counts
from headway.runtime.records import place_of_dead, unpack_job
from headway.runtime.recovery import TOKENS_PER_EPOCH
from headway.store.port import DEAD, HELD, SCHEDULED, Row

Lanes = dict[int, tuple[str, int, bool]]
"""Queue, SLO and whether it is exempt from limits, by the number of the lane."""
HOLDING: Final = (JobState.LEASED, JobState.WAITING)


class RowCheck:
    """Looks at rows one by one, and counts what it has seen."""

    def __init__(self, book: Book, lanes: Lanes, epoch: int) -> None:
        """The book knows the queues and their rules."""
        self._book = book
        self._lanes = lanes
        self._epoch = epoch
        self._tokens: dict[int, int] = {}
        """Jobs by the token of their lease."""
        self.counts: dict[str, Counts] = {}
        self._continuing: Counter[str] = Counter()
        """Jobs that are ready to go on after a wait, by queue: lanes do not count them."""

    def look(self, row: Row) -> tuple[JobState | None, list[str]]:
        """The job's state, None if it can't be read; and what is wrong with it."""
        seq = row[0]
        try:
            job = unpack_job(seq, row[6], row[5])
        except (msgspec.MsgspecError, TypeError, IndexError, ValueError) as error:
            return None, [f"job {seq} can't be read: {error}"]
        self._count(job, row[1])
        found = [*self._place(job, row), *self._lease(job)]
        if job.queue not in self._book.queues:
            found.append(f"its queue {job.queue!r} is not known")
        if not 0 <= job.attempt <= job.attempts_max:
            found.append(f"it is at attempt {job.attempt} of {job.attempts_max}")
        return job.state, [f"job {seq}: {problem}" for problem in found]

    def recount(self, name: str, written: Counts) -> Iterator[str]:
        """What is wrong with the counts of a queue, after all rows (invariant 18)."""
        found = self.counts.get(name, Counts(0, 0, 0, 0, 0, {}))
        for state in ("ready", "scheduled", "leased", "waiting", "dead"):
            there, told = getattr(found, state), getattr(written, state)
            if there != told:
                yield f"queue {name!r}: {there} jobs are {state}, {told} counted"
        for lane in sorted(found.lanes.keys() | written.lanes.keys()):
            there, told = found.lanes.get(lane, 0), written.lanes.get(lane, 0)
            if there != told:
                yield f"lane {lane} of {name!r}: {there} jobs, {told} counted"
        if sum(written.lanes.values()) + self._continuing[name] != written.ready:
            yield f"queue {name!r}: its lanes have not the {written.ready} ready jobs"

    def _count(self, job: Job, lane: int) -> None:
        counts = self.counts.get(job.queue)
        if counts is None:
            counts = self.counts[job.queue] = Counts(0, 0, 0, 0, 0, {})
        name = str(job.state)
        if name in Counts.__struct_fields__:
            setattr(counts, name, getattr(counts, name) + 1)
        if job.state is JobState.READY:
            if lane > 0:
                counts.lanes[lane] = counts.lanes.get(lane, 0) + 1
            else:
                self._continuing[job.queue] += 1

    def _place(self, job: Job, row: Row) -> list[str]:
        _, lane, turn, first, second, _, _ = row
        state = job.state
        if lane > 0:
            is_right = state is JobState.READY
        elif lane == HELD:
            is_continuing = state is JobState.READY and job.timeout_left_ms > 0
            is_right = state in HOLDING or is_continuing
        else:
            expected = {SCHEDULED: JobState.SCHEDULED, DEAD: JobState.DEAD}
            is_right = state is expected.get(lane)
        if not is_right:
            return [f"it is {state}, but in lane {lane}"]
        if lane > 0:
            return self._ready(job, lane, (first, second))
        if lane == SCHEDULED and (first, second) != (job.run_at_ms, 0):
            return [f"it is due at {job.run_at_ms}, but stands at {first}"]
        if lane == DEAD:
            return _dead(job, turn)
        return []

    def _ready(self, job: Job, lane: int, key: tuple[int, int]) -> list[str]:
        known = self._lanes.get(lane)
        if known is None:
            return [f"it is in lane {lane}, which nothing is known of"]
        if known != (job.queue, job.slo_ms, job.spec.is_critical):
            return [f"it is in lane {lane}, which is of {known}"]
        queue = self._book.queues.get(job.queue)
        if queue is None or queue.rules.config.order is Order.LEVELS:
            return []
        if key not in (
            (job.priority, job.run_at_ms),
            (job.run_at_ms, job.priority),  # of a queue that was in order of time
        ):
            expected = queue.rules.key_of(job)
            return [f"it stands at {key}, but belongs at {expected}"]
        return []

    def _lease(self, job: Job) -> list[str]:
        token = job.token
        if job.state is not JobState.LEASED:
            return [f"it is {job.state}, but has token {token}"] if token else []
        if token <= 0:
            return ["it is leased, but has no token"]
        found = []
        if token // TOKENS_PER_EPOCH > self._epoch:
            found.append(f"its token {token} is of an epoch that is yet to come")
        other = self._tokens.setdefault(token, job.seq)
        if other != job.seq:
            found.append(f"its token {token} is that of job {other}, too")
        if job.attempt < 1:
            found.append("it is leased, but was never delivered")
        return found


def _dead(job: Job, turn: bytes) -> list[str]:
    found = []
    if not job.errors:
        found.append("it is dead, but keeps no error")
    if turn != place_of_dead(job.queue):
        found.append(f"it is a dead letter of {turn!r}, but of queue {job.queue!r}")
    return found
