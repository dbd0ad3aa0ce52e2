"""The uses of all gauges, and what jobs take of them: it runs for every start and end."""

from typing import TYPE_CHECKING, Final

import msgspec

from headway.core.job import Job
from headway.core.limits import Gauge, RateGauge
from headway.core.part import MINUTE_MS, Hold
from headway.core.shares import ShareGauge
from headway.core.usage import Use

if TYPE_CHECKING:
    from mypy_extensions import i64

    from headway.core.turn import Turn

HAS_BIG: Final = 1
"""Some head has first call on units of a gauge of which some were taken."""
IS_FULL: Final = 2
"""Of a gauge nothing is left; said of plain ones only."""
USES_TOLD: Final = 64
"""Limits that one decision looks at, of those whose minute is over."""


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
        self.closed: i64 = 0
        """How often parts were closed."""
        self._now_ms = 0
        self._left_ms: i64 = 0
        """The time that was last asked for, and what is left of its minute."""

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

    def start(self, turn: "Turn", job: Job, now_ms: int) -> bool:
        """The job holds units of all gauges of its turn; none are kept free for it.

        Whether one of them may be used up now.
        """
        strand = turn.strand
        queue = strand.lane.queue
        whole, own = queue.rules.gauges, turn.tenancy.rule.gauges
        holds = turn.holds
        count = len(whole) + len(strand.gauges) + len(own)
        if count == 0:
            return False
        if (
            job.cost != 1
            or turn.holds_as_of != self.closed
            or len(holds) != count
            or now_ms >= self.due_ms
        ):
            if len(holds) != count or not self._is_as_before(holds, job.cost, now_ms):
                gauges = (*whole, *strand.gauges, *own)
                turn.holds = holds = self._find(gauges, job, now_ms)
            turn.holds_as_of = self.closed if job.cost == 1 else -1
        found = self._take(holds, job, now_ms)
        if found & HAS_BIG:
            for hold in holds:
                big = hold.gauge.big
                if big is turn or big is queue.gate:
                    hold.gauge.big = None
        job.holds = holds
        return found & IS_FULL != 0

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

    def _take(self, holds: tuple[Hold, ...], job: Job, now_ms: int) -> "i64":
        """What was found meanwhile: `HAS_BIG`, `IS_FULL`, both, or 0."""
        found: i64 = 0
        left_ms = self._left_ms if now_ms == self._now_ms else self._left(now_ms)
        for hold in holds:
            gauge = hold.gauge
            if gauge.big is not None:
                found |= HAS_BIG
            units = hold.amount
            # Spelled out for plain gauges, here and below: it runs for every start.
            if hold.is_plain:
                used = gauge.used + units
                gauge.used = used
                if used > gauge.highest:
                    gauge.highest = used
                if used >= gauge.max:
                    found |= IS_FULL
            elif type(gauge) is RateGauge:
                # A unit is in use until it is paid for, one period later.
                price = gauge.period_ms if job.cost == 1 else job.cost * gauge.period_ms
                if gauge.as_of_ms != now_ms:
                    gauge.settle(now_ms)
                gauge.owed += price
                gauge.has_paid = True
                (hold.part or hold).used_ms += price
                continue
            else:
                assert isinstance(gauge, ShareGauge)
                gauge.take(units, now_ms)
            part = hold.part or hold
            part.units += units
            part.used_ms += units * left_ms
        return found

    def give_back(self, job: Job, now_ms: int) -> None:
        """What the job holds comes free."""
        holds = job.holds
        if not holds:
            return
        job.holds = ()
        left_ms = self._left_ms if now_ms == self._now_ms else self._left(now_ms)
        if now_ms >= self.due_ms:
            for hold in holds:
                use = hold.gauge.use
                if use is not None and use.is_open and now_ms >= use.until_ms:
                    use.renew(now_ms)
        for hold in holds:
            units = hold.amount
            if units == 0:
                continue
            part = hold.part or hold
            part.units -= units
            part.used_ms -= units * left_ms
            gauge = hold.gauge
            if not hold.is_plain:
                gauge.give_back(units, now_ms)
                continue
            used = gauge.used - units
            gauge.used = used
            assert used >= 0, (gauge.limit, gauge.value)
            if gauge.lone is not None or gauge.parked:
                gauge.wake(now_ms)

    def _left(self, now_ms: int) -> "i64":
        """What is left of a minute: the same for all of a decision."""
        self._now_ms = now_ms
        self._left_ms = MINUTE_MS - now_ms % MINUTE_MS
        return self._left_ms

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
