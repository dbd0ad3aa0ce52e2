"""The jobs of a scenario in the order of their arrival, drawn from its seed."""

import hashlib
from bisect import bisect
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import accumulate, repeat
from math import exp, log
from operator import attrgetter
from random import Random
from typing import Final

import msgspec

from headway.core.defaults import DURATION_MAX_MS
from headway.core.spec import JobSpec
from headway.sim.arrival_times import arrival_times
from headway.sim.scenario import (
    Exact,
    Label,
    ManyTenants,
    NamedTenants,
    OneTenant,
    Replies,
    RotatingTenants,
    Scenario,
    Service,
    Spread,
    Tenants,
)

FAILS_ALWAYS: Final = 1_000_000
SPECS_KEPT: Final = 100_000
NEVER: Final = -1

TenantOf = Callable[[int, int], tuple[str, float | None]]
"""From a job's number and time to its tenant and the tenant's weight."""


class Arrival(msgspec.Struct, eq=False, gc=False):
    """One job as it comes in, with all that chance has in store for it."""

    at_ms: int
    """Since the Unix epoch."""
    queue: str
    spec: JobSpec
    """Shared between equal jobs."""
    run_ms: int
    load: int
    """Index of its load in the scenario."""
    fails: int = 0
    """So many of its attempts end in a nack before one is done."""
    hangs: bool = False
    """The worker of its first attempt dies without a word."""
    reply_after_ms: int | None = None
    """None: it waits for no reply. NEVER: it waits in vain."""
    reply_timeout_ms: int = 0
    is_reply_early: bool = False


def arrivals(scenario: Scenario, seed: int | None = None) -> Iterator[Arrival]:
    """All jobs by time; those of one instant by load, then by number."""
    root = scenario.seed if seed is None else seed
    streams = [
        _Stream(scenario, index, random_of(root, load.name)).arrivals()
        for index, load in enumerate(scenario.loads)
    ]
    if len(streams) == 1:
        return streams[0]
    # merge() is stable: equal times leave in the order of the streams.
    return merge(*streams, key=attrgetter("at_ms"))


