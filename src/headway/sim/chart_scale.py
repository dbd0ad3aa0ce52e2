"""Axes of the chart: where a value stands between 0 and 1, and which ticks are drawn."""

from collections.abc import Iterable
from math import log1p
from typing import Final

import msgspec

from headway.core.defaults import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from headway.core.durations import format_ms

WIDE_RANGE: Final = 20
"""Promises further apart than this do not fit on a linear axis."""
_UNITS: Final = {"ms": "ms", "s": "s", "m": "min", "h": "h", "d": "d"}
_SIZES: Final = (
    (DAY_MS, "d"),
    (HOUR_MS, "h"),
    (MINUTE_MS, "min"),
    (SECOND_MS, "s"),
    (1, "ms"),
)
_STEPS_MS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(SECOND_MS * count for count in (1, 2, 5, 10, 20, 30)),
    *(MINUTE_MS * count for count in (1, 2, 5, 10, 20, 30)),
    *(HOUR_MS * count for count in (1, 2, 3, 6, 12)),
    *(DAY_MS * count for count in (1, 2, 7, 14, 30, 60, 180, 365, 730, 1_460)),
)


class Axis(msgspec.Struct, frozen=True):
    """From 0 to `top`. With a `bend` it is linear below and logarithmic above it."""

    top: float
    ticks: tuple[tuple[float, str], ...]
    bend: float | None = None

    def place(self, value: float) -> float:
        """0 at the bottom, 1 at the top; what lies beyond is put on the edge."""
        value = min(max(value, 0.0), self.top)
        if self.bend is None:
            return value / self.top
        return log1p(value / self.bend) / log1p(self.top / self.bend)


def wait_axis(slos_ms: Iterable[int], longest_ms: int) -> Axis:
    """Holds every promise and every wait."""
    promises = sorted(slos_ms) or [SECOND_MS]
    top = max(longest_ms, promises[-1]) * 1.06
    if max(promises[-1], longest_ms) <= WIDE_RANGE * promises[0]:
        return Axis(top, _even_ticks(top, 6))
    axis = Axis(top, (), promises[0] / 4)
    return Axis(top, _spread_ticks(axis), axis.bend)


def time_axis(end_ms: int) -> Axis:
    return Axis(max(end_ms, 1), _even_ticks(max(end_ms, 1), 9))


def count_axis(top: float) -> Axis:
    """For slots: 0 and one round number are enough beside a small panel."""
    step = 1
    while step * 10 <= top:
        step *= 10
    shown = max((step * part for part in (1, 2, 5) if step * part <= top), default=1)
    return Axis(top, ((0, "0"), (shown, f"{shown:,}")))


def span_label(duration_ms: float) -> str:
    """A round duration beside an axis or a line."""
    if not duration_ms:
        return "0"
    text = format_ms(int(duration_ms))
    number = text.rstrip("msdh")
    return f"{number} {_UNITS[text[len(number) :]]}"


def _even_ticks(top: float, most: int) -> tuple[tuple[float, str], ...]:
    """All in the unit of the step: 60 s and 90 s, not 1 min and 90 s."""
    step = next((step for step in _STEPS_MS if top / step < most), _STEPS_MS[-1])
    size_ms, unit = next(size for size in _SIZES if step % size[0] == 0)
    return tuple(
        (at, f"{at // size_ms} {unit}" if at else "0")
        for at in range(0, int(top) + 1, step)
    )


def _spread_ticks(axis: Axis) -> tuple[tuple[float, str], ...]:
    found = [0]
    for step in _STEPS_MS:
        is_apart = axis.place(step) - axis.place(found[-1]) > 0.075
        if step <= axis.top and is_apart:
            found.append(step)
    return tuple((at, span_label(at)) for at in found)
