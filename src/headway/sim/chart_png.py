"""Draws the chart as an image, with matplotlib (the extra `chart`)."""

import warnings
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from headway.sim.chart import (
    Curve,
    LoadBand,
    Panel,
    Picture,
    Point,
    percent,
    subtitle,
)
from headway.sim.chart_scale import Axis, span_label
from headway.sim.chart_style import INKS, LANES
from headway.sim.chart_svg import shortened, spaced

_SCALE: Final = 2
"""Pixels to a point of the page, so that the image is sharp on every screen."""
_COLUMNS: Final = 2


def write_png(path: Path, picture: Picture, theme: str) -> None:
    """Light or dark."""
    # A name like "$x_1$" is text: nothing in it is a formula.
    rules = mpl.rc_context({"text.parse_math": False, "font.size": 9.5})
    with rules, warnings.catch_warnings():
        # The font may lack the letters of a name: a box is drawn, that is enough.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        pen = _Pen(picture, theme)
        figure = pen.grid() if picture.is_comparison else pen.wide()
        figure.savefig(path, dpi=100 * _SCALE, facecolor=pen.inks["paper"])


class _Pen:
    """Knows the colours."""

    def __init__(self, picture: Picture, theme: str) -> None:
        self.picture = picture
        self.inks = INKS[theme]
        self.lanes = LANES[theme]

    def wide(self) -> Figure:
        """One run, with its load beneath."""
        figure = Figure(figsize=(10.8, 6.6))
        run, panel = self.picture.first, self.picture.panels[0]
        self._headline(figure, run.title or run.scenario, top=0.95)
        kept = f"{percent(run.attained)} of all promises kept: {subtitle(run)}"
        figure.text(0.045, 0.91, _clean(kept), color=self.inks["soft"], fontsize=10)
        waits = figure.add_axes((0.065, 0.29, 0.748, 0.535))
        load = figure.add_axes((0.065, 0.07, 0.748, 0.14))
        self._waits(waits, panel)
        self._captions(waits, panel.curves)
        self._load(load, panel.load)
        self._arrivals_end(waits, load, panel)
        self._title(waits, "wait before the start", 1.015)
        self._title(load, "work arriving, and slots to do it", 1.06)
        waits.tick_params(axis="x", labelbottom=False)
        return figure

    def grid(self) -> Figure:
        """Small multiples, one for each run."""
        panels = self.picture.panels
        rows = ceil(len(panels) / _COLUMNS)
        height = 1.15 + 2.75 * rows
        figure = Figure(figsize=(10.8, height))
        run = self.picture.first
        self._headline(figure, run.title or run.scenario, top=1 - 0.42 / height)
        self._keys(figure, top=1 - 0.78 / height)
        for place, panel in enumerate(panels):
            row, column = divmod(place, _COLUMNS)
            bottom = 1 - (0.95 + 2.75 * (row + 1) - 0.45) / height
            box = (0.065 + column * 0.485, bottom, 0.425, 1.95 / height)
            axes = figure.add_axes(box)
            self._waits(axes, panel)
            self._panel_head(axes, panel)
        return figure

    def _headline(self, figure: Figure, text: str, top: float) -> None:
        ink = self.inks["ink"]
        figure.text(0.045, top, _clean(text), color=ink, fontsize=16, weight="bold")

    def _keys(self, figure: Figure, top: float) -> None:
        FigureCanvasAgg(figure)
        at = 0.045
        for curve in self.picture.panels[0].curves:
            words = f"{shortened(curve.name)} within {span_label(curve.slo_ms)}"
            color = self._color(curve)
            text = figure.text(at, top, _clean(words), color=color, weight="bold")
            at += text.get_window_extent().width / figure.bbox.width + 0.02

    def _panel_head(self, axes: Axes, panel: Panel) -> None:
        kept = f"{percent(panel.result.attained)} of all kept"
        ink, soft = self.inks["ink"], self.inks["soft"]
        where: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom"}
        policy = _clean(panel.result.policy)
        axes.text(0, 1.04, policy, color=ink, weight="bold", fontsize=11, **where)
        axes.text(1, 1.04, kept, color=soft, ha="right", **where)

    def _color(self, curve: Curve) -> str:
        return self.lanes[curve.color % len(self.lanes)]

    def _waits(self, axes: Axes, panel: Panel) -> None:
        scale = self.picture.wait
        self._frame(axes, scale)
        for curve in sorted(panel.curves, key=lambda curve: -curve.slo_ms):
            color, slo = self._color(curve), scale.place(curve.slo_ms)
            axes.axhline(slo, color=color, lw=1, ls=(0, (5, 3)), alpha=0.85)
            for before, after in pairwise(curve.strokes):
                times, waits = _line([before[-1], after[0]], scale)
                axes.plot(times, waits, color=color, lw=1, ls=(0, (1, 3)), alpha=0.75)
            for stroke in curve.strokes:
                self._stroke(axes, stroke, color)

    def _stroke(self, axes: Axes, stroke: list[Point], color: str) -> None:
        scale = self.picture.wait
        times, waits = _line(stroke, scale)
        ink: dict[str, Any] = {"color": color, "clip_on": False, "zorder": 3}
        if len(stroke) == 1:
            axes.plot(times, waits, "o", ms=3.2, mew=0, **ink)
            return
        low = [scale.place(point.mean_ms) for point in stroke]
        high = [scale.place(point.max_ms) for point in stroke]
        axes.fill_between(times, low, high, color=color, alpha=0.17, lw=0)
        axes.plot(times, waits, lw=1.7, **ink)

    def _captions(self, axes: Axes, curves: list[Curve]) -> None:
        ranked = sorted(curves, key=lambda curve: curve.slo_ms)
        gap = min(0.092, 1 / max(1, len(ranked)))
        wanted = [self.picture.wait.place(curve.slo_ms) for curve in ranked]
        places = spaced(wanted, gap, 0.05, 0.98)
        for curve, at, place in zip(ranked, wanted, places, strict=True):
            color = self._color(curve)
            across: dict[str, Any] = {"transform": axes.transAxes, "clip_on": False}
            axes.plot((1, 1.02), (at, place), color=color, lw=0.8, alpha=0.6, **across)
            name = _clean(shortened(curve.name))
            at_name: dict[str, Any] = {
                "color": color,
                "weight": "bold",
                "fontsize": 10.5,
            }
            axes.text(1.026, place, name, va="center", **at_name, **across)
            if gap > 0.07:
                soft: dict[str, Any] = {"color": self.inks["soft"], "fontsize": 8.5}
                lower = place - 0.042
                axes.text(1.026, lower, curve.caption, va="center", **soft, **across)

    def _load(self, axes: Axes, band: LoadBand) -> None:
        self._frame(axes, band.axis)
        times = [(place + 0.5) * band.bin_ms for place in range(len(band.work))]
        work = [band.axis.place(value) for value in band.work]
        slots = [band.axis.place(value) for value in band.slots]
        carried = [min(pair) for pair in zip(work, slots, strict=True)]
        axes.fill_between(times, work, color=self.inks["beyond"], lw=0)
        axes.fill_between(times, carried, color=self.inks["carried"], lw=0)
        axes.step(times, slots, where="mid", color=self.inks["soft"], lw=1.2)
        note: dict[str, Any] = {"color": self.inks["soft"], "fontsize": 9}
        note["transform"] = axes.transAxes
        axes.text(1.026, slots[-1] if slots else 0, band.caption, va="center", **note)
        if band.peak:
            axes.text(1, 1.06, band.peak, ha="right", va="bottom", **note)

    def _arrivals_end(self, waits: Axes, load: Axes, panel: Panel) -> None:
        run = panel.result
        if run.ended_ms < run.duration_ms * 1.02:
            return
        for axes in (waits, load):
            axes.axvline(run.duration_ms, color=self.inks["base"], lw=0.9, ls=":")
        note: dict[str, Any] = {"color": self.inks["soft"], "fontsize": 9, "va": "top"}
        is_late = self.picture.time.place(run.duration_ms) > 0.8
        note["ha"] = "right" if is_late else "left"
        note["bbox"] = {"facecolor": self.inks["paper"], "lw": 0, "pad": 1.5}
        aside_ms = 0.007 * self.picture.time.top * (-1 if is_late else 1)
        waits.text(run.duration_ms + aside_ms, 0.975, "no more arrivals", **note)

    def _title(self, axes: Axes, text: str, above: float) -> None:
        where: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom"}
        axes.text(0, above, text, color=self.inks["soft"], fontsize=9, **where)

    def _frame(self, axes: Axes, upward: Axis) -> None:
        across = self.picture.time
        axes.set_facecolor("none")
        axes.set_xlim(0, across.top)
        axes.set_ylim(0, 1)
        axes.set_xticks(
            [at for at, _ in across.ticks], [text for _, text in across.ticks]
        )
        ticks = [upward.place(at) for at, _ in upward.ticks]
        axes.set_yticks(ticks, [text for _, text in upward.ticks])
        axes.grid(axis="y", color=self.inks["grid"], lw=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(colors=self.inks["soft"], length=0, labelsize=9)
        axes.tick_params(axis="x", length=3, color=self.inks["base"])
        for side, spine in axes.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(self.inks["base"])


def _line(points: list[Point], scale: Axis) -> tuple[list[float], list[float]]:
    waits = [scale.place(point.p99_ms) for point in points]
    return [point.at_ms for point in points], waits


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
