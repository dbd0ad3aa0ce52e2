"""Limits at work: gauges for what runs, and who waits for which of them.

A queue, a strand or a turn that does not fit parks on the one gauge that stopped it;
units that come free wake only as many as fit, the lowest pass of each lane first.
"""

from heapq import heappop, heappush
from typing import Final, Protocol

from headway.core.config import Concurrency, Limit, Rate, Shares


class Parked(Protocol):
    """What can wait for a gauge."""

    number: int
    parked_on: object | None

    def lane_number(self) -> int:
        """Members of one lane are woken in order of pass, lanes side by side."""

    def pass_now(self) -> int: ...

    def units_wanted(self) -> int: ...

    def is_standing(self) -> bool:
        """Whether it still has a job to start and nothing else stops it."""

    def unpark(self, now_ms: int) -> None: ...


class Gauge:
    """One value of a concurrency limit: how much of it is in use."""

    __slots__ = ("big", "limit", "lone", "max", "parked", "used", "value")

    def __init__(self, limit: str, value: str, maximum: int) -> None:
        self.limit = limit
        self.value = value
        self.max = maximum
        self.used = 0
        self.parked: dict[int, list[tuple[int, int, Parked]]] | None = None
        """Waiting members by lane, each a heap by pass..."""
        self.lone: Parked | None = None
        """...but for a single one, which needs no heap."""
        self.big: Parked | None = None
        """A head too big for what is free: it has first call on it."""

    def units(self, cost: int) -> int:
        """What a job takes: one dearer than the limit may run alone."""
        return cost if cost <= self.max else max(self.max, 1)

    def fits(self, cost: int, member: Parked, now_ms: int) -> bool:
        units = cost if cost <= self.max else self.units(cost)
        free = self.max - self.used
        big = self.big
        if big is not None and big is not member:
            if big.parked_on is self or big.is_standing():
                free -= self.units(big.units_wanted())
            else:
                self.forget(big)
        return units <= free

    def take(self, cost: int, now_ms: int) -> int:
        """Counts a start; answers the units that must be given back."""
        units = cost if cost <= self.max else self.units(cost)
        self.used += units
        return units

    def give_back(self, units: int, now_ms: int) -> None:
        self.used -= units
        assert self.used >= 0, (self.limit, self.value)
        if self.lone is not None or self.parked:
            self.wake(now_ms)

    def park(self, member: Parked, cost: int, now_ms: int) -> None:
        """`member` waits here; one that wants more than one unit reserves them."""
        member.parked_on = self
        lone = self.lone
        if lone is None and not self.parked:
            self.lone = member
        else:
            if lone is not None:
                self.lone = None
                self._line_up(lone)
            self._line_up(member)
        if cost > 1 and self.big is None and self.units(cost) > 1:
            self.big = member

    def expect(self, member: Parked) -> None:
        """`member` has a job that will ask for units when its turn comes."""

    def forget(self, member: Parked) -> None:
        """`member` started, or waits elsewhere: it has no call on units here."""
        if self.big is member:
            self.big = None

    def let_go(self, member: Parked, now_ms: int) -> None:
        """`member` gives its place up: what it had reserved serves others."""
        member.parked_on = None
        self.forget(member)
        if self.has_waiting():
            self.wake(now_ms)

    def has_waiting(self) -> bool:
        return self.lone is not None or bool(self.parked)

    def wake(self, now_ms: int) -> None:
        """Lets go as many as what is free may serve."""
        free = self.max - self.used
        if self.lone is not None:
            self._wake_lone(free, now_ms)
            return
        big = self.big
        if big is not None:
            units = self.units(big.units_wanted())
            if big.parked_on is not self:
                self.forget(big)
            elif units > free:
                return
            else:
                self._unpark(big, now_ms)
                free -= units
        if not self.parked or free <= 0:
            return
        for lane in list(self.parked):
            self._wake_lane(lane, free, now_ms)

    def wake_all(self, now_ms: int) -> None:
        """Lets everyone go: the rule that this gauge stood for is gone."""
        self._wake_lone(1 << 62, now_ms)
        for lane in list(self.parked or ()):
            self._wake_lane(lane, 1 << 62, now_ms)

    def _line_up(self, member: Parked) -> None:
        if self.parked is None:
            self.parked = {}
        heap = self.parked.setdefault(member.lane_number(), [])
        heappush(heap, (member.pass_now(), member.number, member))

    def _wake_lone(self, free: int, now_ms: int) -> None:
        lone = self.lone
        if lone is None:
            return
        if lone.parked_on is not self:
            self.lone = None
            self.forget(lone)
        elif self.units(lone.units_wanted()) <= free:
            self.lone = None
            self._unpark(lone, now_ms)

    def _wake_lane(self, lane: int, free: int, now_ms: int) -> None:
        assert self.parked is not None
        heap = self.parked[lane]
        while heap and free > 0:
            rank, _, member = heap[0]
            if member.parked_on is not self:
                heappop(heap)
                continue
            current = member.pass_now()
            if current > rank:
                heappop(heap)
                heappush(heap, (current, member.number, member))
                continue
            heappop(heap)
            free -= self.units(member.units_wanted())
            self._unpark(member, now_ms)
        if not heap:
            del self.parked[lane]

    def _unpark(self, member: Parked, now_ms: int) -> None:
        member.parked_on = None
        member.unpark(now_ms)


