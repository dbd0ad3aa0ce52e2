"""Checkers of single events, one invariant each, against the account before the event."""

from collections.abc import Sequence
from typing import Any, Final

from headway.core import events
from headway.core.commands import Ack, Extend, Nack, Release, Wait
from headway.core.states import JobState, is_allowed
from headway.runtime.owner import Ask
from headway.sim.faults.account import Account, Record, target_of
from headway.sim.faults.verdict import expect


class EventChecker:
    """Sees every event of a job before it is applied. `record` is None at first."""

    sees: tuple[type, ...] = ()

    def begin(self, asks: Sequence[Ask]) -> None:
        """The commands by which the events that follow must have come about."""

    def see(self, event: Any, record: Record | None) -> None: ...

    def restarted(self) -> None: ...


class Graph(EventChecker):
    """4: only along the declared arrows. 5: an identity is given once."""

    sees = tuple(
        kind for kind in events.AnyEvent.__args__ if issubclass(kind, events.Event)
    )

    def __init__(self) -> None:
        self._last_seq = 0

    def see(self, event: Any, record: Record | None) -> None:
        source = None
        if isinstance(event, events.Enqueued):
            expect(event.seq > self._last_seq, "invariant 5: reused", event.seq)
            self._last_seq = event.seq
        else:
            expect(record is not None, "invariant 2: an event of nobody", event)
            assert record is not None
            source = record.state
        if isinstance(event, events.Extended | events.CancelRequested):
            expect(source is JobState.LEASED, "invariant 4", event, source)
            return
        verb = str(type(event).__struct_config__.tag)
        target = target_of(event, source)
        assert target is not None
        expect(is_allowed(verb, source, target), "invariant 4", verb, source, event)
        if isinstance(event, events.Redriven) and record is not None:
            is_next = event.generation == record.generation + 1
            expect(is_next, "invariant 4: generation", event)


class Attempts(EventChecker):
    """7: one more with every delivery, and never more than the queue allows."""

    sees = (events.Leased,)

    def __init__(self, attempts_max: dict[str, int]) -> None:
        self._attempts_max = attempts_max

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        expected = record.attempt + (not record.is_continuing)
        expect(event.attempt == expected, "invariant 7", event, expected)
        most = self._attempts_max[event.queue]
        expect(event.attempt <= most, "invariant 7: too many", event, most)


class Tokens(EventChecker):
    """8: one unexpired token for a job, and no token twice, whoever the owner is."""

    sees = (events.Leased,)

    def __init__(self) -> None:
        self._last = 0

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        expect(event.token > self._last, "invariant 8: token reused", event)
        expect(record.token == 0, "invariant 8: leased twice", event, record.token)
        expect(event.lease_until_ms > event.at_ms, "invariant 8: no lease", event)
        self._last = event.token


class LeaseEnds(EventChecker):
    """P3: silence counts only from the end of the lease, across crashes too."""

    sees = (events.Lost,)

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        is_over = event.at_ms >= record.lease_until_ms
        expect(is_over, "P3: lost before its end", event, record.lease_until_ms)


class StartTimes(EventChecker):
    """20: no job starts before its time."""

    sees = (events.Leased,)

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        expect(event.at_ms >= record.run_at_ms, "invariant 20", event, record.run_at_ms)


_BY_WORKERS: Final[dict[type, tuple[type, ...]]] = {
    events.Acked: (Ack,),
    events.Extended: (Extend,),
    events.Released: (Release,),
    events.Waited: (Wait,),
}


class StaleTokens(EventChecker):
    """9: what only a worker can say was said with the token that counts."""

    sees = (*_BY_WORKERS, events.Retried, events.Buried)

    def __init__(self) -> None:
        self._said: set[tuple[type, int]] = set()

    def begin(self, asks: Sequence[Ask]) -> None:
        self._said = set()
        for ask in asks:
            match ask:
                case (
                    Ack(tokens=tokens) | Release(tokens=tokens) | Extend(tokens=tokens)
                ):
                    self._said.update((type(ask), token) for token in tokens)
                case Nack(token=token) | Wait(token=token):
                    self._said.add((type(ask), token))

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        kinds = _BY_WORKERS.get(type(event))
        if kinds is None:
            if event.reason != "failed":
                return
            kinds = (Nack,)
        is_said = any((kind, record.token) in self._said for kind in kinds)
        expect(is_said, "invariant 9: by a stale token", event, record.token)


class Once(EventChecker):
    """3: without faults, and with workers inside their lease, nothing comes twice."""

    sees = (events.Leased,)

    def __init__(self, *, is_calm: bool) -> None:
        self._is_calm = is_calm

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        if self._is_calm:
            expect(record.leases == 0, "invariant 3: delivered twice", event)


class Ticks(EventChecker):
    """21: each tick of a schedule is dealt with once, and not before its time."""

    sees = (events.Ticked,)

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, int]] = set()

    def see(self, event: Any, record: Record | None) -> None:
        tick = (event.queue, event.schedule, event.tick_ms)
        expect(tick not in self._seen, "invariant 21: twice", event)
        expect(event.tick_ms <= event.at_ms, "invariant 20: early tick", event)
        self._seen.add(tick)


class Replies(EventChecker):
    """25: a wait ends once. P9: an early reply is kept until its job asks for it."""

    sees = (events.ReplyKept, events.Waited, events.Replied)

    def __init__(self, early_ms: int) -> None:
        self._early_ms = early_ms
        self._early: dict[tuple[str, str], int] = {}
        self._due: tuple[str, str] | None = None

    def begin(self, asks: Sequence[Ask]) -> None:
        self.settled()

    def see(self, event: Any, record: Record | None) -> None:
        key = (event.queue, event.reply_key)
        if isinstance(event, events.Replied):
            expect(
                event.is_early == (self._due == key),
                "P9: early or not",
                event,
                self._due,
            )
            self._due = None
            return
        self.settled()
        if isinstance(event, events.ReplyKept):
            if event.fate == "early":
                self._early[key] = event.at_ms + self._early_ms
            return
        until_ms = self._early.pop(key, 0)
        if until_ms > event.at_ms:
            self._due = key

    def settled(self) -> None:
        expect(self._due is None, "P9: an early reply was forgotten", self._due)


def event_checkers(
    attempts_max: dict[str, int], early_ms: int, *, is_calm: bool
) -> list[EventChecker]:
    """All of them, in the order in which they look."""
    return [
        Graph(),
        Attempts(attempts_max),
        Tokens(),
        LeaseEnds(),
        StartTimes(),
        StaleTokens(),
        Once(is_calm=is_calm),
        Ticks(),
        Replies(early_ms),
    ]


def unfinished(account: Account) -> str:
    """The jobs that are still open, in short."""
    seqs = account.open_jobs()
    shown = [f"{seq} {account.records[seq].state}" for seq in seqs[:8]]
    return f"{len(seqs)} jobs are open: {', '.join(shown)}"
