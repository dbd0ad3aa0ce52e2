"""Draws panels of the chart as SVG. Colours are classes; the page gives them values."""

from collections.abc import Iterable
from html import escape
from itertools import pairwise
from typing import Final

import msgspec

from headway.sim.chart import Curve, LoadBand, Panel, Picture, Point
from headway.sim.chart_scale import Axis

COLORS: Final = 8
_LABEL_GAP: Final = 32


class Frame(msgspec.Struct, frozen=True):
    """A rectangle on the paper, and the two axes that span it."""

    left: float
    top: float
    width: float
    height: float
    across: Axis
    upward: Axis

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value: float) -> float:
        return self.left + self.width * self.across.place(value)

    def y(self, value: float) -> float:
        return self.bottom - self.height * self.upward.place(value)


def wide(picture: Picture) -> str:
    """One run, with its load beneath."""
    panel = picture.panels[0]
    waits = Frame(62, 14, 838, 400, picture.time, picture.wait)
    load = Frame(62, 452, 838, 92, picture.time, panel.load.axis)
    parts = [
        *_axes(waits, "wait before the start"),
        *_promises(waits, panel.curves, is_short=False),
        *_end_of_arrivals(waits, load, panel),
        *_curves(waits, panel.curves),
        *_captions(waits, panel.curves),
        *_load(load, panel.load),
        *_time_ticks(load),
        '<g class="cursor" visibility="hidden"><line class="hair" '
        f'y1="{waits.top}" y2="{load.bottom}"/></g>',
    ]
    return _svg(1080, 574, parts, f"Wait times of {picture.first.scenario}")


def small(picture: Picture, panel: Panel) -> str:
    """One run of several."""
    frame = Frame(52, 10, 402, 200, picture.time, picture.wait)
    parts = [
        *_axes(frame, ""),
        *_promises(frame, panel.curves, is_short=True),
        *_curves(frame, panel.curves),
        *_time_ticks(frame),
    ]
    return _svg(470, 238, parts, f"Wait times under {panel.result.policy}")


def tone(curve: Curve) -> str:
    """The class that colours a lane."""
    return f"lane{curve.color % COLORS}"