class RateGauge(Gauge):
    """One value of a rate limit (GCRA): each unit moves the next start on.

    Its clock ticks `count` times a millisecond, so that one unit is exactly one
    period and nothing is rounded.
    """

    __slots__ = ("_interval", "_ticks", "_tolerance", "clock", "timer_ms")

    def __init__(self, limit: Rate, value: str) -> None:
        super().__init__(limit.name, value, limit.count)
        self._ticks = limit.count
        self._interval = limit.period_ms
        burst = limit.count if limit.burst is None else limit.burst
        self._tolerance = burst * self._interval
        self.clock = 0
        """When all that was started will have been paid for, in ticks."""
        self.timer_ms = 0
        """When it will be looked at again; 0 means that nobody waits."""

    def units(self, cost: int) -> int:
        return cost

    def fits(self, cost: int, member: Parked, now_ms: int) -> bool:
        return self.ready_ms(cost, now_ms) <= now_ms

    def ready_ms(self, cost: int, now_ms: int) -> int:
        """When a start of that cost would be within the rate."""
        if cost == 0:
            return now_ms
        now = now_ms * self._ticks
        # One dearer than the whole burst may go when everything is paid for.
        price = min(cost * self._interval, self._tolerance)
        late = max(self.clock, now) + price - now - self._tolerance
        return now_ms if late <= 0 else now_ms - (-late // self._ticks)

    def take(self, cost: int, now_ms: int) -> int:
        self.clock = max(self.clock, now_ms * self._ticks) + cost * self._interval
        return 0

    def give_back(self, units: int, now_ms: int) -> None:
        """Nothing: what was started stays started."""

    def park(self, member: Parked, cost: int, now_ms: int) -> None:
        super().park(member, 1, now_ms)

    def wake(self, now_ms: int) -> None:
        paid = max(0, self.clock - now_ms * self._ticks)
        free = max(1, (self._tolerance - paid) // self._interval)
        self._wake_lone(1 << 62, now_ms)
        for lane in list(self.parked or ()):
            self._wake_lane(lane, free, now_ms)

    def next_ms(self, now_ms: int) -> int:
        """When to look again at those who still wait."""
        return max(now_ms + 1, self.ready_ms(1, now_ms))


class SharePool:
    """A concurrency limit divided between the values of a label."""

    __slots__ = ("gauges", "is_lending", "max", "used")

    def __init__(self, limit: Shares) -> None:
        self.max = limit.max
        self.used = 0
        self.is_lending = limit.is_lending
        self.gauges: dict[str, ShareGauge] = {}

    def wake(self, now_ms: int) -> None:
        """Values below their share are served first, borrowers after them."""
        waiting = [g for g in self.gauges.values() if g.has_waiting()]
        for gauge in waiting:
            if gauge.used < gauge.share:
                gauge.wake(now_ms)
        if self.is_lending and self.used < self.max and not self.is_owed(None):
            for gauge in waiting:
                if gauge.used >= gauge.share:
                    gauge.wake(now_ms)

    def is_owed(self, asker: "ShareGauge | None") -> bool:
        """Whether another value, below its own share, wants units."""
        return any(
            gauge.used < gauge.share and gauge is not asker and gauge.is_called()
            for gauge in self.gauges.values()
        )


class ShareGauge(Gauge):
    """One value's share of a pool."""

    __slots__ = ("called", "pool", "share")

    def __init__(self, limit: Shares, value: str, pool: SharePool) -> None:
        self.share = shares_of(limit).get(value, 0)
        super().__init__(
            limit.name, value, limit.max if pool.is_lending else self.share
        )
        self.pool = pool
        self.called: Parked | None = None
        """Is to have units of its own share, and has not taken them yet."""
        pool.gauges[value] = self

    def fits(self, cost: int, member: Parked, now_ms: int) -> bool:
        pool = self.pool
        units = self.units(cost)
        if pool.used + units > pool.max:
            return False
        is_borrower = pool.is_lending and self.used + units > self.share
        if is_borrower and pool.is_owed(self):
            return False
        return super().fits(cost, member, now_ms)

    def take(self, cost: int, now_ms: int) -> int:
        units = super().take(cost, now_ms)
        self.called = None
        self.pool.used += units
        if self.pool.is_lending:
            # With the owner served, borrowers may have what is still free.
            self.pool.wake(now_ms)
        return units

    def give_back(self, units: int, now_ms: int) -> None:
        self.used -= units
        self.pool.used -= units
        assert self.used >= 0
        assert self.pool.used >= 0
        self.pool.wake(now_ms)

    def let_go(self, member: Parked, now_ms: int) -> None:
        super().let_go(member, now_ms)
        self.pool.wake(now_ms)

    def expect(self, member: Parked) -> None:
        if self.used < self.share:
            self.called = member

    def is_called(self) -> bool:
        """Whether a member waits, or will ask, for what is left of its own share."""
        called = self.called
        if called is not None:
            if called.is_standing() and self._is_within(called):
                return True
            self.called = None
        lone = self.lone
        if lone is not None:
            return lone.parked_on is self and self._is_within(lone)
        return any(
            heap[0][2].parked_on is self and self._is_within(heap[0][2])
            for heap in (self.parked or {}).values()
            if heap
        )

    def _is_within(self, member: Parked) -> bool:
        """Not a borrower itself: two of them would wait for each other."""
        return self.used + self.units(member.units_wanted()) <= self.share

    def _unpark(self, member: Parked, now_ms: int) -> None:
        self.called = member
        super()._unpark(member, now_ms)


REST: Final = "*"
"""Stands for all values that a share limit does not name."""


def shares_of(limit: Shares) -> dict[str, int]:
    """Percents as units: rounded down, what is left over to the largest remainders.

    A value with a percent above 0 gets at least one unit, or it could never start.
    """
    percents = dict(limit.percent)
    rest = 100 - sum(percents.values())
    if rest > 0:
        percents[REST] = rest
    units = {value: limit.max * percent // 100 for value, percent in percents.items()}
    left = limit.max - sum(units.values())
    by_remainder = sorted(percents, key=lambda v: (-(limit.max * percents[v] % 100), v))
    for value in by_remainder[: max(0, left)]:
        units[value] += 1
    floor = 1 if limit.max else 0
    return {v: max(u, floor) if percents[v] else 0 for v, u in units.items()}


def dimension(limit: Limit) -> str | None:
    """What tells the values of a limit apart: a label, "kind", "tenant" or nothing."""
    return limit.by if isinstance(limit, Shares) else limit.per


class GaugeBook:
    """The gauges of one queue, made when a value is first met."""

    __slots__ = ("_gauges", "_limits", "_pools")

    def __init__(self) -> None:
        self._limits: dict[str, Limit] = {}
        self._gauges: dict[tuple[str, str], Gauge] = {}
        self._pools: dict[str, SharePool] = {}

    def gauge(self, limit: Limit, value: str) -> Gauge:
        if isinstance(limit, Shares) and value not in limit.percent:
            value = REST
        gauge = self._gauges.get((limit.name, value))
        if gauge is None:
            gauge = self._gauges[limit.name, value] = self._make(limit, value)
        return gauge

    def cap(self, of: str, value: str, maximum: int) -> Gauge:
        """The gauge of an operator's cap for one kind or tenant."""
        name = f"cap:{of}"
        gauge = self._gauges.setdefault((name, value), Gauge(name, value, maximum))
        gauge.max = maximum
        return gauge

    def uncap(self, of: str, value: str, now_ms: int) -> None:
        """The cap is lifted: whoever waited for it goes on."""
        gauge = self._gauges.pop((f"cap:{of}", value), None)
        if gauge is not None:
            gauge.wake_all(now_ms)

    def drop(self, limit: Limit, value: str) -> None:
        """The value has not been seen for a while; nothing of it is in use."""
        self._gauges.pop((limit.name, value), None)

    def all(self) -> list[Gauge]:
        return list(self._gauges.values())

    def update(self, limits: tuple[Limit, ...], now_ms: int) -> None:
        """Takes new limits; one that only has another size keeps what is in use."""
        old, self._limits = self._limits, {limit.name: limit for limit in limits}
        for (name, value), gauge in list(self._gauges.items()):
            limit = self._limits.get(name)
            if name not in old or limit == old[name]:
                continue
            was = old[name]
            if (
                isinstance(limit, Concurrency)
                and isinstance(was, Concurrency)
                and limit.per == was.per
            ):
                gauge.max = limit.max
                gauge.wake(now_ms)
            else:
                del self._gauges[name, value]
                self._pools.pop(name, None)
                gauge.wake_all(now_ms)

    def _make(self, limit: Limit, value: str) -> Gauge:
        match limit:
            case Concurrency():
                return Gauge(limit.name, value, limit.max)
            case Rate():
                return RateGauge(limit, value)
            case Shares():
                if limit.name not in self._pools:
                    self._pools[limit.name] = SharePool(limit)
                return ShareGauge(limit, value, self._pools[limit.name])
