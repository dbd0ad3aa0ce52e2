"""Promises checked at every simulated instant, by accounts kept apart from the core."""

from collections import deque

import msgspec

from headway.core.config import Concurrency, Limit, QueueConfig, Rate, Shares
from headway.core.limits import dimension
from headway.core.rules import value_of
from headway.core.shares import REST, shares_of
from headway.core.spec import JobSpec
from headway.sim.result import LimitUse


class CheckFailed(Exception):
    """The core broke a promise: the run is worthless, and the bug is ours."""


class _Start(msgspec.Struct):
    spec: JobSpec
    cost: int
    queue: str
    taken: list[tuple[str, str, int]]


class LimitChecker:
    """Units in use of every limit, counted from what was handed out and ended."""

    def __init__(self, configs: tuple[QueueConfig, ...]) -> None:
        self._configs = {config.name: config for config in configs}
        self._used: dict[tuple[str, str, str], int] = {}
        self._totals: dict[tuple[str, str], int] = {}
        self._peaks: dict[tuple[str, str], int] = {}
        self._rates: dict[tuple[str, str, str], deque[int]] = {}
        self._running: dict[int, _Start] = {}

    def reconfigured(self, config: QueueConfig) -> None:
        """A lower limit or rate holds for what starts from now on."""
        old = self._configs.get(config.name)
        kept = {} if old is None else {limit.name: limit for limit in old.limits}
        for limit in config.limits:
            if isinstance(limit, Rate) and kept.get(limit.name) != limit:
                for key in [
                    x for x in self._rates if x[:2] == (config.name, limit.name)
                ]:
                    del self._rates[key]
        self._configs[config.name] = config

    def started(self, seq: int, queue: str, spec: JobSpec, at_ms: int) -> None:
        config = self._configs[queue]
        if not config.limits or spec.is_critical or seq in self._running:
            return
        cost = config.cost if spec.cost is None else spec.cost
        start = _Start(spec, cost, queue, [])
        self._running[seq] = start
        for limit in config.limits:
            dim = dimension(limit)
            value = "" if dim is None else value_of(dim, spec)
            match limit:
                case Rate():
                    self._check_rate(queue, limit, value, cost, at_ms)
                case Concurrency():
                    self._take(start, limit, value, limit.max)
                case Shares():
                    value = value if value in limit.percent else REST
                    share = limit.max if limit.is_lending else shares_of(limit)[value]
                    self._take(start, limit, value, share)

    def ended(self, seq: int) -> None:
        start = self._running.pop(seq, None)
        if start is not None:
            for name, value, units in start.taken:
                self._used[start.queue, name, value] -= units
                self._totals[start.queue, name] -= units

    def uses(self) -> dict[str, LimitUse]:
        """The most that was in use of each limit, against what there was."""
        uses: dict[str, LimitUse] = {}
        names = [limit.name for c in self._configs.values() for limit in c.limits]
        for config in self._configs.values():
            for limit in config.limits:
                name = limit.name
                key = name if names.count(name) == 1 else f"{config.name}.{name}"
                capacity = limit.count if isinstance(limit, Rate) else limit.max
                peak = self._peaks.get((config.name, name), 0)
                uses[key] = LimitUse(peak, capacity)
                if isinstance(limit, Shares):
                    for value, share in shares_of(limit).items():
                        used = self._peaks.get((config.name, f"{name}/{value}"), 0)
                        uses[f"{key}/{value}"] = LimitUse(used, share)
        return uses

    def _take(self, start: _Start, limit: Limit, value: str, most: int) -> None:
        assert not isinstance(limit, Rate)
        units = start.cost if start.cost <= most else max(most, 1)
        key = (start.queue, limit.name, value)
        used = self._used[key] = self._used.get(key, 0) + units
        total_key = (start.queue, limit.name)
        total = self._totals[total_key] = self._totals.get(total_key, 0) + units
        start.taken.append((limit.name, value, units))
        is_per = isinstance(limit, Concurrency) and limit.per is not None
        if used > most or (not is_per and total > limit.max):
            raise CheckFailed(
                f"limit {limit.name} of queue {start.queue}: {used} of {most} units "
                f"for {value!r}, {total} in all"
            )
        peak = used if is_per else total
        self._peaks[total_key] = max(self._peaks.get(total_key, 0), peak)
        if isinstance(limit, Shares):
            value_key = (start.queue, f"{limit.name}/{value}")
            self._peaks[value_key] = max(self._peaks.get(value_key, 0), used)

    def _check_rate(
        self, queue: str, limit: Rate, value: str, cost: int, at_ms: int
    ) -> None:
        """Within any period there is one burst and one period's worth, no more."""
        starts = self._rates.setdefault((queue, limit.name, value), deque())
        starts.extend([at_ms] * cost)
        while starts and starts[0] <= at_ms - limit.period_ms:
            starts.popleft()
        most = limit.count + (limit.count if limit.burst is None else limit.burst)
        if len(starts) > max(most, cost):
            raise CheckFailed(
                f"rate {limit.name} of queue {queue}: {len(starts)} starts of {value!r} "
                f"within {limit.period_ms} ms"
            )
        key = (queue, limit.name)
        self._peaks[key] = max(self._peaks.get(key, 0), len(starts))
