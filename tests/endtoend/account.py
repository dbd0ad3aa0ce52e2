"""A full account: history, the store and what clients were told have to agree."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.core import events
from headway.core.states import JobState
from headway.runtime.records import unpack_chapter
from headway.sim.faults.account import Account as Replayed
from headway.sim.faults.account import Record
from headway.sim.faults.checks_events import (
    EventChecker,
    Graph,
    LeaseEnds,
    Replies,
    StartTimes,
    Ticks,
    Tokens,
)
from headway.sim.faults.checks_rules import Holds
from headway.sim.faults.verdict import Violation, expect
from headway.store.sqlite.snapshot import Snapshot
from tests.endtoend import plan
from tests.endtoend.limits_kept import Limits
from tests.endtoend.told import Told

NOTICE_MS: Final = 5_000
"""P7: a lease that is over is noticed so soon, or so soon after the server's start."""
EARLY_MS: Final = 86_400_000
ENDED_BY: Final[dict[str, tuple[type, ...]]] = {
    "ack": (events.Acked,),
    "nack": (events.Retried, events.Buried, events.Cancelled),
    "release": (events.Released, events.Cancelled),
    "wait": (events.Waited, events.Cancelled),
}
"""How a lease must have ended by history if its worker was told that it has."""

Key = tuple[str, str, int]
"""An idempotency key of a queue, and its job."""


@dataclass
class Kept:
    """What a stopped server has left."""

    chapters: list[tuple[int, list[Any]]] = field(default_factory=list)
    """Events by commit, each with the number of its first."""
    keys: list[Key] = field(default_factory=list)


def read(path: Path) -> Kept:
    with Snapshot(path) as snapshot:
        chapters = [
            (s.first, unpack_chapter(s.blob).events) for s in snapshot.segments()
        ]
        keys = [
            (queue, key, seq) for queue, key, seq, *_ in snapshot.idempotency_keys()
        ]
    return Kept(chapters, keys)


class Attempts(EventChecker):
    """7: one more with every delivery, and never more than the job has."""

    sees = (events.Leased,)

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        expected = record.attempt + (not record.is_continuing)
        expect(event.attempt == expected, "invariant 7", event, expected)
        most = plan.attempts_max(event.queue, event.kind)
        expect(event.attempt <= most, "invariant 7: too many", event, most)


class Notices(EventChecker):
    """P7: silence is noticed soon after the end of the lease."""

    sees = (events.Lost, events.Buried, events.Cancelled)

    def __init__(self, down: Iterable[tuple[int, int]]) -> None:
        self._down = sorted(down)
        self.longest_ms = 0
        """Between the end of a lease and its notice, while the server was up."""

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        if not record.token or event.at_ms < record.lease_until_ms:
            return
        from_ms = record.lease_until_ms
        took_ms = 0
        for down_ms, up_ms in self._down:
            if from_ms < up_ms and down_ms < event.at_ms:
                took_ms = max(took_ms, down_ms - from_ms)
                from_ms = up_ms
        took_ms = max(took_ms, event.at_ms - from_ms)
        self.longest_ms = max(self.longest_ms, took_ms)
        expect(took_ms <= NOTICE_MS, "P7: noticed late", event, from_ms)


class Windows(EventChecker):
    """Where a window is closed nothing starts, whether it is a queue's or a job's."""

    sees = (events.Leased,)

    def __init__(self, closed: Iterable[tuple[str, int, int]], opens_ms: int) -> None:
        self._closed = list(closed)
        self._opens_ms = opens_ms

    def see(self, event: Any, record: Record | None) -> None:
        is_early = event.kind == plan.WINDOW and event.at_ms < self._opens_ms
        expect(not is_early, "started outside its window", event, self._opens_ms)
        for queue, from_ms, to_ms in self._closed:
            is_shut = queue == event.queue and from_ms < event.at_ms < to_ms
            expect(not is_shut, "started outside its window", event)


