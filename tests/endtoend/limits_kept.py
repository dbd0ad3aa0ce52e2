"""Limits, counted by history alone: never more at once, or in a while, than allowed."""

from collections import Counter
from typing import Any, Final

import msgspec

from headway.core import events
from headway.core.config import Concurrency, Limit, Rate, Shares
from headway.core.shares import shares_of
from headway.server.rules import config_of
from headway.sim.faults.account import Record
from headway.sim.faults.checks_events import EventChecker
from headway.sim.faults.checks_rules import ENDS
from headway.sim.faults.verdict import expect
from headway.wire.queues import QueueRules
from tests.endtoend.plan import VITAL

_WHOLE: Final = ""
_Value = tuple[str, str, str]
"""Queue, limit and value: what is counted."""


class Limits(EventChecker):
    """22: units in use, waits and costs included; a rate is a bucket that fills."""

    sees = (events.Enqueued, events.Leased, events.Replied, *ENDS)

    def __init__(self, queues: dict[str, dict[str, Any]]) -> None:
        self._limits: dict[str, tuple[Limit, ...]] = {}
        for name, rules in queues.items():
            config = config_of(name, msgspec.convert(rules, QueueRules))
            self._limits[name] = config.limits
        self._labels: dict[int, dict[str, str]] = {}
        self._used: Counter[_Value] = Counter()
        self._held: dict[int, list[tuple[_Value, int]]] = {}
        """What each job holds, from its start to its end."""
        self._levels: dict[_Value, tuple[int, int]] = {}
        """When a bucket was looked at, and what was in it, in parts of a period."""

    def see(self, event: Any, record: Record | None) -> None:
        if isinstance(event, events.Enqueued):
            if event.labels:
                self._labels[event.seq] = event.labels
        elif event.kind == VITAL:
            return
        elif isinstance(event, events.Leased):
            assert record is not None
            if event.seq not in self._held:
                self._start(event, record)
        elif not isinstance(event, events.Replied) or event.is_done:
            for value, units in self._held.pop(event.seq, ()):
                self._used[value] -= units

    def _start(self, event: events.Leased, record: Record) -> None:
        """All are counted before any is held to its limit."""
        held: list[tuple[_Value, int]] = []
        self._held[event.seq] = held
        over: list[object] = []
        for limit in self._limits[event.queue]:
            if isinstance(limit, Rate):
                if self._pour(limit, event, record.cost) < 0:
                    over.append(limit)
                continue
            for part, most in self._parts(limit, event):
                value = (event.queue, limit.name, part)
                units = min(record.cost, most)
                held.append((value, units))
                self._used[value] += units
                if self._used[value] > most:
                    over.append((value, self._used[value], most))
        expect(not over, "invariant 22", over, event)

    def _parts(
        self, limit: Concurrency | Shares, event: events.Leased
    ) -> list[tuple[str, int]]:
        """The values that a job counts against, and how much each may have."""
        if isinstance(limit, Concurrency):
            return [(self._value(limit.per, event), limit.max)]
        whole = [(_WHOLE, limit.max)]
        if limit.is_lending:
            return whole
        value = self._value(limit.by, event)
        return [*whole, (value, shares_of(limit)[value])]

    def _value(self, per: str | None, event: events.Leased) -> str:
        if per is None:
            return _WHOLE
        if per == "tenant":
            return event.tenant
        return self._labels.get(event.seq, {}).get(per, "")

    def _pour(self, limit: Rate, event: events.Leased, cost: int) -> int:
        """What is left in the bucket; less than nothing is too much."""
        value = (event.queue, limit.name, self._value(limit.per, event))
        burst = limit.count if limit.burst is None else limit.burst
        full = burst * limit.period_ms
        at_ms, level = self._levels.get(value, (event.at_ms, full))
        level = min(full, level + (event.at_ms - at_ms) * limit.count)
        level -= min(cost * limit.period_ms, full)
        self._levels[value] = (event.at_ms, level)
        return level
