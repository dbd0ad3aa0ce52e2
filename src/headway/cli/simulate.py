"""`headway simulate`: runs a scenario in virtual time."""

from pathlib import Path
from typing import Any

import click
import msgspec

from headway.cli.refused import Refused, refusing
from headway.cli.sections import example
from headway.sim.policies import POLICIES
from headway.sim.scenario import Scenario
from headway.sim.scenario_file import SEED_MAX, load_scenario


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one call."""

    policy: str
    seed: int | None
    is_json: bool
    chart: Path | None
    is_comparison: bool
    is_scaled: bool
    theme: str | None
    is_quiet: bool

    @property
    def policies(self) -> list[str]:
        return list(POLICIES) if self.is_comparison else [self.policy]


@click.command(epilog=example("headway simulate mine.toml --compare"))
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    default="headway",
    metavar="NAME",
    show_default=True,
    help=f"How the next job is chosen: {', '.join(POLICIES)}.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, SEED_MAX),
    help="For the draws; the same seed gives the same run, to the last event.",
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON and nothing else.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path),
    metavar="FILE.html|.png",
    help="Draw the wait times of all lanes over the run.",
)
@click.option(
    "--compare", "is_comparison", is_flag=True, help="Run all policies, side by side."
)
@click.option(
    "--autoscale",
    "is_scaled",
    is_flag=True,
    help="Have as many workers as are wanted, instead of the scenario's.",
)
@click.option(
    "--theme",
    type=click.Choice(["light", "dark"]),
    help="Of the chart; a page follows its reader's system otherwise.",
)
@click.option("--quiet", "is_quiet", is_flag=True, help="No progress bar.")
def simulate(scenario: Path, **options: Any) -> None:
    """Run SCENARIO.toml and show which promises were kept.

    It runs the real scheduler, in virtual time.
    """
    wish = Wish(**options)
    if wish.policy not in POLICIES:
        raise Refused(f"no policy {wish.policy!r}; known: {', '.join(POLICIES)}")
    if wish.is_scaled and (wish.is_comparison or wish.policy != "headway"):
        raise Refused("--autoscale is of the policy headway, and compares nothing")
    if wish.is_scaled:
        shown = _show_scaled(scenario, wish)
    else:
        shown = _show_results(scenario, wish)
    if wish.is_json:
        click.echo(msgspec.json.encode(shown).decode())
    elif wish.chart is not None:
        click.echo(f"The chart is in {wish.chart}")


def _show_scaled(path: Path, wish: Wish) -> object:
    """Runs with as many workers as are wanted; answers what there is as JSON."""
    from headway.cli.report import print_scaled
    from headway.cli.running import run_scaled
    from headway.sim.chart import write_chart

    with refusing():
        loaded = _loaded(path, wish)
        scaled = run_scaled(loaded, seed=wish.seed, is_quiet=wish.is_quiet)
        if wish.chart is not None:
            write_chart(wish.chart, [scaled.result], wish.theme)
    if not wish.is_json:
        print_scaled(scaled)
    return scaled


def _show_results(path: Path, wish: Wish) -> object:
    """Runs with the scenario's own workers; answers what there is as JSON."""
    from headway.cli.report import print_comparison, print_result
    from headway.cli.running import run_policies
    from headway.sim.chart import write_chart

    with refusing():
        loaded = _loaded(path, wish)
        results = run_policies(
            loaded, wish.policies, seed=wish.seed, is_quiet=wish.is_quiet
        )
        if wish.chart is not None:
            write_chart(wish.chart, results, wish.theme)
    if wish.is_json:
        return results if wish.is_comparison else results[0]
    if wish.is_comparison:
        print_comparison(results)
    else:
        print_result(results[0])
    return None


def _loaded(path: Path, wish: Wish) -> Scenario:
    from headway.sim.chart import check_chart

    loaded = load_scenario(path)
    if wish.chart is not None:
        check_chart(wish.chart)
    return loaded
