"""How the demonstration looks: live in a terminal, in lines elsewhere."""

from collections import Counter
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.cli.demo.figures import RECENT_S, Figures, LaneFigures
from headway.cli.demo.story import Story
from headway.cli.page import several
from headway.cli.report import kept
from headway.core.durations import readable_ms
from headway.sim.chart import percent

WIDE: Final = 118
"""Columns that the lanes need with their history."""
MOSTLY: Final = 0.9
BARS: Final = "▁▂▃▄▅▆▇█"
_COLORS: Final = {"calm": "green", "rush": "bold red", "flood": "bold magenta"}


class Scene(msgspec.Struct):
    """What is seen at one moment."""

    story: Story
    figures: Figures
    url: str
    elapsed_s: float
    now_ms: int
    counts: dict[str, dict[str, int]]
    """By queue, as the server counts them."""
    held: dict[str, str]

    @property
    def over_s(self) -> float:
        """Rates are of so many seconds."""
        return max(1.0, min(RECENT_S, self.elapsed_s))


def live(scene: Scene, width: int) -> RenderableType:
    """The whole page, or as much of it as so many columns hold."""
    return Group(
        _headline(scene),
        Text(),
        _lanes(scene, width),
        Text(),
        _sacrifice(scene),
        Text(),
        _tenants(scene),
        Text(),
        _closing(scene),
    )


def line(scene: Scene) -> str:
    """The same in one line, for a log."""
    phase = scene.story.phase(scene.elapsed_s)[0]
    parts = [f"{scene.elapsed_s:5.0f} s {phase.name:<5}"]
    for lane in scene.figures.lanes.values():
        share = lane.share_kept(scene.now_ms)
        told = "-" if share is None else percent(share)
        _, starts = lane.rates(scene.now_ms / 1_000, scene.elapsed_s)
        parts.append(
            f"{lane.queue} {_ready(scene, lane)} ready, oldest "
            f"{readable_ms(lane.oldest_ms(scene.now_ms))}, {starts:.0f}/s, kept {told}"
        )
    return " | ".join(parts)


def summary(scene: Scene) -> RenderableType:
    """What it came to."""
    table = _table(
        "lane", "promised", "started", "kept", "p50", "p99", "waiting", "late"
    )
    for lane in scene.figures.lanes.values():
        table.add_row(
            Text(lane.queue, "bold"),
            readable_ms(lane.slo_ms),
            f"{lane.started:,}",
            _share(lane.share_kept(scene.now_ms)),
            readable_ms(lane.percentile_ms(0.5)),
            readable_ms(lane.percentile_ms(0.99)),
            f"{len(lane.waiting):,}",
            f"{lane.late(scene.now_ms).total():,}",
        )
    note = "Waits were measured in the workers, from sending a job to its start."
    return Group(
        Text(),
        table,
        Text(),
        _totals(scene),
        Text(),
        Text(note, "dim"),
        _closing(scene),
    )


def _totals(scene: Scene) -> Table:
    table = _table("tenant", "started", "kept", "late")
    figures = scene.figures
    late = sum((one.late(scene.now_ms) for one in figures.lanes.values()), Counter())
    for name in sorted(figures.started.keys() | late.keys()):
        decided = figures.started[name] + late[name]
        table.add_row(
            Text(name, "bold"),
            f"{figures.started[name]:,}",
            _share(figures.kept[name] / decided),
            f"{late[name]:,}",
        )
    return table


def _headline(scene: Scene) -> Text:
    phase, left_s = scene.story.phase(scene.elapsed_s)
    text = Text().append("Headway ", "bold").append(f"at {scene.url}  ", "cyan")
    text.append(f"{int(scene.elapsed_s) // 60}:{int(scene.elapsed_s) % 60:02}  ", "dim")
    text.append(f"{phase.name.upper()}  ", _COLORS[phase.name])
    return text.append(phase.text).append(f" ({left_s:.0f} s)", "dim")


