"""Draws what the model of scale says as lines over the number of nodes, in SVG.

Both scales are linear and begin at zero.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.http_chart import scale
from headway.sim.chart_style import palette
from headway.sim.chart_svg import safe

WIDTH: Final = 860
HEIGHT: Final = 420
LEFT: Final = 90
RIGHT: Final = 210
TOP: Final = 84
BOTTOM: Final = 356
STYLE: Final = """
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
 font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}
.paper{fill:var(--paper)}
text.title{font-size:19px;font-weight:650;fill:var(--ink)}
text.lead{font-size:13px}
text.name{font-size:13px;font-weight:650;fill:var(--ink)}
.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:var(--grid)}.base{stroke:var(--base)}
polyline{fill:none;stroke-width:2.2;stroke-linejoin:round}
.line0{stroke:var(--lane0)}.line1{stroke:var(--lane1)}.line2{stroke:var(--lane2)}
"""


class Line(NamedTuple):
    """A name, and a value for each number of nodes."""

    name: str
    values: Sequence[float]


def draw(counts: Sequence[int], lines: Sequence[Line]) -> str:
    step, end = scale(max(max(line.values) for line in lines))
    parts = [
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        _text("title", 24, 36, "Jobs a second that a cluster would do, by the model"),
        _text(
            "lead", 24, 58, "batches of 100, a database for two nodes, nodes 70 % busy"
        ),
    ]
    for number in range(round(end / step) + 1):
        y = _y(number * step, end)
        style = "grid" if number else "base"
        parts.append(
            f'<line class="{style}" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text("end", LEFT - 10, y + 4, f"{number * step:,.0f}"))
    parts += [
        _text("middle", _x(count, counts), BOTTOM + 20, str(count))
        for count in (1, *range(20, max(counts) + 1, 20))
    ]
    parts.append(_text("middle", (LEFT + WIDTH - RIGHT) / 2, BOTTOM + 42, "nodes"))
    for number, line in enumerate(lines):
        points = " ".join(
            f"{_x(count, counts):.1f},{_y(value, end):.1f}"
            for count, value in zip(counts, line.values, strict=True)
        )
        parts.append(f'<polyline class="line{number}" points="{points}"/>')
        y = _y(line.values[-1], end) + 4
        parts.append(_text("name", WIDTH - RIGHT + 10, y, line.name))
    label = "Jobs a second over the number of nodes"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" role="img" aria-label="{label}">\n'
        f"<style>{palette(None)}{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _x(count: float, counts: Sequence[int]) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * count / max(counts)


def _y(value: float, end: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / end


def _text(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{safe(text)}</text>'
