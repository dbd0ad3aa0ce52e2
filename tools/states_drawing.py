"""Draws the life of a job, as SVG, from the one table of transitions."""

import math
from pathlib import Path
from typing import NamedTuple

from headway.core.states import LIVE, TRANSITIONS, JobState

DRAWING = Path("docs/images/states.svg")
STYLE = """<style>
:root { --paper: #f6f8f6; --line: #5b6b62; --text: #1c2620; --soft: #55635b; --box: #fff;
  --go: #15803d; --warm: #b45309; --stop: #b42318; --cool: #1d5fae }
@media (prefers-color-scheme: dark) { :root { --paper: #1d2521; --line: #93a39a;
  --text: #e5ece8; --soft: #aab8b0; --box: #2a342f; --go: #4ade80; --warm: #fbbf24;
  --stop: #f98b82; --cool: #7cb7ff } }
svg { background: var(--paper) }
text { fill: var(--text); font: 14px system-ui, sans-serif }
.box { fill: var(--box); stroke: var(--line); stroke-width: 1.5 }
.line { fill: none; stroke: var(--line); stroke-width: 1.5 }
.thin { fill: none; stroke: var(--line); stroke-dasharray: 4 4 }
.tip { fill: var(--line) }
.soft { fill: var(--soft); font-size: 12.5px }
.strong { font-weight: 600 }
.mid { text-anchor: middle }
.end { text-anchor: end }
.go { fill: var(--go) }
.warm { fill: var(--warm) }
.stop { fill: var(--stop) }
.cool { fill: var(--cool) }
.faint { opacity: 0.28 }
.go-line { fill: none; stroke: var(--go); stroke-width: 2.5 }
.stop-line { fill: none; stroke: var(--stop); stroke-width: 2 }
.warm-line { fill: none; stroke: var(--warm); stroke-width: 2 }
</style>"""
"""Of every drawing; the site has the same classes in its own colours."""


class Point(NamedTuple):
    x: float
    y: float


class Box(NamedTuple):
    middle: Point
    width: float
    height: float

    def border(self, towards: Point) -> Point:
        """Where a line from the middle leaves the box."""
        dx, dy = towards.x - self.middle.x, towards.y - self.middle.y
        far = [self.width / 2 / abs(dx)] if dx else []
        far += [self.height / 2 / abs(dy)] if dy else []
        share = min(far)
        return Point(self.middle.x + dx * share, self.middle.y + dy * share)


_S = JobState
BOXES: dict[JobState | None, Box] = {
    None: Box(Point(48, 150), 16, 16),
    _S.READY: Box(Point(250, 90), 116, 40),
    _S.LEASED: Box(Point(500, 90), 116, 40),
    _S.SCHEDULED: Box(Point(250, 210), 116, 40),
    _S.WAITING: Box(Point(500, 210), 116, 40),
    _S.DONE: Box(Point(740, 150), 116, 40),
    _S.DEAD: Box(Point(250, 350), 116, 40),
    _S.CANCELLED: Box(Point(500, 350), 116, 40),
}
FRAME = Box(Point(375, 150), 430, 200)
"""Around the live states."""
COLOURS = {_S.DONE: "go", _S.DEAD: "stop"}
Arrow = tuple[JobState | None, JobState]


def drawing() -> str:
    arrows, shared = grouped()
    parts = [frame(), *map(boxed, BOXES)]
    parts.append(around(", ".join(arrows.pop((_S.DEAD, _S.READY)))))
    for (source, target), verbs in arrows.items():
        is_pair = source is not None and (target, source) in arrows
        label = ", ".join(verbs)
        parts.append(arrow(BOXES[source], BOXES[target], label, is_pair))
    for target, verbs in shared.items():
        x = BOXES[target].middle.x
        below = Point(x + 30, FRAME.middle.y + FRAME.height / 2)
        parts.append(line(below, Point(x + 30, BOXES[target].middle.y - 20)))
        parts.append(text(Point(x + 40, 295), ", ".join(verbs), "soft"))
    described = "The states of a job and the verbs that move it"
    opened = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 400" role="img" '
        f'aria-label="{described}">'
    )
    return "\n".join([opened, STYLE, *parts, "</svg>"]) + "\n"


