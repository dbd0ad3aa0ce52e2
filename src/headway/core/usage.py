"""How much of limits was in use, by whom, and who was stopped: minute by minute.

Nothing is ever looked for. What a minute adds up to is counted when units are taken or
given back and when a head is stopped or let go, and told after the minute is over.
"""

from heapq import nsmallest
from itertools import chain
from typing import Final, Protocol

import msgspec

from headway.core import events
from headway.core.job import Hold, Job
from headway.core.limits import Gauge, Parked, RateGauge
from headway.core.shares import ShareGauge

MINUTE_MS: Final = 60_000
QUIET_MAX: Final = 10
"""Minutes in which nothing happened to a limit in use are told together, so many."""
USES_TOLD: Final = 64
"""Limits that one decision looks at, of those whose minute is over."""
PARTS_MAX: Final = 64
"""Tenants whose part of a limit is counted apart, and not together with others'."""
PARTS_TOLD: Final = 8
"""Tenants that are told by name: those who held most, and those stopped longest."""


class Part:
    """One tenant's part of a limit; or that of all who are not counted apart.

    Times are counted up to the end of the minute as if nothing more would happen in it:
    what is taken adds the rest of the minute, what is given back takes it off again.
    """

    __slots__ = ("blocked_ms", "stops", "tenant", "units", "used_ms", "waiting")

    def __init__(self, tenant: str | None) -> None:
        self.tenant = tenant
        """None stands for all others."""
        self.units = 0
        self.used_ms = 0
        self.waiting = 0
        """Turns of it that are stopped now."""
        self.blocked_ms = 0
        self.stops = 0

    def settle(self) -> None:
        """Now it is as in a minute in which nothing happens."""
        self.used_ms = self.units * MINUTE_MS
        self.blocked_ms = self.waiting * MINUTE_MS
        self.stops = 0


class Stopped(Protocol):
    """What can be stopped by a limit."""

    stopped: Part | None


