"""All checkers at their places: beside every commit, answer, delivery and take-over."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from headway.core import events
from headway.core.config import QueueConfig
from headway.runtime.owner import Ask, Owner
from headway.runtime.records import unpack_chapter
from headway.runtime.views import Count, LeasedJob
from headway.sim.faults.account import Account
from headway.sim.faults.checks_clients import Idempotency, TotalQueue, Truth
from headway.sim.faults.checks_events import EventChecker, event_checkers, unfinished
from headway.sim.faults.checks_rules import Concurrencies, Holds, RatesKept
from headway.sim.faults.checks_store import (
    ALL,
    ChapterCounts,
    Epochs,
    Numbers,
    Prefix,
    Rows,
    five,
    replayed,
)
from headway.sim.faults.verdict import expect
from headway.store.port import Segment, Store


class Panel:
    """Follows history as it is written, and compares everything else with it."""

    def __init__(self, configs: Sequence[QueueConfig], *, is_calm: bool) -> None:
        self.account = Account()
        self.rows = Rows(self.account)
        self.epochs = Epochs()
        self.total = TotalQueue(self.account)
        self.digest = blake2b(digest_size=16)
        self.keys = Idempotency(
            self.account, {c.name: c.idempotency_window_ms for c in configs}
        )
        self._queues = [config.name for config in configs]
        self._numbers = Numbers()
        self._prefix = Prefix()
        self._chapter_counts = ChapterCounts(self.account)
        self._truth = Truth(self.account, self.rows)
        self._asks: Sequence[Ask] = ()
        self._is_deciding = False
        early_ms = min(config.early_reply_ms for config in configs)
        self._checkers: list[EventChecker] = [
            *event_checkers(
                {c.name: c.attempts_max for c in configs}, early_ms, is_calm=is_calm
            ),
            Concurrencies(),
            RatesKept(configs),
            Holds(),
        ]
        self._seeing: dict[type, list[Any]] = {}
        for checker in self._checkers:
            for kind in dict.fromkeys(checker.sees):
                self._seeing.setdefault(kind, []).append(checker.see)

    def begin(self, asks: Sequence[Ask]) -> None:
        """An owner is about to decide these; what comes of it may be unknown."""
        self._asks = asks
        self._is_deciding = True

    def committed(self, store: Store) -> None:
        """The owner says that it has written what it decided."""
        for segment in store.history(self._numbers.next, ALL):
            self._follow(segment)
        self._is_deciding = False

    def answered(self, answers: Sequence[tuple[Ask, Any]], now_ms: int) -> None:
        """What the owner is about to tell its clients."""
        for ask, reply in answers:
            self._truth.answered(ask, reply)
            self.keys.answered(ask, reply, now_ms)

    def delivered(self, job: LeasedJob) -> None:
        self.total.delivered(job)
        self.keys.delivered(job)

    def taken_over(self, owner: Owner, store: Store) -> None:
        """Only of a step that did not end it may be unknown what it has written."""
        self.epochs.taken(owner.epoch)
        found = self._prefix.check(store)
        is_known = self._is_deciding or not found
        expect(is_known, "invariant 11: commits of nobody", len(found))
        self._is_deciding = False
        for segment in found:
            self._follow(segment)
        self.rows.check(store)
        queues = owner.partition.book.queues
        for name in self._queues:
            if name in queues:
                held, expected = five(queues[name]), replayed(self.account, name)
                expect(held == expected, "invariant 18: counters", name, held, expected)
            else:
                expect(not self._prefix.segments, "invariant 1: a queue is gone", name)

    def counted(self, answers: Sequence[tuple[Ask, Any]]) -> None:
        """What the owner answers when it is asked to count."""
        for ask, reply in answers:
            if isinstance(ask, Count):
                expected = replayed(self.account, ask.queue)
                is_same = five(reply) == expected
                expect(is_same, "invariant 18: count", ask.queue, reply, expected)

    def unwritten(self, store: Store) -> None:
        """Of what was decided by a replaced owner nothing may be in the store."""
        last = store.last_segment()
        end = 1 if last is None else last.first + last.count
        expect(end == self._numbers.next, "invariant 11: a replaced owner wrote", last)

    def drained(self) -> None:
        expect(self.account.live == 0, "invariant 1", unfinished(self.account))
        self.total.drained()

    def is_drained(self) -> bool:
        return self.account.live == 0

    def _follow(self, segment: Segment) -> None:
        chapter = unpack_chapter(segment.blob)
        self._numbers.follow(segment, len(chapter.events))
        self._prefix.segments.append(segment)
        self.digest.update(segment.blob)
        asks, self._asks = self._asks, ()
        for checker in self._checkers:
            checker.begin(asks)
        records, seeing = self.account.records, self._seeing
        for event in chapter.events:
            if isinstance(event, events.Event):
                record = records.get(event.seq)
                for see in seeing[type(event)]:
                    see(event, record)
                self.account.apply(event)
            else:
                for see in seeing.get(type(event), ()):
                    see(event, None)
        self._chapter_counts.follow(chapter)