def grouped() -> tuple[dict[Arrow, list[str]], dict[JobState, list[str]]]:
    """Verbs by arrow; those that every live state knows go out of the frame."""
    sources: dict[tuple[str, JobState], set[JobState | None]] = {}
    for verb, source, target in TRANSITIONS:
        sources.setdefault((verb, target), set()).add(source)
    arrows: dict[Arrow, list[str]] = {}
    shared: dict[JobState, list[str]] = {}
    for verb, source, target in TRANSITIONS:
        if sources[verb, target] < set(LIVE) or source not in LIVE:
            arrows.setdefault((source, target), []).append(verb)
        elif verb not in shared.setdefault(target, []):
            shared[target].append(verb)
    return arrows, shared


def frame() -> str:
    left, top = FRAME.middle.x - FRAME.width / 2, FRAME.middle.y - FRAME.height / 2
    shape = (
        f'<rect class="thin" x="{left:g}" y="{top:g}" width="{FRAME.width:g}" '
        f'height="{FRAME.height:g}" rx="14"/>'
    )
    return shape + text(Point(left + 12, top + 18), "live", "soft")


def boxed(state: JobState | None) -> str:
    box = BOXES[state]
    if state is None:
        return (
            f'<circle class="tip" cx="{box.middle.x:g}" cy="{box.middle.y:g}" r="7"/>'
        )
    left, top = box.middle.x - box.width / 2, box.middle.y - box.height / 2
    shape = (
        f'<rect class="box" x="{left:g}" y="{top:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="9"/>'
    )
    named = text(
        Point(box.middle.x, box.middle.y + 5),
        state,
        f"mid strong {COLOURS.get(state, '')}",
    )
    return shape + named


def around(label: str) -> str:
    """From the dead letters back to ready, past the left side of the frame."""
    dead, ready = BOXES[_S.DEAD], BOXES[_S.READY]
    out, back = dead.middle.x - dead.width / 2, ready.middle.x - ready.width / 2
    x, y = 140, ready.middle.y - 10
    bend = f'<path class="line" d="M{out:g} {dead.middle.y:g}H{x}V{y:g}H{back - 8:g}"/>'
    tip = line(Point(back - 10, y), Point(back, y))
    return bend + tip + text(Point(x - 8, 300), label, "soft end")


def arrow(source: Box, target: Box, label: str, is_pair: bool) -> str:
    """From border to border; beside the middle where another one comes back."""
    start, end = source.border(target.middle), target.border(source.middle)
    length = math.dist(start, end)
    across = Point((end.y - start.y) / length, -(end.x - start.x) / length)
    aside = 9 if is_pair else 0
    start, end = (
        Point(p.x + across.x * aside, p.y + across.y * aside) for p in (start, end)
    )
    is_slanted = abs(end.x - start.x) > 30 and abs(end.y - start.y) > 30
    along = 0.3 if is_slanted else 0.5
    along = 0.65 if target is BOXES[_S.DONE] else along
    middle = Point(
        start.x + (end.x - start.x) * along + across.x * 10,
        start.y + (end.y - start.y) * along + across.y * 10,
    )
    side = "mid" if abs(across.x) < 0.5 else "" if across.x > 0 else "end"
    down = 4 if side != "mid" else 10 if across.y > 0 else 0
    return line(start, end) + text(
        Point(middle.x, middle.y + down), label, f"soft {side}"
    )


def line(start: Point, end: Point) -> str:
    length = math.dist(start, end)
    dx, dy = (end.x - start.x) / length, (end.y - start.y) / length
    tip = [
        end,
        Point(end.x - dx * 9 - dy * 4.5, end.y - dy * 9 + dx * 4.5),
        Point(end.x - dx * 9 + dy * 4.5, end.y - dy * 9 - dx * 4.5),
    ]
    corners = " ".join(f"{p.x:.1f},{p.y:.1f}" for p in tip)
    shaft = Point(end.x - dx * 8, end.y - dy * 8)
    return (
        f'<path class="line" d="M{start.x:.1f} {start.y:.1f}L{shaft.x:.1f} {shaft.y:.1f}"/>'
        f'<polygon class="tip" points="{corners}"/>'
    )


def text(at: Point, words: str, style: str) -> str:
    named = style.strip()
    return f'<text class="{named}" x="{at.x:.1f}" y="{at.y:.1f}">{words}</text>'
