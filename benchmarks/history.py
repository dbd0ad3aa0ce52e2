"""A store with as much history as is wanted, made without the work it tells of.

Every job is enqueued, leased and acked, some after a failure; chapters hold what an
owner's commits hold, counts included, so that every check of a reader holds.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.core import events
from headway.runtime.forms import Chapter, Counts
from headway.runtime.journal import CHECKPOINT_FACT, READER_FACT
from headway.runtime.records import encode, pack_name
from headway.runtime.retention import Reader
from headway.store.port import Batch, Segment
from headway.store.sqlite.store import SqliteStore

START_MS = 1_790_000_000_000
QUEUES = 5
SLOS_MS = (1_000, 5_000, 60_000)
TENANTS = 200
KINDS = ("mail", "thumb", "report", "sync")
CHAPTER = 400
"""Events of a commit, about as many as under load."""
OPEN_MAX = 20_000
"""Jobs that are under way at any moment."""
FAILS = 0.03
Whose = tuple[int, int, str, int, str, str]
"""What every event says of its job."""


class Past:
    """Makes up events, a chapter at a time."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._seq = 0
        self._token = 0
        self._now_ms = START_MS
        self._ready: list[tuple[Any, ...]] = []
        self._leased: list[tuple[Any, ...]] = []
        self._retries: list[tuple[Any, ...]] = []
        self._open: dict[str, list[int]] = {}

    def chapter(self) -> tuple[Chapter, int]:
        told: list[Any] = []
        touched: set[str] = set()
        self._now_ms += 20
        while len(told) < CHAPTER:
            if len(self._ready) + len(self._leased) < OPEN_MAX:
                told += [self._enqueue() for _ in range(CHAPTER // 3)]
            told += [self._lease() for _ in range(min(len(self._ready), CHAPTER // 3))]
            told += [self._end() for _ in range(min(len(self._leased), CHAPTER // 3))]
        for event in told:
            touched.add(event.queue)
        counts = {
            name: Counts(ready, 0, leased, 0, 0, {})
            for name, (ready, leased) in self._open.items()
            if name in touched
        }
        return Chapter(self._seq, counts, told), self._now_ms

    def _enqueue(self) -> events.Enqueued:
        draw = self._draw
        self._seq += 1
        queue = f"queue-{draw.randrange(QUEUES)}"
        job = (
            self._seq,
            0,
            queue,
            SLOS_MS[draw.randrange(3)],
            f"tenant-{draw.randrange(TENANTS)}",
            KINDS[draw.randrange(4)],
        )
        self._ready.append((job, self._now_ms, 1))
        self._open.setdefault(queue, [0, 0])[0] += 1
        return events.Enqueued(self._now_ms, *job, self._now_ms, 100, 1)

    def _lease(self) -> events.Leased:
        job: Whose
        job, ready_ms, attempt = self._taken(self._ready)
        self._token += 1
        self._leased.append((job, self._now_ms, attempt, self._token))
        counts = self._open[job[2]]
        counts[0] -= 1
        counts[1] += 1
        now_ms = self._now_ms
        worker = f"worker-{self._token % 50}"
        wait_ms = now_ms - ready_ms
        return events.Leased(
            now_ms, *job, attempt, self._token, worker, wait_ms, 0, now_ms + 30_000
        )

    def _end(self) -> events.Acked | events.Retried:
        job: Whose
        job, started_ms, attempt, token = self._taken(self._leased)
        now_ms = self._now_ms
        run_ms = now_ms - started_ms
        counts = self._open[job[2]]
        counts[1] -= 1
        if attempt == 1 and self._draw.random() < FAILS:
            counts[0] += 1
            self._ready.append((job, now_ms, 2))
            text = f"TimeoutError: partner {job[0] % 7} after {run_ms} ms"
            return events.Retried(
                now_ms, *job, attempt, run_ms, "failed", text, now_ms, token
            )
        return events.Acked(now_ms, *job, attempt, run_ms, token)

    def _taken(self, jobs: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Any of them, at the price of one."""
        place = self._draw.randrange(len(jobs))
        jobs[place], jobs[-1] = jobs[-1], jobs[place]
        return jobs.pop()


def chapters(count: int, seed: int = 1) -> Iterator[Segment]:
    past = Past(seed)
    first = 1
    while first <= count:
        chapter, at_ms = past.chapter()
        yield Segment(first, len(chapter.events), at_ms, encode(chapter))
        first += len(chapter.events)


def write(path: Path, count: int) -> int:
    """A store with at least so many events; answers how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(path)
    epoch = store.take_over()
    # Nobody recovers what it tells of, and all of it is kept for its reader.
    kept = (READER_FACT, pack_name("", "pipeline"), encode(Reader(1)))
    last = 0
    try:
        store.commit(Batch([], [], [], [kept], []), epoch)
        for segment in chapters(count):
            last = segment.first + segment.count - 1
            store.commit(Batch([], [], [], [], [], segment), epoch)
        done = (CHECKPOINT_FACT, b"", encode(last + 1))
        store.commit(Batch([], [], [], [done], []), epoch)
    finally:
        store.close()
    return last