class Use:
    """One gauge in one minute."""

    __slots__ = (
        "_book",
        "first",
        "full_ms",
        "gauge",
        "highest",
        "kept",
        "line",
        "others",
        "queue",
        "rest",
        "until_ms",
    )

    def __init__(
        self, book: "UseBook", gauge: Gauge, queue: str, tenant: str, now_ms: int
    ) -> None:
        self.first = Part(tenant)
        """The tenant that came first: many limits are ever used by one only."""
        self.highest = gauge.used
        self.until_ms = now_ms - now_ms % MINUTE_MS + MINUTE_MS
        """The end of its minute."""
        self._book = book
        self.gauge = gauge
        self.queue = queue
        self.line = 0
        """Who is stopped now, a queue as a whole being one..."""
        self.full_ms = 0
        """...and how long anybody was."""
        self.others: dict[str, Part] = {}
        self.rest: Part | None = None
        self.kept: events.LimitUsed | None = None
        """What is to be told of minutes in which nothing happened."""

    def of(self, tenant: str) -> Part:
        """The part of another tenant than the first."""
        part = self.others.get(tenant) or self.rest
        if part is None:
            if len(self.others) < PARTS_MAX - 1:
                part = self.others[tenant] = Part(tenant)
            else:
                part = self.rest = Part(None)
        return part

    def stop(self, member: Stopped, tenant: str, now_ms: int) -> None:
        """`member`, whose next job is this tenant's, waits for the gauge."""
        left_ms = self.until_ms - now_ms
        first = self.first
        part = first if tenant == first.tenant else self.of(tenant)
        part.stops += 1
        part.waiting += 1
        part.blocked_ms += left_ms
        if self.line == 0:
            self.full_ms += left_ms
        self.line += 1
        member.stopped = part

    def free(self, member: Stopped, now_ms: int) -> None:
        """`member` waits no more, or for something else."""
        part = member.stopped
        if part is None:
            return
        if now_ms >= self.until_ms:
            self.renew(now_ms)
        left_ms = self.until_ms - now_ms
        member.stopped = None
        part.waiting -= 1
        part.blocked_ms -= left_ms
        self.line -= 1
        if self.line == 0:
            self.full_ms -= left_ms

    def is_quiet(self) -> bool:
        """Nothing happened in its minute that would have to be told."""
        return self.highest == self.gauge.used and all(
            part.used_ms == part.units * MINUTE_MS
            and part.blocked_ms == part.waiting * MINUTE_MS
            and part.stops == 0
            for part in self._parts()
        )

    def is_idle(self) -> bool:
        """Nobody holds anything of it, or waits for it."""
        first = self.first
        return not (first.units or first.waiting or self.others or self.rest)

    def renew(self, now_ms: int) -> None:
        """Its minute is over, and so may others be since then."""
        if self.is_quiet():
            self._keep(self.until_ms - MINUTE_MS, 1)
        else:
            self.tell_kept(now_ms)
            self._keep(self.until_ms - MINUTE_MS, 1)
            self.tell_kept(now_ms)
            self._settle()
        minutes = (now_ms - self.until_ms) // MINUTE_MS
        if minutes and not self.is_idle():
            self._keep(self.until_ms, minutes)
        self.until_ms += (minutes + 1) * MINUTE_MS
        if self.kept is not None and self.kept.minutes >= QUIET_MAX:
            self.tell_kept(now_ms)

    def tell_kept(self, now_ms: int) -> None:
        """Minutes that were alike are told as one."""
        kept, self.kept = self.kept, None
        if kept is not None:
            kept.at_ms = now_ms
            self._book.events.append(kept)

    def end(self, now_ms: int) -> None:
        """The rule that the gauge stood for is gone: what it was is told at once."""
        if now_ms >= self.until_ms:
            self.renew(now_ms)
        self.tell_kept(now_ms)
        left_ms = self.until_ms - now_ms
        for part in self._parts():
            part.used_ms -= part.units * left_ms
            part.blocked_ms -= part.waiting * left_ms
        if self.line:
            self.full_ms -= left_ms
        self._keep(self.until_ms - MINUTE_MS, 1)
        self.tell_kept(now_ms)
        self.gauge.use = None

    def _parts(self) -> list[Part]:
        parts = [self.first, *self.others.values()]
        return parts if self.rest is None else [*parts, self.rest]

    def _settle(self) -> None:
        """Now it is as a minute is in which nothing happens."""
        self.highest = self.gauge.used
        self.full_ms = MINUTE_MS if self.line else 0
        for part in self._parts():
            part.settle()
        self.others = {
            name: part
            for name, part in self.others.items()
            if part.units or part.waiting
        }
        if self.rest is not None and not (self.rest.units or self.rest.waiting):
            self.rest = None

    def _keep(self, minute_ms: int, minutes: int) -> None:
        """So many minutes were as its figures are now."""
        if self.kept is not None:
            self.kept.minutes += minutes
            return
        gauge = self.gauge
        parts = self._parts()
        self.kept = events.LimitUsed(
            0,
            self.queue,
            gauge.limit,
            gauge.value,
            minute_ms,
            minutes,
            gauge.max,
            gauge.most(self.highest),
            sum(part.used_ms for part in parts),
            sum(part.stops for part in parts),
            sum(part.blocked_ms for part in parts),
            self.full_ms,
            _named(parts),
        )


