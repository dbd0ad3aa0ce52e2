"""Limits at work: gauges for what runs, and who waits for which of them.

A queue, a strand or a turn that does not fit parks on the one gauge that stopped it;
units that come free wake only as many as fit, the lowest pass of each lane first.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from headway.core.config import Limit, Rate, Shares
from headway.core.turn import Turn

if TYPE_CHECKING:
    from mypy_extensions import i64

    from headway.core.gate import Gate
    from headway.core.part import Part
    from headway.core.usage import Use


Parked: TypeAlias = "Turn | Gate"
"""What can wait for a gauge. By name: compiled code looks the fields of a protocol up."""


class Gauge:
    """One value of a concurrency limit: how much of it is in use."""

    __slots__ = (
        "big",
        "highest",
        "is_plain",
        "limit",
        "lone",
        "max",
        "owners",
        "parked",
        "use",
        "used",
        "value",
    )

    def __init__(self, limit: str, value: str, maximum: int) -> None:
        # Compiled code counts in plain numbers where it is told that they are small.
        self.max: i64 = maximum
        self.used: i64 = 0
        self.highest: i64 = 0
        """The most that was in use in this minute."""
        self.big: Parked | None = None
        """A head too big for what is free: it has first call on it."""
        self.use: Use | None = None
        """What is to be told of this minute."""
        self.parked: dict[int, list[tuple[int, int, Parked]]] | None = None
        """Waiting members by lane, each a heap by pass..."""
        self.lone: Parked | None = None
        """...but for a single one, which needs no heap."""
        self.limit = limit
        self.value = value
        self.owners = 0
        """Strands that have it, in all lanes, or rules of tenants."""
        # Last: whoever is asked what it is has to be whole, for compiled code.
        self.is_plain = type(self) is Gauge
        """Nothing else is to be done when units are taken or given back."""

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

    def give_back(self, units: int, now_ms: int) -> None:
        self.used -= units
        assert self.used >= 0, (self.limit, self.value)
        if self.lone is not None or self.parked:
            self.wake(now_ms)

    def park(self, member: Parked, cost: int, now_ms: int) -> None:
        """`member` waits here; one that wants more than one unit reserves them."""
        wait_for(member, self)
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

    def forget(self, member: Parked) -> None:
        """`member` started, or waits elsewhere: it has no call on units here."""
        if self.big is member:
            self.big = None

    def let_go(self, member: Parked, now_ms: int) -> None:
        """`member` gives its place up: what it had reserved serves others."""
        wait_for(member, None)
        if self.use is not None:
            self.use.free(member, now_ms)
        self.forget(member)
        if self.has_waiting():
            self.wake(now_ms)

    def pass_on(self, now_ms: int) -> None:
        """Whoever was woken last can't start: another may."""
        if self.has_waiting():
            self.wake(now_ms)

    def has_waiting(self) -> bool:
        return self.lone is not None or bool(self.parked)

    def is_at_rest(self, now_ms: int) -> bool:
        """Whether another one, made when its value comes again, would be as it is."""
        is_told = self.use is None or not self.use.is_open
        return is_told and not self.used and not self.has_waiting()

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
        if not self.parked or free < 0:
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
        while heap:
            rank, _, member = heap[0]
            if member.parked_on is not self:
                heappop(heap)
                continue
            current = member.pass_now()
            if current > rank:
                heappop(heap)
                heappush(heap, (current, member.number, member))
                continue
            units = self.units(member.units_wanted())
            if free <= 0 and units > 0:
                break
            heappop(heap)
            free -= units
            self._unpark(member, now_ms)
        if not heap:
            del self.parked[lane]

    def _unpark(self, member: Parked, now_ms: int) -> None:
        wait_for(member, None)
        _call(member, self)
        if self.use is not None:
            self.use.free(member, now_ms)
        member.unpark(now_ms)


# Compiled code sets a field of one that may be of two classes by the field's name, which
# takes long: here it is told which.


def wait_for(member: Parked, gauge: Gauge | None) -> None:
    if isinstance(member, Turn):
        member.parked_on = gauge
    else:
        member.parked_on = gauge


def note_stop(member: Parked, part: "Part | None") -> None:
    """On whose part it counts that the member is stopped; None if it is no more."""
    if isinstance(member, Turn):
        member.stopped = part
    else:
        member.stopped = part


