"""The rules of queues and what runs under them, kept apart from the core's own books."""

from collections import Counter
from typing import Any

from headway.core import events
from headway.core.book import Book
from headway.core.commands import (
    Command,
    Configure,
    Decision,
    Hold,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.config import Concurrency, Order, QueueConfig, Rate, Shares
from headway.core.job import Job
from headway.core.limits import dimension
from headway.core.rules import value_of
from headway.core.shares import REST, shares_of
from headway.core.states import JobState
from headway.core.windows import WindowSet

ENDS = (
    events.Acked,
    events.Retried,
    events.Released,
    events.Lost,
    events.Cancelled,
    events.Expired,
    events.Buried,
)
Key = tuple[str, str]
"""A limit's name and the value it is counted for."""


class QueueModel:
    """One queue: what was said of it, and which job has which units of what."""

    def __init__(self, config: QueueConfig) -> None:
        self.config = config
        self.holds: set[Hold] = set()
        self.paused_tenants: set[str] = set()
        self.paused_kinds: set[str] = set()
        self.caps: dict[Key, int] = {}
        self.units: dict[int, dict[Key, int]] = {}
        self.is_changed = False
        """Its order was changed, so that held time is counted when jobs move."""

    def used(self) -> Counter[Key]:
        total: Counter[Key] = Counter()
        for units in self.units.values():
            total.update(units)
        return total

    def keys(self, job: Job) -> list[tuple[Key, int]]:
        """Every value on which a start of the job counts, and its size."""
        spec = job.spec
        found: list[tuple[Key, int]] = []
        for limit in self.config.limits:
            dim = dimension(limit)
            value = "" if dim is None else value_of(dim, spec)
            if isinstance(limit, Concurrency):
                found.append(((limit.name, value), limit.max))
            elif isinstance(limit, Shares):
                value = value if value in limit.percent else REST
                share = shares_of(limit).get(value, 0)
                size = limit.max if limit.is_lending else share
                found += [((limit.name, value), size), ((limit.name, ":"), limit.max)]
        for of, value in (("tenant", spec.tenant), ("kind", spec.kind)):
            cap = self.caps.get((of, value))
            if cap is not None:
                found.append(((f"cap:{of}", value), cap))
        return found

    def take(self, job: Job, *, is_checked: bool) -> None:
        """The job takes its units of all that it does not hold yet."""
        is_new = job.seq not in self.units
        mine = self.units.setdefault(job.seq, {})
        limits = self.keys(job)
        sizes: dict[str, int] = {}
        for (name, value), size in limits:
            if (name, value) not in mine:
                # The total of a share limit counts what the share itself counts.
                most = sizes.setdefault(name, size)
                mine[name, value] = job.cost if job.cost <= most else max(most, 1)
        if is_checked and is_new:
            used = self.used()
            for key, size in limits:
                assert used[key] <= size, ("invariant 22", key, used[key], size)

    def windows(self, job: Job) -> WindowSet | None:
        own = job.spec.windows
        return own if own is not None else self.config.windows

    def is_held(self, job: Job) -> bool:
        spec = job.spec
        return (
            bool(self.holds)
            or spec.tenant in self.paused_tenants
            or spec.kind in self.paused_kinds
        )

    def is_lazy(self, job: Job) -> bool:
        """Whether held time is only counted from when the job comes to the head."""
        spec = job.spec
        is_unfair = self.config.order is not Order.FAIR
        return (
            self.is_changed
            or self.windows(job) is not None
            or spec.kind in self.paused_kinds
            or (is_unfair and spec.tenant in self.paused_tenants)
        )


class RuleModel:
    """All queues of a partition."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.queues: dict[str, QueueModel] = {}
        self.jobs: dict[int, Job] = {}

    def told(self, command: Command) -> None:
        """A command of an operator was carried out."""
        match command:
            case Configure(config=config):
                self._configured(config)
            case SetHold(queue=name, hold=hold, is_on=is_on):
                _flag(self.queues[name].holds, hold, is_on=is_on)
            case SetTenant(queue=name, tenant=tenant, is_paused=is_paused, cap=cap):
                queue = self.queues[name]
                if is_paused is not None:
                    _flag(queue.paused_tenants, tenant, is_on=is_paused)
                self._capped(queue, ("tenant", tenant), cap)
            case SetKind(queue=name, kind=kind, is_paused=is_paused, cap=cap):
                queue = self.queues[name]
                if is_paused is not None:
                    _flag(queue.paused_kinds, kind, is_on=is_paused)
                self._capped(queue, ("kind", kind), cap)

    def restarted(self, book: Book, jobs: dict[int, Job]) -> None:
        """A new owner: what runs takes its units again, by the rules as they are."""
        self.book = book
        self.jobs.update(jobs)
        for queue in self.queues.values():
            for seq in queue.units:
                queue.units[seq] = {}
                queue.take(self.jobs[seq], is_checked=False)

    def follow(self, decision: Decision) -> None:
        """Counts what starts and ends; a start must keep every rule of its queue."""
        self.jobs |= {job.seq: job for job in decision.jobs}
        for event in decision.events:
            if isinstance(event, events.Event):
                self._count(event)

    def _count(self, event: Any) -> None:
        job, queue = self.jobs[event.seq], self.queues[event.queue]
        if isinstance(event, events.Leased):
            assert not queue.holds, "invariant 26"
            assert event.tenant not in queue.paused_tenants, "invariant 26"
            assert event.kind not in queue.paused_kinds, "invariant 26"
            windows = queue.windows(job)
            assert windows is None or windows.is_open(event.at_ms), "window open"
            if not job.spec.is_critical:
                queue.take(job, is_checked=True)
        elif isinstance(event, ENDS) or (
            isinstance(event, events.Replied) and job.is_done_on_reply
        ):
            queue.units.pop(event.seq, None)

    def _configured(self, config: QueueConfig) -> None:
        queue = self.queues.get(config.name)
        if queue is None:
            self.queues[config.name] = QueueModel(config)
            return
        old = {limit.name: limit for limit in queue.config.limits}
        new = {limit.name: limit for limit in config.limits}
        kept = {
            name
            for name, limit in new.items()
            if name in old
            and (
                old[name] == limit
                or (
                    isinstance(limit, Concurrency)
                    and isinstance(old[name], Concurrency)
                    and dimension(limit) == dimension(old[name])
                )
            )
        }
        queue.is_changed |= config.order is not queue.config.order
        queue.config = config
        for units in queue.units.values():
            for key in list(units):
                if key[0] not in kept and not key[0].startswith("cap:"):
                    del units[key]
        self._recount(queue)

    def _capped(self, queue: QueueModel, key: Key, cap: int | None) -> None:
        if cap is None:
            return
        queue.caps.pop(key, None)
        if cap >= 0:
            queue.caps[key] = cap
            self._recount(queue)

    def _recount(self, queue: QueueModel) -> None:
        for seq, units in queue.units.items():
            job = self.jobs[seq]
            is_running = job.state in (JobState.LEASED, JobState.WAITING)
            if is_running or units:
                queue.take(job, is_checked=False)


def may_start(model: RuleModel, job: Job, jobs: dict[int, Job], now_ms: int) -> bool:
    """Whether nothing at all stands against a start; False where it is uncertain."""
    queue = model.queues[job.queue]
    windows = queue.windows(job)
    if queue.is_held(job) or not (windows is None or windows.is_open(now_ms)):
        return False
    if job.spec.is_critical or job.holds:
        return True
    config = queue.config
    if config.has_throttler and job.cleared_ms <= now_ms:
        return False
    core = model.book.queues[job.queue]
    if config.slot_share < 1.0:
        most = max(1, int(config.slot_share * core.shared.ledger.slots(now_ms)))
        if core.slot_gauge.used >= most:
            return False
    used = queue.used()
    rivals = [
        other
        for other in jobs.values()
        if other.queue == job.queue
        and other.state is JobState.READY
        and not other.spec.is_critical
        and not other.holds
    ]
    if config.has_throttler and any(other.cleared_ms <= now_ms for other in rivals):
        # One before it may wait for its verdict.
        return False
    for other in (job, *rivals):
        is_rival = other is job or other.cost > 1 or other.cost > job.cost
        if is_rival and not (
            _fits(queue, other, used) and _is_in_rate(model, queue, other, now_ms)
        ):
            # It does not fit, or one before it may have reserved what is free.
            return False
    return _may_borrow(queue, job, rivals, used)


def _fits(queue: QueueModel, job: Job, used: Counter[Key]) -> bool:
    for key, size in queue.keys(job):
        units = job.cost if job.cost <= size else max(size, 1)
        if used[key] + units > size:
            return False
    return True


def _may_borrow(
    queue: QueueModel, job: Job, rivals: list[Job], used: Counter[Key]
) -> bool:
    """Of a lending share limit: within its own share, or nobody wants the rest."""
    for limit in queue.config.limits:
        if isinstance(limit, Shares) and limit.is_lending:
            value = value_of(limit.by, job.spec)
            value = value if value in limit.percent else REST
            share = shares_of(limit).get(value, 0)
            others = [r for r in rivals if value_of(limit.by, r.spec) != value]
            if used[limit.name, value] + job.cost > share and others:
                return False
    return True


def _is_in_rate(model: RuleModel, queue: QueueModel, job: Job, now_ms: int) -> bool:
    gauges = {
        (g.limit, g.value): g for g in model.book.queues[job.queue].rules.book.all()
    }
    for limit in queue.config.limits:
        if isinstance(limit, Rate):
            value = "" if limit.per is None else value_of(limit.per, job.spec)
            gauge: Any = gauges.get((limit.name, value))
            if gauge is not None and gauge.ready_ms(job.cost, now_ms) > now_ms:
                return False
    return True


def _flag(flags: set[Any], flag: object, *, is_on: bool) -> None:
    if is_on:
        flags.add(flag)
    else:
        flags.discard(flag)
