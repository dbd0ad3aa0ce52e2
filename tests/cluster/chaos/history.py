"""A partition's history, replayed: order, epochs, leases and ends, event by event."""

from collections.abc import Iterable, Iterator
from typing import Any

from headway.core import events
from headway.core.states import JobState
from headway.runtime.records import unpack_chapter
from headway.runtime.recovery import TOKENS_PER_EPOCH
from headway.sim.faults.account import Account, Record
from headway.sim.faults.checks_events import (
    EventChecker,
    Graph,
    LeaseEnds,
    StartTimes,
    Tokens,
)
from headway.sim.faults.verdict import Violation
from headway.store.postgres.reader import open_reader

Chapters = Iterable[tuple[int, list[Any]]]
"""The events of each commit, with the number of the first."""
PAGE = 8 << 20


def chapters(address: str, partition: str) -> Iterator[tuple[int, list[Any]]]:
    """All commits of a partition, as the database has them."""
    reader = open_reader(address, partition)
    number = 1
    try:
        while segments := reader.history(number, PAGE):
            for segment in segments:
                yield segment.first, unpack_chapter(segment.blob).events
                number = segment.first + segment.count
    finally:
        reader.close()


class Told:
    """What one partition's history says; `faults` are what it should not say."""

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self.account = Account()
        self.faults: list[str] = []
        self.events = 0
        self.epochs: set[int] = set()
        """Those that have leased anything."""
        self.leases: dict[int, int] = {}
        """The job of each token."""
        self.keys: dict[int, int] = {}
        self._epoch = 0
        self._now_ms = 0
        self._checkers: list[EventChecker] = [
            Graph(),
            Tokens(),
            LeaseEnds(),
            StartTimes(),
        ]

    def read(self, chapters: Chapters) -> None:
        number = 1
        for first, some in chapters:
            if first != number:
                self._fault(f"{number} is followed by {first}")
            number = first + len(some)
            for event in some:
                self.see(event)

    def see(self, event: Any) -> None:
        self.events += 1
        if event.at_ms < self._now_ms:
            self._fault(f"time goes back: {event}")
        self._now_ms = event.at_ms
        if not isinstance(event, events.Event):
            return
        record = self.account.records.get(event.seq)
        if record is None and not isinstance(event, events.Enqueued):
            self._fault(f"an event of nobody: {event}")
            return
        for checker in self._checkers:
            if isinstance(event, checker.sees):
                self._try(checker, event, record)
        if isinstance(event, events.Leased):
            self._leased(event)
        self.account.apply(event)

    def state(self, seq: int) -> JobState | None:
        record = self.account.records.get(seq)
        return None if record is None else record.state

    def _leased(self, event: events.Leased) -> None:
        epoch = event.token // TOKENS_PER_EPOCH
        if epoch < self._epoch:
            self._fault(f"epoch {epoch} writes after {self._epoch}: {event}")
        self._epoch = epoch
        self.epochs.add(epoch)
        self.leases[event.token] = event.seq

    def _try(self, checker: EventChecker, event: Any, record: Record | None) -> None:
        try:
            checker.see(event, record)
        except Violation as violation:
            self._fault(str(violation))

    def _fault(self, text: str) -> None:
        self.faults.append(f"history of {self.partition}: {text}")
