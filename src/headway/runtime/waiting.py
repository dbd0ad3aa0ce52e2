"""How long the ready jobs of a lane have waited, in memory and in the store."""

from collections.abc import Callable
from typing import Final

import msgspec

from headway.core.backlog import LOOKED_AT, backlog
from headway.core.book import Book
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.queue import Queue
from headway.core.restore import held_so_far

HEADS_MAX: Final = 4_096
"""Turns whose first job is read from the store for one answer, over all lanes."""
HEADS_EACH: Final = 256
"""The same for one lane."""

BRIEF: Final = 1_000
"""Jobs of a lane that are looked at for a brief answer."""

Heads = Callable[[Lane, int], list[Job]]
"""From a lane to the first job of so many of its turns, as the store has them."""


class LaneWait(msgspec.Struct, frozen=True, kw_only=True):
    """The ready jobs of a lane. Times leave out what was held."""

    ready: int = 0
    late: int = 0
    """Of them, those past their SLO, at least: not all may be in memory."""
    oldest_ms: int = 0
    """How long the oldest has waited, at least."""
    mean_ms: int = 0
    """How long they have waited on average; those not looked at as if spread evenly."""
    is_sure: bool = True
    """All of them are in memory: nothing is merely at least so."""


_NOTHING: Final = LaneWait()


class Waits:
    """Answers by lane; reads from the store, within bounds, what memory does not hold.

    Of every turn in the store only its first job is read: of several priorities the
    last may have older ones, and of more turns than are read one may.
    """

    def __init__(
        self,
        book: Book,
        now_ms: int,
        heads: Heads | None = None,
        looked_at: int = LOOKED_AT,
    ) -> None:
        self._book = book
        self._now_ms = now_ms
        self._heads = heads
        self._looked_at = looked_at
        self._left = HEADS_MAX

    def of(self, name: str, slo_ms: int) -> LaneWait:
        queue = self._book.queues.get(name)
        if queue is None or not queue.ready:
            return _NOTHING
        told = backlog(queue, slo_ms, self._now_ms, self._looked_at)
        oldest_ms, late = told.oldest_ms, told.late
        if not told.is_whole:
            for job in self._stored(queue, slo_ms):
                wait_ms = self._wait_ms(queue, job)
                late += wait_ms > slo_ms
                oldest_ms = max(oldest_ms, wait_ms)
        unseen = told.ready - told.seen
        waited_ms = told.waited_ms + unseen * oldest_ms // 2
        return LaneWait(
            ready=told.ready,
            late=late,
            oldest_ms=oldest_ms,
            mean_ms=waited_ms // max(1, told.ready),
            is_sure=told.is_whole,
        )

    def together(self, lanes: list[tuple[str, int]]) -> LaneWait:
        """Several lanes as one."""
        told = [self.of(*key) for key in lanes]
        return LaneWait(
            ready=sum(lane.ready for lane in told),
            late=sum(lane.late for lane in told),
            oldest_ms=max((lane.oldest_ms for lane in told), default=0),
            mean_ms=sum(lane.ready * lane.mean_ms for lane in told)
            // max(1, sum(lane.ready for lane in told)),
            is_sure=all(lane.is_sure for lane in told),
        )

    def _stored(self, queue: Queue, slo_ms: int) -> list[Job]:
        """The first job of some turns, where memory does not have it."""
        jobs: list[Job] = []
        for lane in (queue.lanes.get(slo_ms), queue.exempt.get(slo_ms)):
            if lane is not None and lane.ready and self._heads is not None:
                most = max(1, min(HEADS_EACH, self._left))
                self._left -= most
                jobs += self._heads(lane, most)
        return [job for job in jobs if job.seq not in self._book.jobs]

    def _wait_ms(self, queue: Queue, job: Job) -> int:
        return self._now_ms - job.run_at_ms - held_so_far(queue, job, self._now_ms)