class UseBook:
    """The uses of all gauges of a partition that anybody holds or waits for."""

    def __init__(self) -> None:
        self.events: list[msgspec.Struct] = []
        """Those of the decision under way."""
        self.due_ms = 0
        """When there is something to tell; the core looks once a decision. Before
        that the minutes of all uses are the same."""
        self._ends_ms = 0
        self._open: list[Use] = []
        self._telling: list[Use] = []
        """Those whose minute is over."""

    def use(self, gauge: Gauge, job: Job, now_ms: int) -> Use:
        """The use of a gauge in this minute."""
        use = gauge.use
        if use is None:
            use = Use(self, gauge, job.queue, job.tenant, now_ms)
            gauge.use = use
            self._open.append(use)
        elif now_ms >= use.until_ms:
            use.renew(now_ms)
        return use

    def take(
        self,
        gauges: tuple[Gauge, ...],
        job: Job,
        now_ms: int,
        members: tuple[Parked, ...] = (),
    ) -> None:
        """The job holds units of the gauges, too; nothing is kept free for `members`."""
        # Spelled out for plain gauges, here and below: it runs for every start.
        cost = job.cost
        tenant = job.tenant
        left_ms = MINUTE_MS - now_ms % MINUTE_MS
        is_behind = now_ms >= self.due_ms
        holds: list[Hold] = []
        for gauge in gauges:
            use = gauge.use
            if use is None or is_behind:
                use = self.use(gauge, job, now_ms)
            part = use.first
            if tenant != part.tenant:
                part = use.others.get(tenant) or use.rest or use.of(tenant)
            if type(gauge) is Gauge:
                units = cost if cost <= gauge.max else gauge.units(cost)
                gauge.used = used = gauge.used + units
                if gauge.big is not None and gauge.big in members:
                    gauge.big = None
                part.units += units
                part.used_ms += units * left_ms
            elif type(gauge) is RateGauge:
                units = 0
                price = cost * gauge.period_ms
                now = gauge.ticks_at(now_ms)
                clock = gauge.clock
                gauge.clock = clock = (clock if clock > now else now) + price
                used = clock - now
                # A unit is in use until it is paid for, one period later.
                part.used_ms += price
            else:
                assert isinstance(gauge, ShareGauge)
                units = gauge.take(cost, now_ms)
                used = gauge.used
                if gauge.big is not None and gauge.big in members:
                    gauge.big = None
                part.units += units
                part.used_ms += units * left_ms
            if used > use.highest:
                use.highest = used
            holds.append((gauge, units, part))
        job.holds += tuple(holds)

    def give_back(self, job: Job, now_ms: int) -> None:
        """What the job holds comes free."""
        holds = job.holds
        if not holds:
            return
        job.holds = ()
        left_ms = MINUTE_MS - now_ms % MINUTE_MS
        if now_ms >= self.due_ms:
            for gauge, *_ in holds:
                if gauge.use is not None and now_ms >= gauge.use.until_ms:
                    gauge.use.renew(now_ms)
        for gauge, units, part in holds:
            if units == 0:
                continue
            part.units -= units
            part.used_ms -= units * left_ms
            if type(gauge) is Gauge:
                gauge.used = used = gauge.used - units
                assert used >= 0, (gauge.limit, gauge.value)
                if gauge.lone is not None or gauge.parked:
                    gauge.wake(now_ms)
            else:
                gauge.give_back(units, now_ms)

    def tell(self, now_ms: int) -> None:
        """Tells of limits whose minute is over, some at a time."""
        telling = self._telling
        if now_ms >= self._ends_ms:
            self._ends_ms = now_ms - now_ms % MINUTE_MS + MINUTE_MS
            telling += reversed(self._open)
            self._open.clear()
        for _ in range(min(USES_TOLD, len(telling))):
            use = telling.pop()
            if use.gauge.use is not use:
                # It has ended with its rule, and was told then.
                continue
            if use.until_ms <= now_ms:
                use.renew(now_ms)
                if use.is_idle():
                    use.tell_kept(now_ms)
                    use.gauge.use = None
                    continue
            self._open.append(use)
        self.due_ms = 0 if telling else self._ends_ms


def _named(parts: list[Part]) -> tuple[events.LimitPart, ...]:
    """The greatest parts by name, and all others as one."""
    parts = [part for part in parts if part.used_ms or part.stops or part.blocked_ms]
    named = [part for part in parts if part.tenant is not None]
    if len(named) > PARTS_TOLD:
        holders = nsmallest(PARTS_TOLD, named, key=_by_use)
        stopped = nsmallest(PARTS_TOLD, named, key=_by_stops)
        named = list({id(part): part for part in chain(holders, stopped)}.values())
    told = [(x.tenant, x.used_ms, x.stops, x.blocked_ms) for x in named]
    chosen = set(map(id, named))
    others = [part for part in parts if id(part) not in chosen]
    if others:
        used_ms = sum(part.used_ms for part in others)
        blocked_ms = sum(part.blocked_ms for part in others)
        told.append((None, used_ms, sum(part.stops for part in others), blocked_ms))
    return tuple(told)


def _by_use(part: Part) -> tuple[int, str]:
    return -part.used_ms, part.tenant or ""


def _by_stops(part: Part) -> tuple[int, str]:
    return -part.blocked_ms, part.tenant or ""
