"""Every job as history tells it, replayed event by event; nothing is read from rows."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from headway.core import events
from headway.core.states import LIVE, JobState
from headway.runtime.replay import TARGETS


def target_of(event: events.Event, source: JobState | None) -> JobState | None:
    """Where an event leaves its job."""
    match event:
        case events.Enqueued():
            is_ready = event.run_at_ms <= event.at_ms
            return JobState.READY if is_ready else JobState.SCHEDULED
        case events.Replied():
            return JobState.DONE if event.is_done else JobState.READY
        case _:
            return TARGETS.get(type(event), source)


class Record:
    """One job."""

    __slots__ = (
        "attempt",
        "cost",
        "enqueued_ms",
        "errors",
        "generation",
        "is_cancel_requested",
        "is_continuing",
        "lease_until_ms",
        "leases",
        "queue",
        "reply_key",
        "run_at_ms",
        "seq",
        "state",
        "tenant",
        "token",
        "wait_until_ms",
    )

    def __init__(self, event: events.Enqueued) -> None:
        self.seq = event.seq
        self.queue = event.queue
        self.tenant = event.tenant
        self.cost = event.cost
        self.enqueued_ms = event.at_ms
        self.run_at_ms = event.run_at_ms
        self.state = JobState.SCHEDULED
        self.attempt = 0
        self.generation = 0
        self.token = 0
        self.lease_until_ms = 0
        self.wait_until_ms = 0
        self.reply_key = ""
        self.errors = 0
        self.leases = 0
        self.is_cancel_requested = False
        self.is_continuing = False
        """It has had a reply, and goes on with the attempt under way."""


class Account:
    """All jobs, how many are in which state, and what became of every token."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.counts: Counter[tuple[str, JobState]] = Counter()
        self.live = 0
        self.last_seq = 0
        self.held: dict[int, Record] = {}
        """Leased jobs by token."""
        self.ended: dict[int, type] = {}
        """Tokens that are over, and the kind of event that ended them."""
        self._appliers: dict[type, Callable[[Any, Record], None]] = {
            events.Leased: self._leased,
            events.Extended: _extended,
            events.Waited: _waited,
            events.Retried: _retried,
            events.Rescheduled: _rescheduled,
            events.Released: _released,
            events.Lost: _lost,
            events.Replied: _replied,
            events.Buried: _died,
            events.Expired: _died,
            events.Redriven: _redriven,
            events.CancelRequested: _cancel_requested,
        }

    def apply(self, event: events.Event) -> None:
        kind = type(event)
        if isinstance(event, events.Enqueued):
            record = self.records[event.seq] = Record(event)
            self.last_seq = max(self.last_seq, event.seq)
            self._move(record, target_of(event, None), is_new=True)
            return
        record = self.records[event.seq]
        if record.token and kind not in _STAYS:
            del self.held[record.token]
            self.ended[record.token] = kind
            record.token = 0
        applier = self._appliers.get(kind)
        if applier is not None:
            applier(event, record)
        self._move(record, target_of(event, record.state))

    def open_jobs(self) -> list[int]:
        return [seq for seq, rec in self.records.items() if rec.state in LIVE]

    def _move(
        self, record: Record, state: JobState | None, *, is_new: bool = False
    ) -> None:
        assert state is not None
        if not is_new:
            self.counts[record.queue, record.state] -= 1
            self.live -= record.state in LIVE
        record.state = state
        self.counts[record.queue, state] += 1
        self.live += state in LIVE

    def _leased(self, event: events.Leased, record: Record) -> None:
        record.token = event.token
        record.attempt = event.attempt
        record.lease_until_ms = event.lease_until_ms
        record.leases += 1
        self.held[event.token] = record


_STAYS: Final = (events.Extended, events.CancelRequested)


def _extended(event: events.Extended, record: Record) -> None:
    record.lease_until_ms = event.lease_until_ms


def _waited(event: events.Waited, record: Record) -> None:
    record.reply_key = event.reply_key
    record.wait_until_ms = event.wait_until_ms
    record.is_continuing = True


def _retried(event: events.Retried, record: Record) -> None:
    record.run_at_ms = event.run_at_ms
    record.errors += 1
    record.is_continuing = False


def _rescheduled(event: events.Rescheduled, record: Record) -> None:
    record.run_at_ms = event.run_at_ms


def _released(event: events.Released, record: Record) -> None:
    record.attempt -= 1
    record.is_continuing = False


def _lost(event: events.Lost, record: Record) -> None:
    record.errors += 1
    record.is_continuing = False


def _replied(event: events.Replied, record: Record) -> None:
    if not event.is_done:
        record.run_at_ms = event.at_ms


def _died(event: events.Event, record: Record) -> None:
    record.errors += 1
    record.is_continuing = False


def _redriven(event: events.Redriven, record: Record) -> None:
    record.generation = event.generation
    record.attempt = 0
    record.run_at_ms = event.at_ms
    record.is_cancel_requested = False


def _cancel_requested(event: events.CancelRequested, record: Record) -> None:
    record.is_cancel_requested = True
