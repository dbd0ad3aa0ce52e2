"""What a partition knows besides its jobs: rules, schedules and replies, as records.

A decision names the facts that it changed. What they are now is packed from the book
when the decision is written, and unpacked into a new book when a partition is restored.
"""

from typing import Any, Final

import msgspec

from headway.core.book import Book, Cron
from headway.core.bulk import Bulk
from headway.core.commands import Fact, FactKind
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.held import HeldClock
from headway.core.publishing import remember
from headway.core.queue import Queue
from headway.core.replies import EarlyReply
from headway.core.schedules import arm
from headway.core.write import Write


class Held(msgspec.Struct, array_like=True):
    """A clock that can be held, as it stands."""

    holds: int
    held_ms: int
    since_ms: int


class QueueFact(msgspec.Struct, omit_defaults=True):
    config: QueueConfig
    slos_ms: tuple[int, ...] = ()
    """Every SLO class that it has, declared or met."""
    held: Held | None = None
    windows_ms: int = 0
    """Since when its windows are what they are."""


class TenantFact(msgspec.Struct, omit_defaults=True):
    weight: float = 1.0
    cap: int | None = None
    held: Held | None = None


class KindFact(msgspec.Struct, omit_defaults=True):
    cost: int | None = None
    cap: int | None = None
    is_paused: bool = False


class ScheduleFact(msgspec.Struct):
    schedule: Schedule
    last_ms: int


class AnswerFact(msgspec.Struct):
    is_answered: bool


_RECORDS: Final[dict[str, type[Any]]] = {
    FactKind.QUEUE: QueueFact,
    FactKind.TENANT: TenantFact,
    FactKind.KIND: KindFact,
    FactKind.SCHEDULE: ScheduleFact,
    FactKind.REPLY: EarlyReply,
    FactKind.ANSWER: AnswerFact,
    FactKind.BULK: Bulk,
    FactKind.WRITE: Write,
}
_encode: Final = msgspec.msgpack.Encoder().encode
_decoders: Final = {
    kind: msgspec.msgpack.Decoder(record) for kind, record in _RECORDS.items()
}

IN_ORDER: Final = tuple(_RECORDS)
"""The order in which kinds of facts are restored: queues before what belongs to them."""


def pack(book: Book, fact: Fact) -> bytes | None:
    """What is known now; None means that there is nothing to be known any more."""
    record = _record(book, fact)
    return None if record is None else _encode(record)


def unpack(book: Book, fact: Fact, blob: bytes, now_ms: int) -> None:
    """Puts a fact into a book that does not know it yet."""
    kind, queue_name, name = fact
    record = _decoders[kind].decode(blob)
    if isinstance(record, QueueFact):
        _restore_queue(book, record)
        return
    if isinstance(record, Write):
        _restore_write(book, record)
        return
    queue = book.queues[queue_name]
    match record:
        case TenantFact():
            _restore_tenant(queue, name, record)
        case KindFact():
            _restore_kind(queue, name, record)
        case ScheduleFact():
            cron = book.crons[queue_name, name] = Cron(record.schedule, record.last_ms)
            arm(book, cron, now_ms)
        case EarlyReply():
            queue.replies.restore_early(name, record)
        case AnswerFact():
            queue.replies.restore_answer(name, is_answered=record.is_answered)
        case Bulk():
            book.bulks[record.id] = record


def _record(book: Book, fact: Fact) -> msgspec.Struct | None:
    kind, queue_name, name = fact
    if kind == FactKind.SCHEDULE:
        cron = book.crons.get((queue_name, name))
        return None if cron is None else ScheduleFact(cron.schedule, cron.last_ms)
    if kind == FactKind.BULK:
        return book.bulks.get(int(name))
    if kind == FactKind.WRITE:
        return book.writes.get(name)
    queue = book.queues[queue_name]
    rules = queue.rules
    match kind:
        case FactKind.QUEUE:
            return QueueFact(
                rules.config, tuple(queue.lanes), _held(queue.gate), rules.windows_ms
            )
        case FactKind.TENANT:
            tenant = rules.tenants.get(name)
            if tenant is None:
                return None
            return TenantFact(tenant.weight, tenant.cap, _held(tenant))
        case FactKind.KIND:
            rule = rules.kinds[name]
            return KindFact(rule.cost, rule.cap, rule.is_paused)
        case FactKind.REPLY:
            return queue.replies.early(name)
        case _:
            was_answered = queue.replies.was_answered(name)
            return None if was_answered is None else AnswerFact(was_answered)


def _restore_queue(book: Book, record: QueueFact) -> None:
    queue = book.add_queue(record.config)
    for slo_ms in record.slos_ms:
        queue.slo_class(slo_ms)
    _resume(queue.gate, record.held)
    queue.rules.windows_ms = record.windows_ms


def _restore_write(book: Book, record: Write) -> None:
    if record.taken + sum(record.left.values()) != record.jobs:
        raise ValueError(f"write {record.id!r} does not add up")
    remember(book, record)


def _restore_tenant(queue: Queue, name: str, record: TenantFact) -> None:
    rule = queue.own_rule(name)
    rule.set_weight(record.weight)
    rule.cap = record.cap
    _resume(rule, record.held)
    queue.rules.regauge(rule)
    queue.rules.reshape()


def _restore_kind(queue: Queue, name: str, record: KindFact) -> None:
    rule = queue.rules.kind(name)
    rule.cost = record.cost
    rule.cap = record.cap
    rule.is_paused = record.is_paused
    queue.rules.reshape()


def _held(clock: HeldClock) -> Held | None:
    if not clock.holds and not clock.held_ms:
        return None
    return Held(clock.holds, clock.held_ms, clock.since_ms)


def _resume(clock: HeldClock, held: Held | None) -> None:
    if held is not None:
        clock.holds = held.holds
        clock.held_ms = held.held_ms
        clock.since_ms = held.since_ms
