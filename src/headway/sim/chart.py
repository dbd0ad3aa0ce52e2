"""The chart of wait times: what is drawn, whether as a page or as an image."""

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from headway.core.durations import readable_ms
from headway.sim.chart_scale import Axis, count_axis, span_label, time_axis, wait_axis
from headway.sim.result import LaneResult, LoadSeries, Result

SUFFIXES: Final = (".html", ".png")
_GAP_SHARE: Final = 0.02
"""A line goes on over a pause in the starts that is no longer than this."""
_SMOOTH_SHARE: Final = 0.01


class ChartError(Exception):
    """A chart that cannot be made, said in one line."""


class Point(NamedTuple):
    """The starts of one bin."""

    at_ms: float
    mean_ms: int
    p99_ms: int
    max_ms: int


class Curve(msgspec.Struct, frozen=True):
    """One lane of one run. A pause in its starts begins a new stroke."""

    name: str
    color: int
    slo_ms: int
    attained: float
    strokes: list[list[Point]]

    @property
    def caption(self) -> str:
        return f"{span_label(self.slo_ms)} promised, {percent(self.attained)} kept"


class LoadBand(msgspec.Struct, frozen=True):
    """Work that arrives against slots that are there, one entry for each bin."""

    bin_ms: int
    work: list[float]
    slots: list[float]
    axis: Axis
    peak: str
    """A word on the highest point, where it lies above the axis."""

    @property
    def caption(self) -> str:
        low, high = round(min(self.slots, default=0)), round(max(self.slots, default=0))
        return f"{high:,} slots" if low == high else f"{low:,} to {high:,} slots"


class Panel(msgspec.Struct, frozen=True):
    """One run."""

    result: Result
    curves: list[Curve]
    load: LoadBand


class Picture(msgspec.Struct, frozen=True):
    """All runs, on the same axes."""

    panels: list[Panel]
    time: Axis
    wait: Axis

    @property
    def first(self) -> Result:
        return self.panels[0].result

    @property
    def is_comparison(self) -> bool:
        return len(self.panels) > 1


def write_chart(path: Path, results: list[Result], theme: str | None = None) -> None:
    """Writes a page or an image, as the name's ending says; `theme` may be forced."""
    picture = picture_of(results)
    if check_chart(path) == ".html":
        from headway.sim.chart_page import page

        path.write_text(page(picture, theme), encoding="utf-8")
    else:
        from headway.sim.chart_png import write_png

        write_png(path, picture, theme or "light")


def check_chart(path: Path) -> str:
    """The ending of a chart's name, or ChartError: worth asking before a long run."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ChartError(f"{path}: a chart's name must end in .html or .png")
    if suffix == ".png":
        try:
            import matplotlib as _  # noqa: F401
        except ImportError as error:
            hint = "pip install 'headway[chart]'"
            raise ChartError(f"{path}: a PNG needs matplotlib: {hint}") from error
    return suffix


def picture_of(results: list[Result]) -> Picture:
    """The runs, with axes that fit all of them and a colour for each lane."""
    lanes = {name: lane.slo_ms for run in results for name, lane in run.lanes.items()}
    ranked = sorted(lanes, key=lambda name: (lanes[name], name))
    colors = {name: color for color, name in enumerate(ranked)}
    longest_ms = max(
        (lane.wait_ms.max for run in results for lane in run.lanes.values()), default=0
    )
    return Picture(
        panels=[
            Panel(
                run,
                [
                    _curve(name, colors[name], lane, run)
                    for name, lane in run.lanes.items()
                ],
                _load_band(run.load, run),
            )
            for run in results
        ],
        time=time_axis(max(run.ended_ms for run in results)),
        wait=wait_axis(lanes.values(), longest_ms),
    )


def percent(share: float) -> str:
    """Cut, not rounded: what is not all must not look like all."""
    return f"{int(share * 1_000 + 1e-9) / 10:g} %"


def subtitle(result: Result) -> str:
    """One line about a run."""
    return (
        f"{result.simulated_jobs:,} jobs in {readable_ms(result.ended_ms)}, "
        f"policy {result.policy}, seed {result.seed}"
    )


def _curve(name: str, color: int, lane: LaneResult, run: Result) -> Curve:
    return Curve(name, color, lane.slo_ms, lane.attained, _strokes(lane, run))


def _strokes(lane: LaneResult, run: Result) -> list[list[Point]]:
    gap_ms = max(_GAP_SHARE * run.ended_ms, 2.5 * run.bin_ms)
    strokes: list[list[Point]] = []
    columns = zip(
        lane.series.mean_ms, lane.series.p99_ms, lane.series.max_ms, strict=True
    )
    for place, (mean_ms, p99_ms, max_ms) in enumerate(columns):
        if mean_ms is None or p99_ms is None or max_ms is None:
            continue
        at_ms = min((place + 0.5) * run.bin_ms, run.ended_ms)
        if not strokes or at_ms - strokes[-1][-1].at_ms > gap_ms:
            strokes.append([])
        strokes[-1].append(Point(at_ms, mean_ms, p99_ms, max_ms))
    return strokes


def _load_band(load: LoadSeries, run: Result) -> LoadBand:
    reach = round(_SMOOTH_SHARE * run.duration_ms / run.bin_ms)
    work = _smoothed(load.work_slots, reach)
    most_slots = max(load.slots, default=0.0)
    peak = max(work, default=0.0)
    # A burst of hours of work would press the rest of the band flat.
    top = min(max(peak, most_slots), 3.0 * most_slots) if most_slots else peak
    note = ""
    if peak > top:
        most = max(load.arrivals, default=0)
        note = f"up to {most:,} jobs in {readable_ms(run.bin_ms)}"
    axis = count_axis(max(top * 1.15, 1.0))
    return LoadBand(run.bin_ms, work, load.slots, axis, note)


def _smoothed(values: list[float], reach: int) -> list[float]:
    if reach < 1:
        return values
    return [
        sum(near := values[max(0, place - reach) : place + reach + 1]) / len(near)
        for place in range(len(values))
    ]