def _lanes(scene: Scene, width: int) -> Table:
    heads = ("lane", "promised", "ready", "oldest", "expected", "in/s", "starts/s")
    table = _table(*heads, "kept 30 s", "kept")
    is_wide = width >= WIDE
    if is_wide:
        table.add_column("oldest wait, of what was promised", no_wrap=True)
    for lane in scene.figures.lanes.values():
        held = scene.held.get(lane.queue, "")
        name = Text(lane.queue, "bold").append(f" {held}" if held else "", "yellow")
        expected_ms = lane.expected_ms
        came, started = lane.rates(scene.now_ms / 1_000, scene.elapsed_s)
        table.add_row(
            name,
            readable_ms(lane.slo_ms),
            _ready(scene, lane),
            _oldest(lane, scene.now_ms),
            "-" if expected_ms is None else readable_ms(expected_ms),
            f"{came:.0f}",
            f"{started:.0f}",
            _share(lane.share_recent(scene.now_ms)),
            _share(lane.share_kept(scene.now_ms)),
            *([_history(lane)] if is_wide else []),
        )
    return table


def _ready(scene: Scene, lane: LaneFigures) -> str:
    return f"{scene.counts.get(lane.queue, {}).get('ready', 0):,}"


def _oldest(lane: LaneFigures, now_ms: int) -> Text:
    oldest_ms = lane.oldest_ms(now_ms)
    share = oldest_ms / lane.slo_ms
    color = "red" if share > 1 else "yellow" if share > 0.5 else ""
    return Text(readable_ms(oldest_ms), color)


def _history(lane: LaneFigures) -> Text:
    """A bar a second; red where the promise was broken."""
    text = Text()
    for share in lane.history:
        height = min(len(BARS) - 1, int(share * len(BARS)))
        text.append(BARS[height], "red" if share > 1 else "dim cyan")
    return text


def _sacrifice(scene: Scene) -> Text:
    """Who waits so that others need not, as the figures have it."""
    text = Text().append("Sacrificed now: ", "bold")
    lanes = scene.figures.lanes.values()
    for lane in reversed(lanes):
        late = lane.late(scene.now_ms)
        if late:
            whose, count = late.most_common(1)[0]
            is_of_one = count > MOSTLY * late.total()
            text.append(f"{whose} in {lane.queue}" if is_of_one else lane.queue, "red")
            text.append(f", with {several(late.total(), 'job')} past ")
            return text.append(f"the promised {readable_ms(lane.slo_ms)}")
    waiting = [one for one in lanes if one.oldest_ms(scene.now_ms) > one.slo_ms / 2]
    if waiting:
        lane = waiting[-1]
        text.append("nobody, but ").append(lane.queue, "bold yellow")
        text.append(" is put off: its oldest job has waited ")
        text.append(readable_ms(lane.oldest_ms(scene.now_ms)), "bold yellow")
        return text.append(f" of its {readable_ms(lane.slo_ms)}")
    return text.append("nobody, every promise is being kept", "green")


def _tenants(scene: Scene) -> Table:
    table = _table("tenant", "starts/s", "kept 30 s", "late now")
    for name, (starts, good, late) in scene.figures.tenants(scene.now_ms).items():
        decided = starts + late
        table.add_row(
            Text(name, "bold"),
            f"{starts / scene.over_s:.0f}",
            _share(good / decided if decided else None),
            Text(f"{late:,}", "red" if late else ""),
        )
    return table


def _closing(scene: Scene) -> Text:
    ends = scene.figures.ends
    scheduled = sum(one["scheduled"] for one in scene.counts.values())
    waiting = sum(one["waiting"] for one in scene.counts.values())
    dead = sum(one["dead"] for one in scene.counts.values())
    return Text(
        f"{ends['done']:,} jobs done, {ends['failed']:,} attempts failed and tried again, "
        f"{ends['answered']:,} replies; now {waiting:,} wait for a reply, "
        f"{scheduled:,} for their time, {dead:,} are dead letters",
        "dim",
    )


def _share(share: float | None) -> Text:
    return Text("-", "dim") if share is None else kept(share)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, no_wrap=True)
    for head in others:
        table.add_column(head, justify="right", no_wrap=True)
    return table
