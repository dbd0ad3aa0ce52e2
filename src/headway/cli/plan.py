"""`headway plan`: what other workers and rules would have made of recorded traffic."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headway.cli.given import date
from headway.cli.refused import Refused, refusing
from headway.cli.sections import example

if TYPE_CHECKING:
    from headway.sim.plan.answer import Plan
    from headway.sim.plan.grid import Grid


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one call."""

    lake: str | None
    from_ms: int | None
    to_ms: int | None
    queues: tuple[str, ...]
    scenario: Path | None
    grid: Path
    is_json: bool
    is_quiet: bool


@click.command(
    epilog=example(
        "headway plan --lake lake --from 2026-11-27T08:00 --to 2026-11-27T12:00 "
        "--grid grid.toml",
        "headway plan --scenario mine.toml --grid grid.toml",
    )
)
@click.option("--lake", metavar="DIR", help="The tables with the recorded traffic.")
@click.option(
    "--from", "from_ms", type=date, help="When it begins.  [default: the first job]"
)
@click.option("--to", "to_ms", type=date, help="When it ends.  [default: the last job]")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="Only the jobs of this queue; may be repeated.  [default: all]",
)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    help="A scenario, instead of recorded traffic.",
)
@click.option(
    "--grid",
    type=click.Path(path_type=Path),
    metavar="FILE.toml",
    required=True,
    help="Which workers and which changes are tried.",
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--quiet", "is_quiet", is_flag=True, help="No progress bar.")
def plan(**options: Any) -> None:
    """Say how many workers would keep every promise.

    Recorded traffic, or a scenario, goes through the real scheduler in virtual time, on
    Spark, once for every point of a grid: other workers, SLOs, weights, limits. How far
    the replay of what really ran is from what really happened is told first.
    """
    wish = Wish(**options)
    _check(wish)
    with refusing():
        made = _made(wish)
    if wish.is_json:
        click.echo(msgspec.json.encode(made).decode())
    else:
        from headway.cli.plan_report import print_plan

        print_plan(made)


def _check(wish: Wish) -> None:
    if (wish.lake is None) == (wish.scenario is None):
        raise Refused("either --lake or --scenario says what is replayed")
    is_spanned = wish.from_ms is not None or wish.to_ms is not None
    if wish.scenario is not None and (is_spanned or wish.queues):
        raise Refused("--from, --to and --queue are of a lake, not of a scenario")
    from_ms, to_ms = wish.from_ms, wish.to_ms
    if from_ms is not None and to_ms is not None and from_ms >= to_ms:
        raise Refused("--to must be after --from")


def _made(wish: Wish) -> "Plan":
    """What is wrong is said before Spark is started, wherever that can be."""
    from headway.sim.plan.grid import load_grid

    grid = load_grid(wish.grid)
    if wish.scenario is not None:
        return _of_scenario(wish.scenario, grid, is_quiet=wish.is_quiet)
    return _of_lake(wish, grid)


def _of_scenario(path: Path, grid: "Grid", *, is_quiet: bool) -> "Plan":
    from headway.cli.watching import watching
    from headway.sim.plan.change import check
    from headway.sim.scenario_file import load_scenario
    from headway.spark.session import session

    scenario = load_scenario(path)
    for change in grid.changes:
        check(change, scenario.queues)
    with watching(is_quiet=is_quiet) as advance:
        advance("spark", 0, 1)
        spark = session("headway plan")
        advance("spark", 1, 1)
        # Needs the extra, whose absence has just been told.
        from headway.spark.plan.make import of_scenario

        return of_scenario(spark, scenario, grid, advance)


def _of_lake(wish: Wish, grid: "Grid") -> "Plan":
    from headway.cli.watching import watching
    from headway.spark.errors import NoSpark
    from headway.spark.session import session

    assert wish.lake is not None
    try:
        from headway.spark.lake.lake import Lake
        from headway.spark.plan.make import of_history
        from headway.spark.plan.traffic import Wanted
    except ImportError as error:
        raise NoSpark("Spark is not installed: pip install headway[spark]") from error
    lake = Lake(wish.lake)
    lake.published()
    wanted = Wanted(wish.from_ms, wish.to_ms, wish.queues)
    with watching(is_quiet=wish.is_quiet) as advance:
        advance("spark", 0, 1)
        spark = session("headway plan")
        advance("spark", 1, 1)
        return of_history(spark, lake, wanted, grid, advance)