def _call(member: Parked, gauge: Gauge) -> None:
    if isinstance(member, Turn):
        member.called_by = gauge
    else:
        member.called_by = gauge


class RateGauge(Gauge):
    """One value of a rate limit (GCRA): each unit is owed for until it is paid, in time.

    Each millisecond pays `count` ticks, so that one unit is exactly one period of them
    and nothing is rounded.
    """

    __slots__ = (
        "_tolerance",
        "as_of_ms",
        "has_paid",
        "owed",
        "owed_most",
        "period_ms",
        "room",
        "ticks",
        "timer_ms",
    )

    def __init__(self, limit: Rate, value: str, since_ms: int = 0) -> None:
        """What was let pass before `since_ms` is unknown: then it was all of a burst."""
        super().__init__(limit.name, value, limit.count)
        self.ticks = limit.count
        self.period_ms = limit.period_ms
        burst = limit.count if limit.burst is None else limit.burst
        self._tolerance = burst * self.period_ms
        self.room = self._tolerance - self.period_ms
        """One more unit may start while no more than this is owed."""
        self.owed = self._tolerance if since_ms else 0
        """Of all that was started, what was not paid for yet at the time..."""
        self.as_of_ms = since_ms
        """...that was last asked for: it is the same for all of a decision."""
        self.timer_ms = 0
        """When it will be looked at again; 0 means that nobody waits."""
        self.has_paid = False
        """Something was started at that time."""
        self.owed_most = 0
        """The most in this minute, but for that time."""

    def settle(self, now_ms: int) -> None:
        """What is owed is that of this time from here on."""
        if now_ms == self.as_of_ms:
            return
        if self.has_paid:
            self.owed_most = max(self.owed_most, self.owed)
            self.has_paid = False
        if self.owed:
            left = self.owed - (now_ms - self.as_of_ms) * self.ticks
            self.owed = max(left, 0)
        self.as_of_ms = now_ms

    def units(self, cost: int) -> int:
        return cost

    def fits(self, cost: int, member: Parked, now_ms: int) -> bool:
        self.settle(now_ms)
        if self.owed + cost * self.period_ms <= self._tolerance:
            return True
        return self.ready_ms(cost, now_ms) <= now_ms

    def ready_ms(self, cost: int, now_ms: int) -> int:
        """When a start of that cost would be within the rate."""
        self.settle(now_ms)
        if cost == 0:
            return now_ms
        # One dearer than the whole burst may go when everything is paid for.
        late = min(cost * self.period_ms, self._tolerance) - self._tolerance + self.owed
        return now_ms if late <= 0 else now_ms - (-late // self.ticks)

    def is_at_rest(self, now_ms: int) -> bool:
        self.settle(now_ms)
        return self.owed == 0 and super().is_at_rest(now_ms)

    def unpaid(self, now_ms: int) -> int:
        """Units of its burst that are in use at this moment."""
        self.settle(now_ms)
        return self.units_of(self.owed)

    @property
    def burst(self) -> int:
        """Units that may start at once when all is paid for."""
        return self._tolerance // self.period_ms

    def park(self, member: Parked, cost: int, now_ms: int) -> None:
        super().park(member, 1, now_ms)

    def wake(self, now_ms: int) -> None:
        self.settle(now_ms)
        free = max(1, (self._tolerance - self.owed) // self.period_ms)
        self._wake_lone(1 << 62, now_ms)
        for lane in list(self.parked or ()):
            self._wake_lane(lane, free, now_ms)

    def next_ms(self, now_ms: int) -> int:
        """When to look again at those who still wait."""
        return max(now_ms + 1, self.ready_ms(self._wanted(), now_ms))

    def units_of(self, ticks: int) -> int:
        """How many it takes so long to pay for."""
        return -(-ticks // self.period_ms)

    def _wanted(self) -> int:
        """Units of the cheapest of those who are next: before that nobody can go."""
        if self.lone is not None:
            return max(1, self.lone.units_wanted())
        firsts = [heap[0][2].units_wanted() for heap in (self.parked or {}).values()]
        return max(1, min(firsts, default=1))


def dimension(limit: Limit) -> str | None:
    """What tells the values of a limit apart: a label, "kind", "tenant" or nothing."""
    return limit.by if isinstance(limit, Shares) else limit.per
