"""Draws the full cycles of Headway and of its peers as horizontal bars, in SVG.

The scale is linear and begins at zero: the length of a bar is what was measured.
"""

from collections.abc import Sequence
from math import ceil, isnan, log10
from typing import Final, NamedTuple

from benchmarks.figure import Figure, shown
from headway.sim.chart_style import palette
from headway.sim.chart_svg import safe

HEADWAY: Final = "HTTP, full cycles"
PGQUEUER: Final = "PGQueuer on PostgreSQL"
CELERY: Final = "Celery on Redis"
CELERY_EVERYSEC: Final = "Celery on Redis, flushed each second"


class Row(NamedTuple):
    """A bar: whose it is, how it was set up, and how it is coloured."""

    figure: str
    name: str
    setup: str
    style: str


ROWS: Final = (
    Row(HEADWAY, "Headway", "over HTTP, flushed at every commit", "own"),
    Row(PGQUEUER, "PGQueuer", "PostgreSQL, fsync on", "peer"),
    Row(CELERY, "Celery", "Redis, flushed at every write", "peer"),
    Row(
        CELERY_EVERYSEC,
        "Celery, not durable",
        "Redis, flushed once a second",
        "loose",
    ),
)

WIDTH: Final = 860
LEFT: Final = 262
RIGHT: Final = 150
TOP: Final = 96
PITCH: Final = 58
BAR: Final = 26

STYLE: Final = """
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
 font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}
.paper{fill:var(--paper)}
text.title{font-size:19px;font-weight:650;fill:var(--ink)}
text.lead{font-size:13px}
text.name{font-size:14px;font-weight:650;fill:var(--ink)}
text.value{font-size:14px;font-weight:650;fill:var(--ink);paint-order:stroke;
 stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.more{font-size:12px;font-weight:400;fill:var(--soft)}
.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:var(--grid)}.base{stroke:var(--base)}
.own{fill:var(--lane0)}.peer{fill:var(--lane7)}
.loose{fill:var(--lane7);fill-opacity:.28;stroke:var(--lane7);stroke-dasharray:4 3}
.floor{stroke:var(--lane1);stroke-width:1.4;stroke-dasharray:5 4}
text.floor{stroke:none;fill:var(--lane1)}
"""


def is_drawable(figures: Sequence[Figure]) -> bool:
    return any(figure.name == HEADWAY for figure in figures)


def draw(figures: Sequence[Figure], origin: dict[str, str]) -> str:
    found = {figure.name: figure for figure in figures}
    rows = [row for row in ROWS if row.figure in found]
    values = {row.figure: found[row.figure].value for row in rows}
    floor = found[HEADWAY].floor or 0.0
    step, end = scale(max([floor, *(x for x in values.values() if not isnan(x))]))
    bottom = TOP + PITCH * len(rows)
    parts = [
        f'<rect class="paper" width="{WIDTH}" height="{bottom + 62}"/>',
        _text("title", 24, 36, "Durable jobs, from enqueue to done"),
        _text(
            "lead",
            24,
            58,
            "jobs a second on one machine, 200-byte payloads, each in its best set-up",
        ),
        *_grid(step, end, bottom),
    ]
    for number, row in enumerate(rows):
        parts += _bar(row, values, TOP + PITCH * number, end)
    parts += [
        *_floor(floor, end, bottom),
        _text("", 24, bottom + 46, f"{origin['machine']} · {origin['date']}"),
    ]
    label = "Jobs a second of Headway and its peers"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 62}" '
        f'width="{WIDTH}" role="img" aria-label="{label}">\n'
        f"<style>{palette(None)}{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def scale(most: float) -> tuple[float, float]:
    """A round step, and the end of an axis of some such steps that holds `most`."""
    power = 10 ** int(log10(max(most, 10)) - 0.3)
    step = next(power * n for n in (1, 2, 5, 10, 20) if most / (power * n) <= 6)
    return step, step * max(1, ceil(most / step))


def _grid(step: float, end: float, bottom: float) -> list[str]:
    parts = []
    for number in range(round(end / step) + 1):
        x = _x(number * step, end)
        parts.append(_line("grid" if number else "base", x, TOP - 14, bottom))
        parts.append(_text("middle", x, bottom + 18, f"{number * step:,.0f}"))
    return parts


def _bar(row: Row, values: dict[str, float], y: float, end: float) -> list[str]:
    value, own = values[row.figure], values[HEADWAY]
    middle = y + BAR / 2
    parts = [
        _text("name end", LEFT - 14, middle - 2, row.name),
        _text("end", LEFT - 14, middle + 15, row.setup),
    ]
    if isnan(value):
        return [*parts, _text("", LEFT + 10, middle + 5, "not measured here")]
    x = _x(value, end)
    inset = 0.5 if row.style == "loose" else 0
    parts.append(
        f'<rect class="{row.style}" x="{LEFT + inset:.1f}" y="{y + inset:.1f}" '
        f'width="{max(1.0, x - LEFT - 2 * inset):.1f}" height="{BAR - 2 * inset:.1f}" '
        'rx="2"/>'
    )
    more = ""
    if row.figure != HEADWAY and not isnan(own):
        more = f"Headway does {shown(own / value)} times as many"
    parts.append(
        f'<text class="value" x="{x + 10:.1f}" y="{middle + 5:.1f}">{value:,.0f}'
        f'<tspan class="more" dx="12">{more}</tspan></text>'
    )
    return parts


def _floor(floor: float, end: float, bottom: float) -> list[str]:
    if not floor:
        return []
    x = _x(floor, end)
    return [
        _line("floor", x, TOP - 14, TOP + BAR + 8),
        _text("floor middle", x, TOP - 20, f"floor {floor:,.0f}"),
    ]


def _x(value: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / end


def _line(style: str, x: float, top: float, bottom: float) -> str:
    return (
        f'<line class="{style}" x1="{x:.1f}" y1="{top:.1f}" '
        f'x2="{x:.1f}" y2="{bottom:.1f}"/>'
    )


def _text(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{safe(text)}</text>'
