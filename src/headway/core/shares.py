"""A concurrency limit divided between the values of a label, and units lent on it."""

from typing import Final

from headway.core.config import Shares
from headway.core.limits import Gauge, Parked

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


class SharePool:
    """A concurrency limit divided between the values of a label."""

    __slots__ = ("gauges", "has_waiting", "is_lending", "max", "used")

    def __init__(self, limit: Shares) -> None:
        self.max = limit.max
        self.used = 0
        self.is_lending = limit.is_lending
        self.gauges: dict[str, ShareGauge] = {}
        self.has_waiting = False
        """Whether a member may wait for one of its gauges."""

    def wake(self, now_ms: int) -> None:
        """Values below their share are served first, borrowers after them."""
        if not self.has_waiting:
            return
        waiting = [g for g in self.gauges.values() if g.has_waiting()]
        self.has_waiting = bool(waiting)
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
        units = cost if cost <= self.max else self.units(cost)
        if pool.used + units > pool.max:
            return False
        if self.big is None and not pool.is_lending:
            return self.used + units <= self.max
        is_borrower = pool.is_lending and self.used + units > self.share
        if is_borrower and pool.is_owed(self):
            return False
        return super().fits(cost, member, now_ms)

    def take(self, units: int, now_ms: int) -> None:
        """Counts a start."""
        self.used += units
        if self.used > self.highest:
            self.highest = self.used
        self.called = None
        self.pool.used += units
        if self.pool.is_lending:
            # With the owner served, borrowers may have what is still free.
            self.pool.wake(now_ms)

    def give_back(self, units: int, now_ms: int) -> None:
        self.used -= units
        pool = self.pool
        pool.used -= units
        assert self.used >= 0
        assert pool.used >= 0
        if pool.has_waiting:
            pool.wake(now_ms)

    def let_go(self, member: Parked, now_ms: int) -> None:
        super().let_go(member, now_ms)
        self.pool.wake(now_ms)

    def park(self, member: Parked, cost: int, now_ms: int) -> None:
        super().park(member, cost, now_ms)
        self.pool.has_waiting = True
        if self.big is member and self.units(cost) > self.share:
            # A borrower reserves nothing: it would keep its own value from its share.
            self.big = None

    def expect(self, member: Parked) -> None:
        """`member` has a job that will ask for units when its turn comes."""
        if self.used < self.share:
            self.called = member

    def pass_on(self, now_ms: int) -> None:
        self.called = None
        self.pool.wake(now_ms)

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
