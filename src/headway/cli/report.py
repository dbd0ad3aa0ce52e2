"""What a run came to, as tables for a terminal."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.core.durations import readable_ms
from headway.sim.autoscaling import Scaled
from headway.sim.chart import percent, subtitle
from headway.sim.chart_scale import span_label
from headway.sim.result import GroupResult, LaneResult, Result

TENANTS_SHOWN: Final = 10
_KEPT: Final = 0.99
_NEARLY: Final = 0.9


def print_result(result: Result) -> None:
    """Lanes, tenants and limits of one run."""
    console = Console(highlight=False)
    console.print(plain(result.title or result.scenario, "bold"))
    console.print(plain(subtitle(result), "dim"))
    console.print()
    console.print(_lanes(result.lanes))
    if len(result.tenants) > 1:
        console.print()
        console.print(_groups("tenant", _largest(result)))
        if result.tenants_count > TENANTS_SHOWN:
            more = result.tenants_count - TENANTS_SHOWN
            console.print(plain(f"and {more:,} more tenants", "dim"))
    if len(result.loads) > 1 and result.loads.keys() != result.lanes.keys():
        console.print()
        console.print(_groups("load", result.loads.items()))
    if result.limits:
        console.print()
        console.print(_limits(result))
    console.print()
    console.print(_closing(result))
    console.print(plain(f"digest {result.digest}", "dim"))


def print_scaled(scaled: Scaled) -> None:
    """Lanes of a run with as many workers as were wanted, and what they cost."""
    console = Console(highlight=False)
    result = scaled.result
    console.print(plain(result.title or result.scenario, "bold"))
    console.print(plain(f"{subtitle(result)}, with workers as wanted", "dim"))
    console.print()
    console.print(_lanes(result.lanes))
    console.print()
    table = _table("workers", "slot-hours", "of the fewest")
    for name, slot_s in (("used", scaled.paid_s), ("fewest", scaled.work_s)):
        part = slot_s / max(scaled.work_s, 1e-9)
        table.add_row(plain(name, "bold"), f"{slot_s / 3_600:,.1f}", f"{part:.2f}")
    console.print(table)
    verdict = "all promises kept" if scaled.is_kept else "not all promises kept"
    told = f"{verdict}; at most {scaled.most:,} slots at once"
    console.print()
    console.print(plain(told, "green" if scaled.is_kept else "red"))
    console.print(_closing(result))


def print_comparison(results: list[Result]) -> None:
    """Lanes by policies: the share kept, and the 99th percentile of the waits."""
    console = Console(highlight=False)
    first = results[0]
    console.print(plain(first.title or first.scenario, "bold"))
    told = f"{first.simulated_jobs:,} jobs, seed {first.seed}: promises kept, p99 wait"
    console.print(plain(told, "dim"))
    lanes = list(first.lanes)
    fitting = max(1, (console.width - 26) // 18)
    for start in range(0, len(lanes), fitting):
        console.print()
        console.print(_compared(results, lanes[start : start + fitting]))


def _compared(results: list[Result], names: list[str]) -> Table:
    table = _table("policy", "all")
    table.columns[0].no_wrap = True
    for name in names:
        lane = results[0].lanes[name]
        head = plain(name)
        if name == lane.queue:  # else its name says it already
            head.append(f" {span_label(lane.slo_ms)}", "dim")
        table.add_column(head, justify="right", no_wrap=True)
    for result in results:
        lanes = [result.lanes.get(name) for name in names]
        cells = [Text() if lane is None else _kept_and_p99(lane) for lane in lanes]
        table.add_row(plain(result.policy, "bold"), kept(result.attained), *cells)
    return table


def kept(share: float) -> Text:
    """A share in the colour of how good it is."""
    color = "green" if share >= _KEPT else "yellow" if share >= _NEARLY else "red"
    return Text(percent(share), color)


def plain(text: str, style: str = "") -> Text:
    """Text from a file: neither markup nor control codes of it take effect."""
    return Text("".join(c if c.isprintable() else "\ufffd" for c in text), style)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold")
    for head in others:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _lanes(lanes: dict[str, LaneResult]) -> Table:
    table = _table("lane", "promised", "jobs", "kept", "p50", "p99", "longest")
    for name, lane in lanes.items():
        table.add_row(
            plain(name, "bold"),
            span_label(lane.slo_ms),
            f"{lane.jobs:,}",
            kept(lane.attained),
            *_waits(lane),
        )
    return table


def _groups(head: str, groups: Iterable[tuple[str, GroupResult]]) -> Table:
    table = _table(head, "jobs", "kept", "starts", "work", "p50", "p99", "longest")
    for name, group in groups:
        table.add_row(
            plain(name, "bold"),
            f"{group.jobs:,}",
            kept(group.attained),
            percent(group.share),
            percent(group.run_share),
            *_waits(group),
        )
    return table


def _largest(result: Result) -> list[tuple[str, GroupResult]]:
    shown = list(result.tenants.items())[:TENANTS_SHOWN]
    return [(tenant or "(no tenant)", group) for tenant, group in shown]


def _waits(found: LaneResult | GroupResult) -> list[str]:
    wait = found.wait_ms
    return [_short(value) for value in (wait.p50, wait.p99, wait.max)]


def _short(duration_ms: int) -> str:
    """Without spaces between parts: columns have to fit beside each other."""
    text = readable_ms(duration_ms)
    is_compound = text.count(" ") > 1
    return text.replace("min", "m").replace(" ", "") if is_compound else text


def _limits(result: Result) -> Table:
    table = _table("limit", "most used", "of")
    for name, limit in result.limits.items():
        table.add_row(plain(name, "bold"), f"{limit.max_used:,}", f"{limit.capacity:,}")
    return table


def _closing(result: Result) -> Text:
    ends = result.outcomes
    counts = {"dead": ends.dead, "cancelled": ends.cancelled, "open": ends.open}
    others = "".join(f", {n:,} {name}" for name, n in counts.items() if n)
    return plain(
        f"{ends.done:,} done{others}; "
        f"{result.simulated_jobs_per_second:,.0f} jobs/s simulated",
        "dim",
    )


def _kept_and_p99(lane: LaneResult) -> Text:
    return kept(lane.attained).append(f"{_short(lane.wait_ms.p99):>9}", "dim")
