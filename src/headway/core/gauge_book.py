"""All gauges of one queue, by limit and value."""

from collections import OrderedDict
from typing import Final

from headway.core.config import Concurrency, Limit, Rate, Shares
from headway.core.limits import Gauge, RateGauge
from headway.core.shares import REST, ShareGauge, SharePool
from headway.core.usage import Use

LOOKS: Final = 2
"""Values that nobody has any more and that are looked at when one comes: two for one."""


class GaugeBook:
    """The gauges of one queue, made when a value is first met."""

    __slots__ = ("_gauges", "_leaving", "_limits", "_pools", "_since_ms")

    def __init__(self, since_ms: int = 0) -> None:
        self._since_ms = since_ms
        self._limits: dict[str, Limit] = {}
        self._gauges: dict[tuple[str, str], Gauge] = {}
        self._pools: dict[str, SharePool] = {}
        self._leaving: OrderedDict[Gauge, None] = OrderedDict()
        """Gauges that no strand and no tenant has, but for those that are had again."""

    def gauge(self, limit: Limit, value: str) -> Gauge:
        if isinstance(limit, Shares) and value not in limit.percent:
            value = REST
        gauge = self._gauges.get((limit.name, value))
        if gauge is None:
            gauge = self._gauges[limit.name, value] = self._make(limit, value)
            gauge.use = Use(gauge)
        return gauge

    def cap(self, of: str, value: str, maximum: int) -> Gauge:
        """The gauge of an operator's cap for one kind or tenant."""
        name = f"cap:{of}"
        gauge = self._gauges.get((name, value))
        if gauge is None:
            gauge = self._gauges[name, value] = Gauge(name, value, maximum)
            gauge.use = Use(gauge)
        gauge.max = maximum
        return gauge

    def uncap(self, of: str, value: str, now_ms: int) -> None:
        """The cap is lifted: whoever waited for it goes on."""
        gauge = self._gauges.pop((f"cap:{of}", value), None)
        if gauge is not None:
            _retire(gauge, now_ms)

    def join(self, gauges: tuple[Gauge, ...]) -> None:
        """There is a strand, or a tenant's rule, that has them."""
        for gauge in gauges:
            gauge.owners += 1

    def leave(self, gauges: tuple[Gauge, ...]) -> None:
        """It is no more."""
        for gauge in gauges:
            gauge.owners -= 1
            # Caps are the operator's, and shares as many as the limit names.
            is_plain = gauge.limit in self._limits and not isinstance(gauge, ShareGauge)
            if gauge.owners == 0 and is_plain:
                self._leaving[gauge] = None

    def tidy(self, now_ms: int) -> None:
        """Drops some that nobody has, and of which nothing is in use or unpaid."""
        leaving = self._leaving
        for _ in range(min(LOOKS, len(leaving))):
            gauge, _ = leaving.popitem(last=False)
            key = gauge.limit, gauge.value
            if gauge.owners or self._gauges.get(key) is not gauge:
                continue
            if gauge.is_at_rest(now_ms):
                del self._gauges[key]
            else:
                leaving[gauge] = None
            # A rate of hours may be unpaid for long, and is told of no more.
            if gauge.use is not None and not gauge.use.is_open:
                gauge.use.forget()

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
                _retire(gauge, now_ms)

    def _make(self, limit: Limit, value: str) -> Gauge:
        match limit:
            case Concurrency():
                return Gauge(limit.name, value, limit.max)
            case Rate():
                return RateGauge(limit, value, self._since_ms)
            case Shares():
                if limit.name not in self._pools:
                    self._pools[limit.name] = SharePool(limit)
                return ShareGauge(limit, value, self._pools[limit.name])


def _retire(gauge: Gauge, now_ms: int) -> None:
    """Nobody waits for it any more; what still holds units gives them back to it."""
    gauge.wake_all(now_ms)
    use = gauge.use
    if use is not None:
        if use.is_open:
            use.end(now_ms)
        else:
            use.forget()
