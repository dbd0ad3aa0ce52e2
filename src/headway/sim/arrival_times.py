"""When the jobs of one load come: one generator for each shape of a stream."""

from collections.abc import Iterator
from math import ceil, log, pi, sin
from random import Random

from headway.sim.scenario import Burst, Exact, Load, Poisson, Sine, Steady, Trace


def arrival_times(load: Load, duration_ms: int, random: Random) -> Iterator[int]:
    """Ascending, in ms after the start, within [from, until) and the duration."""
    from_ms, end_ms = load.from_ms, load.end_ms(duration_ms)
    match load.arrivals:
        case Steady(per_second=rate):
            return _steady(rate, from_ms, end_ms)
        case Poisson(per_second=rate):
            return _poisson(rate, from_ms, end_ms, random)
        case Sine():
            return _sine(load.arrivals, from_ms, end_ms, random)
        case Burst():
            times = _bursts(load.arrivals, end_ms)
        case Trace():
            times = _trace(load.arrivals, from_ms, random)
        case Exact(at_ms=exact):
            times = iter(exact)
    return (at_ms for at_ms in times if from_ms <= at_ms < end_ms)


def _steady(rate: float, from_ms: int, end_ms: int) -> Iterator[int]:
    if not rate:
        return
    count = ceil((end_ms - from_ms) * rate / 1_000)
    for number in range(count):
        # Each from its number, not from the one before: no drift.
        yield from_ms + int(number * 1_000 / rate)


def _poisson(rate: float, from_ms: int, end_ms: int, random: Random) -> Iterator[int]:
    if not rate:
        return
    gap_ms, draw, at_ms = 1_000 / rate, random.random, float(from_ms)
    while (at_ms := at_ms - gap_ms * log(1.0 - draw())) < end_ms:
        yield int(at_ms)


def _sine(shape: Sine, from_ms: int, end_ms: int, random: Random) -> Iterator[int]:
    # Thinning: draw at the peak rate, keep each with its share of the peak.
    peak = 1.0 + shape.amplitude
    turn = 2.0 * pi / shape.period_ms
    for at_ms in _poisson(shape.per_second * peak, from_ms, end_ms, random):
        if random.random() * peak < 1.0 + shape.amplitude * sin(turn * at_ms):
            yield at_ms


def _bursts(shape: Burst, end_ms: int) -> Iterator[int]:
    step_ms = shape.every_ms or max(1, end_ms)
    for at_ms in range(shape.at_ms, end_ms, step_ms):
        for _ in range(shape.count):
            yield at_ms
        if shape.every_ms is None:
            return


def _trace(shape: Trace, from_ms: int, random: Random) -> Iterator[int]:
    for step, count in enumerate(shape.jobs):
        start_ms = from_ms + step * shape.step_ms
        yield from sorted(
            start_ms + int(random.random() * shape.step_ms) for _ in range(count)
        )
