"""How much of limits was in use, by whom, and who was stopped: minute by minute.

Nothing is ever looked for. What a minute adds up to is counted when units are taken or
given back and when a head is stopped or let go, and told after the minute is over.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from headway.core import events
from headway.core.job import Job
from headway.core.limits import Gauge, Parked, RateGauge, note_stop
from headway.core.part import MINUTE_MS, Hold, Part, named
from headway.core.shares import ShareGauge

if TYPE_CHECKING:
    from headway.core.turn import Turn

QUIET_MAX: Final = 10
"""Minutes in which nothing happened to a limit in use are told together, so many."""
USES_TOLD: Final = 64
"""Limits that one decision looks at, of those whose minute is over."""
PARTS_MAX: Final = 64
"""Tenants whose part of a limit is counted apart, and not together with others'."""


class Use(Part):
    """One gauge in one minute, and what the tenant that came first has of it.

    Many limits are ever used by one tenant only, and are many: they have one object. It is
    made with its gauge, as jobs line up, and not when one of them starts; it is open from
    the first start until nobody has had anything of the gauge for a minute.
    """

    __slots__ = (
        "_book",
        "alone",
        "full_ms",
        "highest",
        "kept",
        "line",
        "others",
        "queue",
        "rest",
        "until_ms",
    )

    def __init__(self, gauge: Gauge) -> None:
        super().__init__(gauge, None)
        self.is_open = False
        self.highest = 0
        self.until_ms = 0
        """The end of its minute."""
        self.alone: tuple[Hold, ...] = (self,)
        """What a job holds that takes of no other gauge, and the usual amount."""
        self.queue = ""
        self.line = 0
        """Who is stopped now, a queue as a whole being one..."""
        self.full_ms = 0
        """...and how long anybody was."""
        self.others: dict[str, Part] | None = None
        self.rest: Part | None = None
        self.kept: events.LimitUsed | None = None
        """What is to be told of minutes in which nothing happened."""
        self._book: UseBook | None = None

    def open(self, book: "UseBook", job: Job, now_ms: int) -> None:
        """The gauge is used, after a time in which it was not, or for the first time."""
        self._book = book
        self.is_open = True
        self.tenant = job.tenant
        self.queue = job.queue
        self.highest = self.gauge.used
        self.until_ms = now_ms - now_ms % MINUTE_MS + MINUTE_MS

    def forget(self) -> None:
        """Its gauge is no more. They would be a cycle, which only the collector finds."""
        self.gauge.use = None
        self.alone = ()

    def of(self, tenant: str) -> Part:
        """The tenant's part."""
        if tenant == self.tenant:
            return self
        others = self.others
        if others is None:
            others = self.others = {}
        part = others.get(tenant) or self.rest
        if part is None:
            if len(others) < PARTS_MAX - 1:
                part = others[tenant] = Part(self.gauge, tenant)
            else:
                part = self.rest = Part(self.gauge, None)
        return part

    def stop(self, member: Parked, tenant: str, now_ms: int) -> None:
        """`member`, whose next job is this tenant's, waits for the gauge."""
        left_ms = self.until_ms - now_ms
        part = self.of(tenant)
        part.stops += 1
        part.waiting += 1
        part.blocked_ms += left_ms
        if self.line == 0:
            self.full_ms += left_ms
        self.line += 1
        note_stop(member, part)

    def free(self, member: Parked, now_ms: int) -> None:
        """`member` waits no more, or for something else."""
        part = member.stopped
        if part is None:
            return
        if now_ms >= self.until_ms:
            self.renew(now_ms)
        left_ms = self.until_ms - now_ms
        note_stop(member, None)
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
            for part in self.parts()
        )

    def is_idle(self) -> bool:
        """Nobody holds anything of it, or waits for it."""
        return not (self.units or self.waiting or self.others or self.rest)

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
            assert self._book is not None
            kept.at_ms = now_ms
            self._book.events.append(kept)

    def end(self, now_ms: int) -> None:
        """The rule that the gauge stood for is gone: what it was is told at once."""
        if now_ms >= self.until_ms:
            self.renew(now_ms)
        self.tell_kept(now_ms)
        left_ms = self.until_ms - now_ms
        for part in self.parts():
            part.used_ms -= part.units * left_ms
            part.blocked_ms -= part.waiting * left_ms
        if self.line:
            self.full_ms -= left_ms
        self._keep(self.until_ms - MINUTE_MS, 1)
        self.tell_kept(now_ms)
        self.shut()
        self.forget()

    def shut(self) -> None:
        """There is nothing to tell until somebody uses the gauge."""
        for part in self.parts():
            part.close()

    def parts(self) -> list[Part]:
        parts: list[Part] = [self]
        if self.others:
            parts += self.others.values()
        if self.rest is not None:
            parts.append(self.rest)
        return parts

    def _settle(self) -> None:
        """Now it is as a minute is in which nothing happens."""
        self.highest = self.gauge.used
        self.full_ms = MINUTE_MS if self.line else 0
        for part in self.parts():
            part.settle()
        if self.others:
            for name, part in list(self.others.items()):
                if not (part.units or part.waiting):
                    part.close()
                    del self.others[name]
        if self.rest is not None and not (self.rest.units or self.rest.waiting):
            self.rest.close()
            self.rest = None

    def _keep(self, minute_ms: int, minutes: int) -> None:
        """So many minutes were as its figures are now."""
        if self.kept is not None:
            self.kept.minutes += minutes
            return
        gauge = self.gauge
        parts = self.parts()
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
            named(parts),
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
        if use is None or not use.is_open:
            if use is not None and use.tenant not in (None, job.tenant):
                # Turns remember what they held: it is the part of another tenant.
                use.forget()
                use = None
            if use is None:
                use = gauge.use = Use(gauge)
            use.open(self, job, now_ms)
            self._open.append(use)
        elif now_ms >= use.until_ms:
            use.renew(now_ms)
        return use

    def start(self, turn: "Turn", job: Job, now_ms: int) -> None:
        """The job holds units of all gauges of its turn; none are kept free for it."""
        strand = turn.strand
        queue = strand.lane.queue
        whole, own = queue.rules.gauges, turn.tenancy.rule.gauges
        holds = turn.holds
        count = len(whole) + len(strand.gauges) + len(own)
        if count == 0:
            return
        if len(holds) != count or not self._is_as_before(holds, job.cost, now_ms):
            gauges = (*whole, *strand.gauges, *own)
            turn.holds = holds = self._find(gauges, job, now_ms)
        if self._take(holds, job, now_ms):
            for hold in holds:
                big = hold.gauge.big
                if big is turn or big is queue.gate:
                    hold.gauge.big = None
        job.holds = holds

    def take(self, gauges: tuple[Gauge, ...], job: Job, now_ms: int) -> None:
        """The job holds units of the gauges, too."""
        holds = self._find(gauges, job, now_ms)
        self._take(holds, job, now_ms)
        job.holds += holds

    def _find(
        self, gauges: tuple[Gauge, ...], job: Job, now_ms: int
    ) -> tuple[Hold, ...]:
        """What the job is to hold of the gauges."""
        cost = job.cost
        holds: list[Hold] = []
        for gauge in gauges:
            part = self.use(gauge, job, now_ms).of(job.tenant)
            units = 0
            if not isinstance(gauge, RateGauge):
                units = cost if cost <= gauge.max else gauge.units(cost)
            holds.append(part.taken(units))
        use = gauges[0].use if len(gauges) == 1 else None
        return use.alone if use is not None and use is holds[0] else tuple(holds)

    def _is_as_before(self, holds: tuple[Hold, ...], cost: int, now_ms: int) -> bool:
        """Whether a job of that cost is to hold what another of its turn has held.

        Gauges of a turn come and go one by one: their number tells, and a part is closed
        with its gauge.
        """
        for hold in holds:
            gauge = hold.gauge
            if not (hold.part or hold).is_open or cost > gauge.max:
                return False
            if hold.amount != cost and type(gauge) is not RateGauge:
                return False
        if now_ms >= self.due_ms:
            for hold in holds:
                use = hold.gauge.use
                if use is None or now_ms >= use.until_ms:
                    return False
        return True

    def _take(self, holds: tuple[Hold, ...], job: Job, now_ms: int) -> bool:
        """Whether some head has first call on units of one of the gauges."""
        has_big = False
        left_ms = MINUTE_MS - now_ms % MINUTE_MS
        for hold in holds:
            gauge, part, units = hold.gauge, hold.part or hold, hold.amount
            if gauge.big is not None:
                has_big = True
            # Spelled out for plain gauges, here and below: it runs for every start.
            if type(gauge) is Gauge:
                gauge.used = used = gauge.used + units
                part.units += units
                part.used_ms += units * left_ms
            elif type(gauge) is RateGauge:
                price = job.cost * gauge.period_ms
                used = gauge.pay(price, now_ms)
                # A unit is in use until it is paid for, one period later.
                part.used_ms += price
            else:
                assert isinstance(gauge, ShareGauge)
                gauge.take(units, now_ms)
                used = gauge.used
                part.units += units
                part.used_ms += units * left_ms
            use = gauge.use
            assert use is not None
            if used > use.highest:
                use.highest = used
        return has_big

    def give_back(self, job: Job, now_ms: int) -> None:
        """What the job holds comes free."""
        holds = job.holds
        if not holds:
            return
        job.holds = ()
        left_ms = MINUTE_MS - now_ms % MINUTE_MS
        if now_ms >= self.due_ms:
            for hold in holds:
                use = hold.gauge.use
                if use is not None and use.is_open and now_ms >= use.until_ms:
                    use.renew(now_ms)
        for hold in holds:
            units = hold.amount
            if units == 0:
                continue
            gauge, part = hold.gauge, hold.part or hold
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
            if not use.is_open:
                # It has ended with its rule, and was told then.
                continue
            if use.until_ms <= now_ms:
                use.renew(now_ms)
                if use.is_idle():
                    use.tell_kept(now_ms)
                    use.shut()
                    continue
            self._open.append(use)
        self.due_ms = 0 if telling else self._ends_ms
