"""An owner at a desk: asked by hand, at a time that is set by hand."""

from typing import TypeVar

from headway.core.bounds import Bounds
from headway.core.commands import Accepted, Ack, Configure, Enqueue, Lease, Nack
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.owner import Ask, Owner, Reply
from headway.runtime.retention import Retention
from headway.runtime.views import (
    Count,
    Handed,
    HistoryPage,
    QueueCounts,
    ReadHistory,
)
from headway.store.memory import MemoryDisk, MemoryStore
from tests.runtime.written import FixedClock

T = TypeVar("T")
START_MS = 1_700_000_000_000
SMALL = Bounds(jobs_max=20, turns_max=4, scheduled_max=10)


class Desk:
    """One owner at a time over the same disk, and a clock that is set by hand."""

    def __init__(
        self, bounds: Bounds = SMALL, retention: Retention | None = None
    ) -> None:
        self.disk = MemoryDisk()
        self.retention = retention
        self.bounds = bounds
        self.now_ms = START_MS
        self.open()
        self.ask(Configure(QueueConfig(name="q")))

    def open(self) -> None:
        self.store = MemoryStore(self.disk)
        self.owner = Owner(self.store, self.bounds, self.retention)
        self.owner.take_over(FixedClock(self.now_ms))

    def ask(self, ask: Ask) -> Reply:
        answers = dict(self.owner.step([ask], self.now_ms))
        while ask not in answers:
            answers = dict(self.owner.step([], self.now_ms))
        return answers[ask]

    def put(self, count: int, **fields: object) -> list[int]:
        specs = [JobSpec(**fields) for _ in range(count)]  # type: ignore[arg-type]
        accepted = self.ask(Enqueue("q", specs))
        assert isinstance(accepted, Accepted)
        return accepted.seqs

    def lease(self, most: int) -> list[int]:
        handed = self.ask(Lease(max=most))
        assert isinstance(handed, Handed)
        self.ask(Ack([job.token for job in handed.jobs]))
        return [job.seq for job in handed.jobs]

    def bury(self, count: int, text: str = "broken", **fields: object) -> list[int]:
        """New jobs that fail at once, for good."""
        seqs = self.put(count, **fields)
        handed = self.ask(Lease(max=count))
        assert isinstance(handed, Handed)
        assert sorted(job.seq for job in handed.jobs) == seqs
        nacks = [Nack(job.token, text, is_bury=True) for job in handed.jobs]
        assert len(self.owner.step(nacks, self.now_ms)) == count
        return seqs

    def counts(self, queue: str = "q") -> QueueCounts:
        counts = self.ask(Count(queue))
        assert isinstance(counts, QueueCounts)
        return counts

    def events(self, kind: type[T]) -> list[T]:
        """All that ever happened of a kind."""
        page = self.ask(ReadHistory(most_bytes=1 << 30))
        assert isinstance(page, HistoryPage)
        return [event for event in page.events if isinstance(event, kind)]
