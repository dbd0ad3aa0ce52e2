"""A plan as tables for a terminal: the calibration first, then the points."""

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.cli.report import kept, plain
from headway.sim.chart import percent
from headway.sim.chart_scale import span_label
from headway.sim.plan.answer import Calibration, LaneCalibration, Plan
from headway.sim.plan.outcome import Outcome

SUFFERERS: Final = 2
_GOOD: Final = 0.02
_FAIR: Final = 0.05


def print_plan(plan: Plan) -> None:
    console = Console(highlight=False)
    if plan.calibration is not None:
        _print_calibration(console, plan.calibration)
        console.print()
    lanes = list(dict.fromkeys(name for one in plan.outcomes for name in one.lanes))
    console.print(plain("Points", "bold"))
    fitting = max(1, (console.width - 56) // 10)
    console.print(_points(plan, lanes[:fitting]))
    for start in range(fitting, len(lanes), fitting):
        console.print()
        console.print(_points(plan, lanes[start : start + fitting], is_first=False))
    console.print()
    is_good = plan.recommended is not None
    console.print(plain(plan.recommendation, "green" if is_good else "yellow"))


def _print_calibration(console: Console, found: Calibration) -> None:
    told = f"Calibration: off by {found.error_points:g} percentage points at most"
    console.print(plain(told, "bold"))
    slots = (
        f"{found.slots_mean:g} worker slots on average, {found.slots_most} at most, "
        f"{percent(found.utilisation)} busy, {found.gap_ms} ms from job to job"
    )
    console.print(plain(slots, "dim"))
    table = _table("lane", "promised", "waits", "recorded", "replayed", "error")
    for name, lane in found.lanes.items():
        table.add_row(
            plain(name, "bold"),
            span_label(lane.slo_ms),
            f"{lane.waits:,}",
            kept(lane.recorded),
            kept(lane.replayed),
            _error(lane),
        )
    console.print(table)
    for note in found.notes:
        console.print(plain(note, "yellow"))


def _error(lane: LaneCalibration) -> Text:
    size = abs(lane.error)
    color = "green" if size <= _GOOD else "yellow" if size <= _FAIR else "red"
    return Text(f"{100 * lane.error:+.2f}", color)


def _points(plan: Plan, lanes: list[str], *, is_first: bool = True) -> Table:
    table = _table("rules", "workers", *lanes)
    if is_first:
        for head in ("worst", "busy"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("who suffers", overflow="fold")
    for one in plan.outcomes:
        cells = [_lane(one, name) for name in lanes]
        if is_first:
            worst = one.worst
            cells += [
                plain(worst or ""),
                Text(percent(one.utilisation)),
                _sufferers(one),
            ]
        workers = "as recorded" if plan.calibration is not None else "its own"
        shown = workers if one.workers is None else f"{one.workers:,}"
        is_best = one.workers is not None and one.workers == plan.recommended
        is_best = is_best and one.name == plan.outcomes[0].name
        style = "bold green" if is_best else "bold"
        table.add_row(plain(one.name, style), Text(shown, style), *cells)
    return table


def _lane(outcome: Outcome, name: str) -> Text:
    lane = outcome.lanes.get(name)
    return Text("") if lane is None else kept(lane.attained)


def _sufferers(outcome: Outcome) -> Text:
    shown = [
        f"{one.tenant or '(no tenant)'} {percent(one.attained)}"
        for one in outcome.sufferers[:SUFFERERS]
    ]
    more = outcome.sufferers_count - len(shown)
    if more > 0:
        shown.append(f"{more:,} more")
    return plain(", ".join(shown) or "nobody")


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold", min_width=12)
    for head in others:
        table.add_column(plain(head), justify="right", no_wrap=True)
    return table