def _svg(width: int, height: int, parts: Iterable[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{safe(label)}">' + "".join(parts) + "</svg>"
    )


def _axes(frame: Frame, title: str) -> list[str]:
    parts = []
    for value, label in frame.upward.ticks:
        y = frame.y(value)
        style = "base" if value == 0 else "grid"
        parts.append(_line(style, (frame.left, y), (frame.right, y)))
        parts.append(_text("tick end", frame.left - 8, y + 4, label))
    if title:
        parts.append(_text("axis", frame.left, frame.top - 2, title))
    return parts


def _time_ticks(frame: Frame) -> list[str]:
    parts = []
    for value, label in frame.across.ticks:
        x = frame.x(value)
        parts.append(_line("base", (x, frame.bottom), (x, frame.bottom + 4)))
        parts.append(_text("tick middle", x, frame.bottom + 18, label))
    return parts


def _promises(frame: Frame, curves: list[Curve], *, is_short: bool) -> list[str]:
    parts = []
    for curve in curves:
        y = frame.y(curve.slo_ms)
        end = frame.right if is_short else frame.right + 6
        parts.append(_line(f"slo {tone(curve)}", (frame.left, y), (end, y)))
    return parts


def _curves(frame: Frame, curves: list[Curve]) -> list[str]:
    # The longest promise first: it has the most to show and the least to say.
    parts = []
    for curve in sorted(curves, key=lambda curve: -curve.slo_ms):
        for before, after in pairwise(curve.strokes):
            ends = [
                (frame.x(p.at_ms), frame.y(p.p99_ms)) for p in (before[-1], after[0])
            ]
            parts.append(_line(f"pause {tone(curve)}", *ends))
        for stroke in curve.strokes:
            if len(stroke) == 1:
                parts.append(_dot(frame, stroke[0], tone(curve)))
                continue
            parts.append(_band(frame, stroke, tone(curve)))
            line = _path((frame.x(p.at_ms), frame.y(p.p99_ms)) for p in stroke)
            parts.append(f'<path class="curve {tone(curve)}" d="{line}"/>')
    return parts


def _dot(frame: Frame, point: Point, color: str) -> str:
    x, y = frame.x(point.at_ms), frame.y(point.p99_ms)
    return f'<circle class="dot {color}" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>'


def _band(frame: Frame, stroke: list[Point], color: str) -> str:
    there = [(frame.x(p.at_ms), frame.y(p.max_ms)) for p in stroke]
    back = [(frame.x(p.at_ms), frame.y(p.mean_ms)) for p in reversed(stroke)]
    return f'<path class="band {color}" d="{_path(there + back)}Z"/>'


def _captions(frame: Frame, curves: list[Curve]) -> list[str]:
    ranked = sorted(curves, key=lambda curve: -curve.slo_ms)
    gap = min(_LABEL_GAP, frame.height / max(1, len(ranked)))
    wanted = [frame.y(curve.slo_ms) for curve in ranked]
    x = frame.right + 24
    parts = []
    for curve, at, y in zip(
        ranked,
        wanted,
        spaced(wanted, gap, frame.top + 6, frame.bottom - 8),
        strict=True,
    ):
        start, end = (frame.right + 6, at), (x - 5, y)
        parts.append(_line(f"leader {tone(curve)}", start, end))
        parts.append(_text(f"name {tone(curve)}", x, y + 1, shortened(curve.name)))
        if gap >= 26:
            parts.append(_text("note", x, y + 15, curve.caption))
    return parts


def shortened(name: str) -> str:
    """Fits beside the panel; the table beneath has the whole of it."""
    return name if len(name) <= 20 else name[:19] + "…"


def spaced(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending places as near to the wanted ones as the gap between them allows."""
    places: list[float] = []
    for at in wanted:
        places.append(max(at, low, places[-1] + gap if places else low))
    ceiling = high
    for n in range(len(places) - 1, -1, -1):
        places[n] = min(places[n], ceiling)
        ceiling = places[n] - gap
    return places


def _end_of_arrivals(waits: Frame, load: Frame, panel: Panel) -> list[str]:
    run = panel.result
    if run.ended_ms < run.duration_ms * 1.02:
        return []
    x = waits.x(run.duration_ms)
    is_late = x > waits.left + 0.8 * waits.width
    style, at = ("note end", x - 6) if is_late else ("note", x + 6)
    return [
        _line("moment", (x, waits.top), (x, load.bottom)),
        _text(style, at, waits.top + 12, "no more arrivals"),
    ]


def _load(frame: Frame, band: LoadBand) -> list[str]:
    times = [(place + 0.5) * band.bin_ms for place in range(len(band.work))]
    carried = [
        min(work, slots) for work, slots in zip(band.work, band.slots, strict=True)
    ]
    parts = [
        *_axes(frame, ""),
        _text("axis", frame.left, frame.top - 8, "work arriving, and slots to do it"),
        f'<path class="beyond" d="{_area(frame, times, band.work)}"/>',
        f'<path class="carried" d="{_area(frame, times, carried)}"/>',
    ]
    half_ms = band.bin_ms / 2
    steps = [
        (frame.x(at + side), frame.y(slots))
        for at, slots in zip(times, band.slots, strict=True)
        for side in (-half_ms, half_ms)
    ]
    parts.append(f'<path class="slots" d="{_path(steps)}"/>')
    slots_y = frame.y(band.slots[-1] if band.slots else 0) + 4
    parts.append(_text("note", frame.right + 24, slots_y, band.caption))
    if band.peak:
        parts.append(_text("note end", frame.right, frame.top - 8, band.peak))
    return parts


def _area(frame: Frame, times: list[float], values: list[float]) -> str:
    tops = [
        (frame.x(at), frame.y(value)) for at, value in zip(times, values, strict=True)
    ]
    if not tops:
        return ""
    floor = [(tops[-1][0], frame.bottom), (frame.left, frame.bottom)]
    return _path([(frame.left, tops[0][1]), *tops, *floor]) + "Z"


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _line(style: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    return (
        f'<line class="{style}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" '
        f'x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'
    )


def _text(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{safe(text)}</text>'


def safe(text: str) -> str:
    """Text for markup, whatever a scenario's author called things."""
    # Control characters are not allowed in markup, even escaped.
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))
