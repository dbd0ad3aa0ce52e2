"""The chart as a page of its own: one file, nothing loaded from anywhere."""

import hashlib
from base64 import b64encode
from typing import Final

import msgspec

from headway.core.durations import readable_ms
from headway.sim.chart import Panel, Picture, percent, subtitle
from headway.sim.chart_scale import span_label
from headway.sim.chart_style import SCRIPT, STYLE, palette
from headway.sim.chart_svg import COLORS, safe, small, tone, wide
from headway.sim.result import LaneResult

KEPT: Final = 0.99
"""From here on a promise counts as kept."""
_READING = (
    "Lines show the wait of the slowest hundredth of the jobs that started at a moment; "
    "the shade reaches from their mean to their longest wait, and a dotted line says that "
    "nothing started. Dashed lines are promises."
)


def page(picture: Picture, theme: str | None = None) -> str:
    """A whole HTML document; `theme` is light, dark or None for the reader's choice."""
    body = _comparison(picture) if picture.is_comparison else _single(picture)
    title = picture.first.title or picture.first.scenario
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}"/>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"/>'
        f"<title>{safe(title)}</title>"
        f"<style>{palette(theme)}{STYLE}</style></head><body><main>"
        f"<h1>{safe(title)}</h1>{body}</main></body></html>\n"
    )


def _policy() -> str:
    """Only our own script may run, whatever else gets into the page."""
    digest = b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )


def _single(picture: Picture) -> str:
    run, panel = picture.first, picture.panels[0]
    return (
        f'<p class="lead"><b>{percent(run.attained)}</b> of all promises kept: '
        f"{safe(subtitle(run))}</p>"
        f'<figure>{wide(picture)}</figure><p class="key">{_READING}</p>'
        f"{_lanes_table(panel)}{_footer(panel)}"
        f'<script type="application/json" id="series">{_data(panel)}</script>'
        f"<script>{SCRIPT}</script>"
    )


def _lanes_table(panel: Panel) -> str:
    tones = {curve.name: tone(curve) for curve in panel.curves}
    rows = "".join(
        f'<tr><td class="{tones[name]}">{safe(name)}</td>'
        f"<td>{span_label(lane.slo_ms)}</td><td>{lane.jobs:,}</td>"
        f"<td>{_kept(lane.attained)}</td>{_waits(lane)}</tr>"
        for name, lane in panel.result.lanes.items()
    )
    heads = ("lane", "promised", "jobs", "kept", "median wait", "99th percentile")
    head = "".join(f"<th>{text}</th>" for text in (*heads, "longest"))
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _kept(attained: float) -> str:
    style = "kept good" if attained >= KEPT else "kept"
    return (
        f'<div class="{style}"><span><i style="width:{attained * 100:.1f}%"></i></span>'
        f"<b>{percent(attained)}</b></div>"
    )


def _waits(lane: LaneResult) -> str:
    wait = lane.wait_ms
    return "".join(
        f"<td>{readable_ms(value)}</td>" for value in (wait.p50, wait.p99, wait.max)
    )


def _footer(panel: Panel) -> str:
    run = panel.result
    return (
        f"<footer>{safe(run.scenario)}, policy {safe(run.policy)}, seed {run.seed}, "
        f"digest {safe(run.digest)}</footer>"
    )


def _data(panel: Panel) -> str:
    """What the read-out under the pointer shows. Must not close its script element."""
    run = panel.result
    lanes = [
        {"name": curve.name, "tone": tone(curve), "p99": series.p99_ms}
        for curve in panel.curves
        for series in (run.lanes[curve.name].series,)
    ]
    data = {
        "width": 1080,
        "left": 62,
        "span": 838,
        "end": run.ended_ms,
        "bin": run.bin_ms,
        "lanes": lanes,
        "arrivals": run.load.arrivals,
        "slots": run.load.slots,
    }
    return msgspec.json.encode(data).decode().replace("<", "\\u003c")


def _comparison(picture: Picture) -> str:
    cards = "".join(
        f"<section><h2>{safe(panel.result.policy)}"
        f"<small>{percent(panel.result.attained)} of all kept</small></h2>"
        f"{small(picture, panel)}</section>"
        for panel in picture.panels
    )
    run = picture.first
    lead = f"{run.simulated_jobs:,} jobs under {len(picture.panels)} policies"
    return (
        f'<p class="lead">{lead}, seed {run.seed}</p>{_keys(picture)}'
        f'<div class="panels">{cards}</div><p class="key">{_READING}</p>'
        f"{_policies_table(picture)}"
    )


def _keys(picture: Picture) -> str:
    items = "".join(
        f'<li class="{tone(curve)}"><b>{safe(curve.name)}</b> '
        f"<span>within {span_label(curve.slo_ms)}</span></li>"
        for curve in picture.panels[0].curves
    )
    return f'<ul class="keys">{items}</ul>'


def _policies_table(picture: Picture) -> str:
    lanes = list(picture.first.lanes)
    head = "".join(
        f'<th class="lane{picture.panels[0].curves[n].color % COLORS}">{safe(lane)}</th>'
        for n, lane in enumerate(lanes)
    )
    rows = "".join(
        f"<tr><td>{safe(panel.result.policy)}</td>"
        + "".join(_policy_cell(panel.result.lanes.get(lane)) for lane in lanes)
        + f"<td>{percent(panel.result.attained)}</td></tr>"
        for panel in picture.panels
    )
    return (
        '<div class="scroll"><table><thead><tr><th>kept, 99th percentile of waits</th>'
        f"{head}<th>all</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _policy_cell(lane: LaneResult | None) -> str:
    if lane is None:
        return "<td></td>"
    style = ' class="good"' if lane.attained >= KEPT else ""
    wait = readable_ms(lane.wait_ms.p99)
    return f"<td{style}>{percent(lane.attained)} <small>{wait}</small></td>"
