"""Charts as plain SVG. What they tell by colour they tell by form or words as well."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from headway.spark.report import words
from headway.spark.report.markup import Markup, join, tag
from headway.spark.report.source import DAY_S, HOUR_S, Buckets

WIDTH: Final = 360.0
HEIGHT: Final = 130.0
_LEFT: Final = 40.0
_TOP: Final = 8.0
_BOTTOM: Final = 20.0
_BAR_MAX: Final = 34.0
_SECOND: Final = 1_000
_STEPS_MS: Final = (
    *(1, 10, 100, _SECOND, 10 * _SECOND, 60 * _SECOND, 600 * _SECOND),
    *(HOUR_S * _SECOND, 10 * HOUR_S * _SECOND),
    *(days * DAY_S * _SECOND for days in (1, 10, 100, 1_000)),
)
"""Durations that people think in: scales begin and end with one of them."""

PATTERNS: Final = tag(
    "svg",
    tag(
        "defs",
        tag(
            "pattern",
            tag("rect", width=6, height=6, class_="late-ground"),
            tag("path", d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2", class_="late-line"),
            id="late",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        ),
    ),
    width=0,
    height=0,
    aria_hidden="true",
    class_="patterns",
)
"""Once on a page; the charts refer to it."""


class Layer(NamedTuple):
    """A part of every bar of a stack, from the bottom up."""

    name: str
    style: str
    values: Mapping[int, float]


class Line(NamedTuple):
    name: str
    style: str
    values: dict[int, float]


class Scale(NamedTuple):
    """Durations between two steps; each step takes as much room as any other."""

    bottom: int
    top: int

    @property
    def steps_ms(self) -> list[int]:
        return [_STEPS_MS[place] for place in range(self.bottom, self.top + 1)]

    def part(self, ms: float) -> float:
        """Where a duration is, from 0 to 1."""
        held = min(max(ms, self.steps_ms[0]), self.steps_ms[-1])
        place = min(bisect_right(_STEPS_MS, held), self.top) - 1
        low, high = _STEPS_MS[place], _STEPS_MS[place + 1]
        within = math.log(held / low) / math.log(high / low)
        return (place + within - self.bottom) / (self.top - self.bottom)

    def __str__(self) -> str:
        low, high = self.steps_ms[0], self.steps_ms[-1]
        return f"{words.short_duration(low)} to {words.short_duration(high)}"


def scale(values_ms: Sequence[float]) -> Scale:
    """From the step before the least to the one after the greatest."""
    known = [min(max(ms, _STEPS_MS[0]), _STEPS_MS[-1]) for ms in values_ms] or [1]
    bottom = min(bisect_right(_STEPS_MS, min(known)) - 1, len(_STEPS_MS) - 2)
    top = bisect_left(_STEPS_MS, max(known))
    return Scale(bottom, max(top, bottom + 1))


class Axes(NamedTuple):
    """Where things are."""

    parts: Buckets
    top: float
    on: Scale | None = None
    """For durations; else from 0 to the top."""

    @property
    def step(self) -> float:
        return (WIDTH - _LEFT) / len(self.parts.starts())

    def x(self, at_s: int) -> float:
        """The middle of a bucket."""
        place = (at_s - self.parts.first_s) / self.parts.size_s
        return _LEFT + (place + 0.5) * self.step

    def y(self, value: float) -> float:
        room = HEIGHT - _TOP - _BOTTOM
        part = value / self.top if self.on is None else self.on.part(value)
        return HEIGHT - _BOTTOM - room * part

    def drawn(self, label: Callable[[float], str]) -> Markup:
        """Lines across, with what they stand for, and moments below."""
        values = self._values()
        across = [
            join(
                (
                    tag(
                        "line",
                        x1=_LEFT,
                        x2=WIDTH,
                        y1=self.y(value),
                        y2=self.y(value),
                        class_="grid",
                    ),
                    _label(_LEFT - 4, self.y(value) + 3.5, label(value), "end"),
                )
            )
            for value in values
        ]
        return join((*across, *self._moments()))

    def _values(self) -> list[float]:
        if self.on is None:
            return [0.0, self.top / 2, self.top]
        steps_ms = self.on.steps_ms
        return [float(ms) for ms in steps_ms[:: math.ceil(len(steps_ms) / 5)]]

    def _moments(self) -> list[Markup]:
        starts = self.parts.starts()
        span_s = starts[-1] - starts[0]
        chosen = sorted({0, len(starts) // 2, len(starts) - 1})
        if len(starts) < 3:
            chosen = list(range(len(starts)))
        anchors = {0: "start", len(starts) - 1: "end"} if len(starts) > 2 else {}
        found = []
        for place in chosen:
            anchor = anchors.get(place, "middle")
            x = {"start": _LEFT, "end": WIDTH}.get(anchor, self.x(starts[place]))
            text = words.tick(starts[place], span_s)
            found.append(_label(x, HEIGHT - 6, text, anchor))
        return found


def stacked(
    parts: Buckets,
    layers: Sequence[Layer],
    about: str,
    *,
    top: float | None = None,
    label: Callable[[float], str] = words.short,
) -> Markup:
    """A bar for each bucket."""
    totals = [
        sum(layer.values.get(at_s, 0) for layer in layers) for at_s in parts.starts()
    ]
    axes = Axes(parts, top or nice(max(totals, default=0)))
    bars = []
    wide = min(axes.step * 0.84, _BAR_MAX)
    for at_s in parts.starts():
        below, drawn = 0.0, []
        for layer in layers:
            value = layer.values.get(at_s, 0)
            if value:
                top = axes.y(below + value)
                place = {"x": axes.x(at_s) - wide / 2, "y": top, "width": wide}
                height = axes.y(below) - top
                drawn.append(tag("rect", **place, height=height, class_=layer.style))
                below += value
        if drawn:
            told = ", ".join(
                f"{label(layer.values.get(at_s, 0))} {layer.name}" for layer in layers
            )
            title = f"{words.moment_in(at_s, parts.size_s)}: {told}"
            bars.append(tag("g", tag("title", title), *drawn))
    return _framed(axes.drawn(label), *bars, about=about)


def lines(
    parts: Buckets,
    told: Sequence[Line],
    about: str,
    *,
    mark: tuple[str, float],
) -> Markup:
    """Durations over time; a mark is drawn across."""
    values = [value for line in told for value in line.values.values()]
    axes = Axes(parts, 0, scale([*values, mark[1]]))
    y = axes.y(mark[1])
    return _framed(
        axes.drawn(words.short_duration),
        *(_line(axes, line) for line in told),
        tag("line", x1=_LEFT, x2=WIDTH, y1=y, y2=y, class_="mark"),
        _label(WIDTH - 2, y + (11 if y < 18 else -3), mark[0], "end", "mark-text"),
        about=about,
    )


def _line(axes: Axes, line: Line) -> Markup:
    """Points that follow each other are joined; a gap stays a gap."""
    path, before = [], None
    dots = []
    for at_s in axes.parts.starts():
        value = line.values.get(at_s)
        if value is not None:
            x, y = axes.x(at_s), axes.y(value)
            path.append(f"{'L' if before is not None else 'M'}{x:.1f},{y:.1f}")
            title = (
                f"{words.moment_in(at_s, axes.parts.size_s)}: "
                f"{line.name} {words.duration(value)}"
            )
            dots.append(
                tag("circle", tag("title", title), cx=x, cy=y, r=2.2, class_=line.style)
            )
        before = value
    shape = tag("path", d=" ".join(path), class_=f"line {line.style}") if path else ""
    return tag("g", shape, *dots)


def bar(part: float, *, mark: float | None = None, style: str = "met") -> Markup:
    """A part of a whole, with the part that it should have been as a line."""
    width, height = 120.0, 14.0
    shapes = [
        tag("rect", x=0, y=3, width=width, height=height - 6, class_="ground"),
        tag(
            "rect",
            x=0,
            y=3,
            width=width * min(1.0, max(0.0, part)),
            height=height - 6,
            class_=style,
        ),
    ]
    if mark is not None:
        x = min(max(width * mark, 1.0), width - 1)
        shapes.append(tag("line", x1=x, x2=x, y1=0, y2=height, class_="wanted"))
    return tag(
        "svg",
        *shapes,
        view_box=f"0 0 {width:g} {height:g}",
        class_="bar",
        aria_hidden="true",
        focusable="false",
    )


def spread(
    on: Scale, low: float, middle: float, high: float, mark: float | None
) -> Markup:
    """From p50 over p95 to p99, on a common scale, and the SLO as a line."""
    width, height = 180.0, 16.0
    a, b, c = (width * on.part(value) for value in (low, middle, high))
    is_over = mark is not None and high > mark
    shapes = [
        tag("rect", x=0, y=7, width=width, height=2, class_="ground"),
        tag("rect", x=a, y=5, width=max(c - a, 2), height=6, class_="spread"),
        tag("circle", cx=a, cy=8, r=3.4, class_="p50"),
        tag("line", x1=b, x2=b, y1=3, y2=13, class_="p95"),
        tag(
            "path",
            d=f"M{c - 4:.1f},3 L{c + 2:.1f},8 L{c - 4:.1f},13 Z",
            class_="p99 over" if is_over else "p99",
        ),
    ]
    if mark is not None:
        x = width * on.part(mark)
        shapes.append(tag("line", x1=x, x2=x, y1=0, y2=height, class_="wanted"))
    return tag(
        "svg",
        *shapes,
        view_box=f"-4 0 {width + 8:g} {height:g}",
        class_="spread-row",
        aria_hidden="true",
        focusable="false",
    )


def nice(most: float) -> float:
    """The next number that is 1, 2 or 5 times a power of ten, but two at least."""
    if most <= 2:
        return 2.0
    size = 10.0 ** math.floor(math.log10(most))
    return next(size * step for step in (1, 2, 5, 10) if size * step >= most)


def _label(x: float, y: float, text: str, anchor: str, style: str = "") -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=style or None)


def _framed(*inside: Markup, about: str) -> Markup:
    return tag(
        "svg",
        tag("title", about),
        *inside,
        view_box=f"0 0 {WIDTH:g} {HEIGHT:g}",
        class_="chart",
        role="img",
        aria_label=about,
    )