def random_of(seed: int, name: str) -> Random:
    """A source of its own for each name, the same in every process."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(digest))


class _Stream:
    """One load: its draws, and the specs already made for it."""

    def __init__(self, scenario: Scenario, index: int, random: Random) -> None:
        self._scenario = scenario
        self._index = index
        self._load = scenario.loads[index]
        self._random = random
        self._tenant_of = _tenant_of(self._load.tenants, self._load.weight, random)
        self._labels = [_label_draw(label, random) for label in self._load.labels]
        self._specs: dict[tuple[object, ...], JobSpec] = {}

    def arrivals(self) -> Iterator[Arrival]:
        load, index, random = self._load, self._index, self._random
        queue, epoch_ms = load.queue, self._scenario.epoch_ms
        draw_run_ms = time_draw(load.service, random)
        has_fate = bool(load.fail or load.hang or load.replies)
        times = arrival_times(load, self._scenario.duration_ms, random)
        for number, at_ms in enumerate(times):
            spec = self._spec(number, at_ms)
            arrival = Arrival(epoch_ms + at_ms, queue, spec, draw_run_ms(), index)
            if has_fate:
                self._draw_fate(arrival)
            yield arrival

    def _spec(self, number: int, at_ms: int) -> JobSpec:
        load = self._load
        tenant, weight = self._tenant_of(number, at_ms)
        slo_ms = load.slos_ms[number % len(load.slos_ms)] if load.slos_ms else None
        labels = tuple([draw() for draw in self._labels])
        key = (tenant, slo_ms, labels)
        spec = self._specs.get(key)
        if spec is None:
            if len(self._specs) >= SPECS_KEPT:
                self._specs.clear()
            spec = self._make(tenant, weight, slo_ms, labels)
            self._specs[key] = spec
        if load.delay_ms:
            run_at_ms = self._scenario.epoch_ms + at_ms + load.delay_ms
            spec = msgspec.structs.replace(spec, run_at_ms=run_at_ms)
        if isinstance(load.arrivals, Exact) and load.arrivals.priorities:
            priority = load.arrivals.priorities[number]
            spec = msgspec.structs.replace(spec, priority=priority)
        return spec

    def _make(
        self,
        tenant: str,
        weight: float | None,
        slo_ms: int | None,
        labels: tuple[str, ...],
    ) -> JobSpec:
        load = self._load
        named = zip((label.name for label in load.labels), labels, strict=True)
        return JobSpec(
            kind=load.kind,
            tenant=tenant,
            slo_ms=slo_ms,
            priority=load.priority,
            weight=weight,
            cost=load.cost,
            is_critical=load.is_critical,
            labels=dict(named) or None,
            windows=load.windows,
            timeout_ms=load.timeout_ms,
            lifetime_ms=load.lifetime_ms,
            attempts_max=load.attempts_max,
        )

    def _draw_fate(self, arrival: Arrival) -> None:
        load, random = self._load, self._random
        if load.fail:
            arrival.fails = _fails(load.fail, random.random())
        if load.hang:
            arrival.hangs = random.random() < load.hang
        if load.replies is not None and random.random() < load.replies.share:
            self._draw_reply(arrival, load.replies)

    def _draw_reply(self, arrival: Arrival, replies: Replies) -> None:
        random = self._random
        arrival.reply_timeout_ms = replies.timeout_ms
        arrival.reply_after_ms = time_draw(replies.after, random)()
        if random.random() < replies.never:
            arrival.reply_after_ms = NEVER
        else:
            arrival.is_reply_early = random.random() < replies.early


def _fails(share: float, draw: float) -> int:
    """How often an attempt fails in a row, each with this probability."""
    if share >= 1.0:
        return FAILS_ALWAYS
    # 1 - draw is never 0, so the logarithm is always defined.
    return min(FAILS_ALWAYS, int(log(1.0 - draw) / log(share)))


def time_draw(service: Service, random: Random) -> Callable[[], int]:
    """A function that draws one time in whole milliseconds, at least 1."""
    mean_ms = service.mean_ms
    match service.kind:
        case Spread.FIXED:
            return repeat(max(1, mean_ms)).__next__
        case Spread.UNIFORM:
            low_ms = mean_ms * (1.0 - service.spread)
            width_ms = 2.0 * mean_ms * service.spread
            draw = random.random
            return lambda: int(low_ms + width_ms * draw() + 0.5) or 1
        case Spread.EXPONENTIAL:
            draw = random.random
            return lambda: int(0.5 - mean_ms * log(1.0 - draw())) or 1
        case Spread.LOGNORMAL:
            sigma, gauss = service.sigma, random.gauss
            middle = log(mean_ms) - sigma * sigma / 2.0
            return lambda: _capped_ms(middle + sigma * gauss(0.0, 1.0))


def _capped_ms(logarithm: float) -> int:
    # exp() of a wild draw overflows; no job runs longer than any duration may be.
    if logarithm > log(DURATION_MAX_MS):
        return DURATION_MAX_MS
    return int(exp(logarithm) + 0.5) or 1


def _tenant_of(
    tenants: Tenants | None, weight: float | None, random: Random
) -> TenantOf:
    match tenants:
        case None:
            return lambda _number, _at_ms: ("", weight)
        case OneTenant(name=name):
            return lambda _number, _at_ms: (name, weight)
        case NamedTenants(names=names):
            return lambda number, _at_ms: (names[number % len(names)], weight)
        case RotatingTenants():
            return _rotating(tenants, weight)
        case ManyTenants():
            return _many(tenants, weight, random)


def _rotating(tenants: RotatingTenants, weight: float | None) -> TenantOf:
    count, every_ms, prefix = tenants.count, tenants.every_ms, tenants.prefix

    def name(number: int, at_ms: int) -> tuple[str, float | None]:
        crop = at_ms // every_ms if every_ms else 0
        return f"{prefix}{crop}-{number % count}", weight

    return name


def _many(tenants: ManyTenants, weight: float | None, random: Random) -> TenantOf:
    count, weights = tenants.count, tenants.weights
    known = [
        (f"{tenants.prefix}{n}", weights[n % len(weights)] if weights else weight)
        for n in range(count)
    ]
    draw = random.random
    if not tenants.zipf:
        return lambda _number, _at_ms: known[int(draw() * count)]
    sums = list(accumulate((n + 1) ** -tenants.zipf for n in range(count)))
    total, last = sums[-1], count - 1
    return lambda _number, _at_ms: known[bisect(sums, draw() * total, 0, last)]


def _label_draw(label: Label, random: Random) -> Callable[[], str]:
    values = label.values
    if len(values) == 1:
        return repeat(values[0]).__next__
    sums = list(accumulate(label.weights))
    total, last, draw = sums[-1], len(values) - 1, random.random
    return lambda: values[bisect(sums, draw() * total, 0, last)]