class Account:
    """Goes through all events once; what is wrong is kept in words."""

    def __init__(self, told: Told) -> None:
        self.faults: list[str] = list(told.strange)
        self.events = 0
        self.kinds: Counter[str] = Counter()
        """Events by their tag."""
        self.replayed = Replayed()
        self.notices = Notices(told.down)
        self.redelivered = 0
        self.noticed_ms = 0
        """The longest between a worker's death and the notice of its lost lease."""
        self._told = told
        self._next = 1
        self._now_ms = 0
        self._ticked: Counter[int] = Counter()
        self._resolved: Counter[str] = Counter()
        self._workers: dict[int, str] = {}
        self._seqs: dict[int, int] = {}
        """The job of each token."""
        self._checkers: dict[type, list[EventChecker]] = {}
        self._replies = Replies(EARLY_MS)
        self._all: list[EventChecker] = [
            Graph(),
            Attempts(),
            Tokens(),
            LeaseEnds(),
            StartTimes(),
            Ticks(),
            Holds(),
            self._replies,
            self.notices,
            Windows(told.closed, told.opens_ms),
            Limits(plan.QUEUES),
        ]
        for checker in self._all:
            for kind in checker.sees:
                self._checkers.setdefault(kind, []).append(checker)

    def check(self, kept: Kept) -> list[str]:
        """All faults."""
        for first, some in kept.chapters:
            if first != self._next:
                self._fault(f"history: {self._next} is followed by {first}")
            self._next = first + len(some)
            self._try(self._replies, None, None)
            for event in some:
                self._see(event)
        self._check_ends()
        self._check_accepted(kept.keys)
        self._check_workers()
        return self.faults

    def _fault(self, text: str) -> None:
        self.faults.append(text)

    def _try(self, checker: EventChecker, event: Any, record: Record | None) -> None:
        try:
            if event is None:
                checker.begin(())
            else:
                checker.see(event, record)
        except Violation as violation:
            self._fault(str(violation))

    def _see(self, event: Any) -> None:
        self.events += 1
        if event.at_ms < self._now_ms:
            self._fault(f"history: time goes back: {event}")
        self._now_ms = event.at_ms
        kind = type(event)
        self.kinds[str(kind.__struct_config__.tag)] += 1
        is_of_job = isinstance(event, events.Event)
        record = self.replayed.records.get(event.seq) if is_of_job else None
        if is_of_job and record is None and kind is not events.Enqueued:
            self._fault(f"invariant 2: an event of nobody: {event}")
            return
        # Every rule about the event is looked at, whichever is broken first.
        for checker in self._checkers.get(kind, ()):
            if kind is events.RuleChanged and event.what.startswith(("tenant", "kind")):
                continue  # weights only: nothing that history could be held to
            self._try(checker, event, record)
        self._note(event, record)
        if is_of_job:
            self.replayed.apply(event)

    def _note(self, event: Any, record: Record | None) -> None:
        match event:
            case events.Ticked(seq=seq) if seq:
                self._ticked[seq] += 1
            case events.Leased():
                assert record is not None
                self.redelivered += record.leases > 0 and not record.is_continuing
                self._workers[event.token] = event.worker
                self._seqs[event.token] = event.seq
            case events.Lost():
                assert record is not None
                died_ms = self._told.deaths.get(self._workers.get(record.token, ""))
                if died_ms is not None:
                    self.noticed_ms = max(self.noticed_ms, event.at_ms - died_ms)
            case events.Replied(is_early=False):
                self._resolved[event.reply_key] += 1

    def _check_ends(self) -> None:
        """1 and 29: every job has come to an end."""
        records = self.replayed.records
        for seq in self.replayed.open_jobs():
            self._fault(f"invariant 1: job {seq} has no outcome: {records[seq].state}")
        for seq in self._told.cancelled:
            record = records.get(seq)
            if record is None or record.state is not JobState.CANCELLED:
                self._fault(f"P1: job {seq} was cancelled, and is not")

    def _check_accepted(self, keys: list[Key]) -> None:
        """P1, 2, 19: what was accepted is there once, and nothing else is."""
        records = self.replayed.records
        accepted = self._told.accepted
        for number, seq in accepted.items():
            if seq not in records:
                self._fault(f"P1: {number} was accepted as {seq}; history has no such")
        for seq, count in (Counter(accepted.values()) + self._ticked).items():
            if count > 1:
                self._fault(f"invariant 5: job {seq} is {count} jobs")
        unasked = records.keys() - set(accepted.values()) - self._ticked.keys()
        for seq in sorted(unasked):
            self._fault(f"invariant 2: job {seq} was asked for by nobody")
        known = {key: seq for _, key, seq in keys}
        if len(known) != len(keys):
            self._fault("invariant 19: a key has two jobs")
        for number, seq in accepted.items():
            if known.get(f"job-{number}") != seq:
                self._fault(f"invariant 19: {number} is {seq}, not its key's job")

    def _check_workers(self) -> None:
        """P1, P5, P9: what a worker was told has happened, to the job it was given."""
        resolved: Counter[str] = Counter()
        for verb, words in self._told.workers:
            if verb == "lease":
                for word in words:
                    self._check_handed(*map(int, word.split(":")))
            elif verb == "resolved":
                resolved.update(words)
            elif verb in ENDED_BY:
                for token in map(int, words):
                    ended = self.replayed.ended.get(token)
                    if ended not in ENDED_BY[verb]:
                        self._fault(f"P1: {verb} of {token} was answered; {ended}")
        for key, count in (resolved - self._resolved).items():
            self._fault(f"P9: {key} was resolved {count} times more than history says")

    def _check_handed(self, token: int, number: int) -> None:
        seq = self._seqs.get(token)
        if seq is None:
            self._fault(f"P1: lease {token} was handed out; history has no such")
        elif number >= 0 and self._told.accepted.get(number, seq) != seq:
            self._fault(f"invariant 6: job {seq} came with the payload of {number}")

    def outcomes(self) -> Iterator[tuple[str, int]]:
        """How many jobs have come to which end."""
        ends = Counter(str(record.state) for record in self.replayed.records.values())
        yield from sorted(ends.items())
