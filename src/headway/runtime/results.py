"""Results: read from the store, waited for, and dropped when they are over."""

import heapq
from collections.abc import Iterable
from itertools import count
from typing import Final

import msgspec

from headway.core.book import Book
from headway.core.commands import Changed, Decision, Lease, Withdraw
from headway.core.defaults import SECOND_MS
from headway.core.errors import BadValue, NoResult, RuleBroken
from headway.core.job import Job
from headway.core.results import decode_outcome
from headway.core.spec import JobError
from headway.core.states import LIVE, JobState
from headway.runtime.scanning import job_of
from headway.store.port import Store

WAIT_MAX_MS: Final = 60 * SECOND_MS
"""The longest that an answer is held back."""
WATCHES_MAX: Final = 10_000
"""Answers that are held back at once; more are given as things stand."""
DROPPED_AT_ONCE: Final = 250
"""Results that one commit drops, beside twice as many as it writes."""
SPARE_ENDS: Final = 1_000
REST_MS: Final = SECOND_MS
"""How long nothing is dropped after all that was over is."""


class Watch(msgspec.Struct, eq=False):
    """Asks what became of a job, now or as soon as it has ended. Answered by Ended."""

    seq: int
    wait_ms: int = 0


class EndWatch(msgspec.Struct, eq=False):
    """Whoever asked waits no more: it is answered as things stand. Changed(0) says that
    it was answered before."""

    watch: Watch


class Ended(msgspec.Struct, frozen=True):
    """What became of a job that was asked for its result, as far as it is."""

    seq: int
    queue: str
    state: JobState
    value: bytes | None = None
    problem: str = ""
    """Why a job that is done has no value."""
    ended_ms: int | None = None
    until_ms: int | None = None
    """How long this can be read."""
    errors: tuple[JobError, ...] = ()
    """Of a job that is dead: why it is."""

    @property
    def is_open(self) -> bool:
        """It may still come to a result by itself."""
        return self.state in LIVE


Held = Lease | Watch
"""What may be answered much later."""


def taken_back(held: Held) -> Withdraw | EndWatch:
    """What says that nobody waits for the answer any more."""
    return EndWatch(held) if isinstance(held, Watch) else Withdraw(held)


Told = Ended | Changed | RuleBroken


class Results:
    """Knows who waits for which job, and when results are over."""

    def __init__(self, book: Book, store: Store) -> None:
        self._book = book
        self._store = store
        self._watches: dict[int, dict[Watch, None]] = {}
        self._ends: list[tuple[int, int, Watch]] = []
        """Until when answers are held back, as a heap; some were given meanwhile."""
        self._numbers = count()
        self._waiting = 0
        self._over_ms = store.first_over_ms()
        """When the first result is over; None if there is none."""
        self._is_known = True
        """Nothing was dropped since that was read."""
        self._rests_ms = 0

    def heard(
        self, ask: Watch | EndWatch, now_ms: int
    ) -> list[tuple[Watch | EndWatch, Told]]:
        """The answers that can be given at once."""
        if isinstance(ask, Watch):
            found = self.ask(ask, now_ms)
            return [] if found is None else [(ask, found)]
        if not self._forget(ask.watch):
            return [(ask, Changed(0))]
        return [(ask.watch, self.look(ask.watch.seq, now_ms)), (ask, Changed(1))]

    def ask(self, watch: Watch, now_ms: int) -> Ended | RuleBroken | None:
        """The answer, by what is durable; None if it is held back."""
        if not 0 <= watch.wait_ms <= WAIT_MAX_MS:
            return BadValue("wait_ms", watch.wait_ms, "at most a minute")
        found = self.look(watch.seq, now_ms)
        is_over = isinstance(found, RuleBroken) or not found.is_open
        if is_over or not watch.wait_ms or self._waiting >= WATCHES_MAX:
            return found
        self._watches.setdefault(watch.seq, {})[watch] = None
        self._waiting += 1
        end = now_ms + watch.wait_ms, next(self._numbers), watch
        heapq.heappush(self._ends, end)
        return None

    def look(self, seq: int, now_ms: int) -> Ended | RuleBroken:
        if not 0 < seq <= self._book.last_seq:
            return none_of(seq)
        for _, until_ms, blob in self._store.results([seq]):
            if until_ms > now_ms:
                told = decode_outcome(blob)
                return Ended(
                    seq,
                    told.queue,
                    told.state,
                    told.value,
                    told.problem,
                    told.ended_ms,
                    until_ms,
                )
        job = self._job(seq)
        if job is None or job.spec.result_ms is None:
            return none_of(seq)
        return Ended(seq, job.queue, job.state, errors=job.errors)

    def news(self, decision: Decision, now_ms: int) -> list[tuple[Watch, Told]]:
        """What has become of jobs that are waited for, once that is durable."""
        told: list[tuple[Watch, Told]] = []
        if not self._waiting:
            self._ends.clear()
            return told
        for job in decision.jobs:
            if job.seq in self._watches and job.state not in LIVE:
                seq = job.seq
                told += [(one, self.look(seq, now_ms)) for one in self._watches[seq]]
        while self._ends and self._ends[0][0] <= now_ms:
            watch = heapq.heappop(self._ends)[2]
            if self._forget(watch):
                told.append((watch, self.look(watch.seq, now_ms)))
        for watch, _ in told:
            self._forget(watch)
        if len(self._ends) > 2 * self._waiting + SPARE_ENDS:
            self._ends = [end for end in self._ends if self._is_held(end[2])]
            heapq.heapify(self._ends)
        return told

    def written(self, untils_ms: Iterable[int]) -> None:
        """Results that are kept until then are in the store from now on."""
        first_ms = min(untils_ms)
        if self._over_ms is None or first_ms < self._over_ms:
            self._over_ms = first_ms

    def droppable(self, writes: int, now_ms: int) -> tuple[int, int] | None:
        """What the next commit is to drop, if anything."""
        if self._over_ms is None or now_ms < max(self._over_ms, self._rests_ms):
            return None
        if not self._is_known:
            self._over_ms = self._store.first_over_ms()
            self._is_known = True
            if self._over_ms is None or self._over_ms > now_ms:
                self._rests_ms = now_ms + REST_MS
                return None
        self._is_known = False
        return now_ms, DROPPED_AT_ONCE + 2 * writes

    def next_ms(self) -> int | None:
        """When an answer must be given, or a result be dropped."""
        ends_ms = self._ends[0][0] if self._ends else None
        if self._over_ms is None:
            return ends_ms
        over_ms = max(self._over_ms, self._rests_ms)
        return over_ms if ends_ms is None else min(ends_ms, over_ms)

    def _job(self, seq: int) -> Job | None:
        job = self._book.jobs.get(seq)
        if job is None:
            rows = self._store.jobs([seq])
            return job_of(rows[0]) if rows else None
        return job

    def _is_held(self, watch: Watch) -> bool:
        return watch in self._watches.get(watch.seq, ())

    def _forget(self, watch: Watch) -> bool:
        of_job = self._watches.get(watch.seq, {})
        if watch not in of_job:
            return False
        del of_job[watch]
        self._waiting -= 1
        if not of_job:
            del self._watches[watch.seq]
        return True


def none_of(seq: object) -> NoResult:
    """Whether there never was one can't be told any more."""
    return NoResult(
        f"there is no result of job {seq}: none was asked for, or it is over"
    )
