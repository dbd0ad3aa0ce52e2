"""Recorded rules: what held at the beginning, and what was changed when."""

from collections.abc import Iterable, Iterator

import msgspec

from headway.core.commands import (
    Command,
    Configure,
    Hold,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.config import QueueConfig
from headway.core.facts import KindFact, QueueFact, TenantFact
from headway.core.gate import BLOCKED, PAUSED


class RuleRow(msgspec.Struct, frozen=True):
    """A change of a rule, as history tells it."""

    at_ms: int
    queue: str
    what: str
    rule: str | None
    """The whole rule as it was from then on, as JSON; None if it was gone."""

    @property
    def fact(self) -> tuple[str, str]:
        """What it is about: the queue itself, or a tenant or kind of it."""
        kind, _, name = self.what.partition(" ")
        return (kind, name) if kind in {"tenant", "kind"} else ("queue", "")


class Timed(msgspec.Struct, frozen=True):
    at_ms: int
    command: Command


def replayed(config: QueueConfig) -> QueueConfig:
    """Jobs that came were accepted, and no throttler is there to be asked."""
    return msgspec.structs.replace(config, max_length=None, has_throttler=False)


def configs(
    rows: Iterable[RuleRow], names: Iterable[str], from_ms: int
) -> dict[str, QueueConfig]:
    """The queues as they were at the beginning; plain ones of which nothing is known.

    They are in the order in which history tells of them: of two that are as urgent, the
    one that was there first goes first.
    """
    rows = list(rows)
    known = set(names)
    told = [row.queue for row in rows if row.queue in known]
    found = {name: QueueConfig(name=name) for name in (*told, *sorted(known))}
    later: set[str] = set()
    for row in rows:
        kind, _ = row.fact
        if kind != "queue" or row.rule is None or row.queue not in found:
            continue
        # Where nothing older is known, the first that is known holds from the start.
        is_first = row.queue not in later
        if row.at_ms <= from_ms or is_first:
            fact = msgspec.json.decode(row.rule, type=QueueFact)
            found[row.queue] = fact.config
        later.add(row.queue)
    return {name: replayed(config) for name, config in found.items()}


def commands(
    rows: Iterable[RuleRow], names: Iterable[str], from_ms: int, epoch_ms: int
) -> Iterator[Timed]:
    """Everything that is to be told, in order: the newest of before the beginning at
    once, and what changed since at its time."""
    known = set(names)
    held: dict[tuple[str, str, str], RuleRow] = {}
    since: list[RuleRow] = []
    for row in rows:
        if row.queue not in known:
            continue
        if row.at_ms > from_ms:
            since.append(row)
        else:
            held[row.queue, *row.fact] = row
    for row in held.values():
        yield from _told(row, epoch_ms, is_first=True)
    for row in since:
        yield from _told(row, row.at_ms, is_first=False)


def _told(row: RuleRow, at_ms: int, *, is_first: bool) -> Iterator[Timed]:
    kind, name = row.fact
    if kind == "tenant":
        yield Timed(at_ms, _tenant(row, name))
    elif kind == "kind":
        yield Timed(at_ms, _kind(row, name))
    elif row.rule is not None:
        fact = msgspec.json.decode(row.rule, type=QueueFact)
        holds = 0 if fact.held is None else fact.held.holds
        if not is_first:
            yield Timed(at_ms, Configure(replayed(fact.config)))
        for hold, bit in ((Hold.PAUSE, PAUSED), (Hold.BLOCK, BLOCKED)):
            yield Timed(at_ms, SetHold(row.queue, hold, bool(holds & bit)))


def _tenant(row: RuleRow, name: str) -> SetTenant:
    fact = TenantFact()
    if row.rule is not None:
        fact = msgspec.json.decode(row.rule, type=TenantFact)
    return SetTenant(
        row.queue,
        name,
        weight=fact.weight,
        is_paused=fact.held is not None and bool(fact.held.holds),
        cap=-1 if fact.cap is None else fact.cap,
    )


def _kind(row: RuleRow, name: str) -> SetKind:
    fact = KindFact()
    if row.rule is not None:
        fact = msgspec.json.decode(row.rule, type=KindFact)
    return SetKind(
        row.queue,
        name,
        cost=fact.cost,
        is_paused=fact.is_paused,
        cap=-1 if fact.cap is None else fact.cap,
    )
