"""Checkers of the operator's rules, counted by events alone: limits and holds."""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final

from headway.core import events
from headway.core.commands import Configure, SetKind, SetTenant
from headway.core.config import Concurrency, QueueConfig, Rate
from headway.runtime.owner import Ask
from headway.sim.faults.account import Record
from headway.sim.faults.checks_events import EventChecker
from headway.sim.faults.verdict import expect

ENDS: Final = (
    events.Acked,
    events.Retried,
    events.Released,
    events.Lost,
    events.Cancelled,
    events.Expired,
    events.Buried,
)
VITAL: Final = "vital"
"""The kind of all critical jobs, and of no others: no limit counts them."""


class Concurrencies(EventChecker):
    """22: units in use, waits included, within the limit whenever a job starts."""

    sees = (events.RuleChanged, events.Leased, events.Replied, *ENDS)

    def __init__(self) -> None:
        self._configs: dict[str, QueueConfig] = {}
        self._told: deque[QueueConfig] = deque()
        self._told_caps: deque[SetTenant] = deque()
        self._caps: dict[tuple[str, str], int] = {}
        self._running: dict[int, tuple[str, str, int]] = {}
        """Queue, tenant and cost of what has started and not ended."""
        self._resting: set[int] = set()
        """Of these: what has had its reply and waits for a worker to go on."""

    def begin(self, asks: Sequence[Ask]) -> None:
        self._told = deque(ask.config for ask in asks if isinstance(ask, Configure))
        self._told_caps = deque(ask for ask in asks if isinstance(ask, SetTenant))

    def see(self, event: Any, record: Record | None) -> None:
        if isinstance(event, events.RuleChanged):
            if event.what == "configure":
                expect(bool(self._told), "history: a rule of nobody", event)
                self._configure(self._told.popleft(), event.queue)
            elif event.what.startswith("tenant "):
                expect(bool(self._told_caps), "history: a rule of nobody", event)
                self._cap(self._told_caps.popleft())
            return
        assert record is not None
        if event.kind == VITAL:
            return
        if isinstance(event, events.Leased):
            self._resting.discard(event.seq)
            if event.seq not in self._running:
                self._running[event.seq] = (event.queue, event.tenant, record.cost)
                if not record.is_continuing:
                    # What goes on was under way when the limit came.
                    self._check(event)
        elif isinstance(event, events.Replied) and not event.is_done:
            self._resting.add(event.seq)
        else:
            self._resting.discard(event.seq)
            self._running.pop(event.seq, None)

    def _configure(self, config: QueueConfig, name: str) -> None:
        """What rests while a limit is new has no units of it until it goes on."""
        expect(config.name == name, "history: another queue", config, name)
        old = self._configs.get(name)
        self._configs[name] = config
        if old is not None and len(config.limits) > len(old.limits):
            self._let_rest(name)

    def _cap(self, told: SetTenant) -> None:
        if told.cap is not None:
            self._caps[told.queue, told.tenant] = told.cap
            self._let_rest(told.queue)

    def _let_rest(self, name: str) -> None:
        for seq in self._resting & self._running.keys():
            if self._running[seq][0] == name:
                del self._running[seq]

    def _check(self, event: events.Leased) -> None:
        for limit in self._configs[event.queue].limits:
            if not isinstance(limit, Concurrency):
                continue
            used = sum(
                cost
                for queue, tenant, cost in self._running.values()
                if queue == event.queue
                and (limit.per is None or tenant == event.tenant)
            )
            expect(used <= limit.max, "invariant 22", used, limit, event)
        cap = self._caps.get((event.queue, event.tenant), -1)
        if cap >= 0:
            of = (event.queue, event.tenant)
            used = sum(x[2] for x in self._running.values() if x[:2] == of)
            expect(used <= cap, "invariant 22: cap", used, cap, event)


class RatesKept(EventChecker):
    """22: a bucket of one burst that fills at the rate, and that no restart refills."""

    sees = (events.Leased,)

    def __init__(self, configs: Sequence[QueueConfig]) -> None:
        self._limits = {
            config.name: limit
            for config in configs
            for limit in config.limits
            if isinstance(limit, Rate)
        }
        self._levels: dict[str, tuple[int, int]] = {}
        """When it was looked at, and what was in it then, in parts of a period."""

    def see(self, event: Any, record: Record | None) -> None:
        assert record is not None
        limit = self._limits.get(event.queue)
        if limit is None or record.is_continuing or event.kind == VITAL:
            return
        burst = limit.count if limit.burst is None else limit.burst
        full = burst * limit.period_ms
        at_ms, level = self._levels.get(event.queue, (event.at_ms, full))
        level = min(full, level + (event.at_ms - at_ms) * limit.count)
        level -= min(record.cost * limit.period_ms, full)
        expect(level >= 0, "invariant 22: above the rate", limit, event)
        self._levels[event.queue] = (event.at_ms, level)


class Holds(EventChecker):
    """26: nothing of a held queue or tenant starts, whoever the owner is."""

    sees = (events.RuleChanged, events.Leased)

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._paused: set[tuple[str, str, str]] = set()
        self._told: deque[SetTenant | SetKind] = deque()

    def begin(self, asks: Sequence[Ask]) -> None:
        kinds = SetTenant | SetKind
        self._told = deque(ask for ask in asks if isinstance(ask, kinds))

    def see(self, event: Any, record: Record | None) -> None:
        if isinstance(event, events.Leased):
            is_free = not self._held[event.queue]
            expect(is_free, "invariant 26: the queue is held", event)
            is_free = ("tenant", event.queue, event.tenant) not in self._paused
            expect(is_free, "invariant 26: the tenant is held", event)
            is_free = ("kind", event.queue, event.kind) not in self._paused
            expect(is_free, "invariant 26: the kind is held", event)
            return
        match event.what.split(" ")[0]:
            case "pause" | "block":
                self._held[event.queue] += 1
            case "resume" | "unblock":
                self._held[event.queue] -= 1
            case "tenant" | "kind":
                expect(bool(self._told), "history: a rule of nobody", event)
                self._rule(self._told.popleft())

    def _rule(self, told: SetTenant | SetKind) -> None:
        if isinstance(told, SetTenant):
            name = ("tenant", told.queue, told.tenant)
        else:
            name = ("kind", told.queue, told.kind)
        if told.is_paused:
            self._paused.add(name)
        elif told.is_paused is False:
            self._paused.discard(name)
