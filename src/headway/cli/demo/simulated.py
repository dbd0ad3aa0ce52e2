"""`headway demo --simulated`: an overload in virtual time, and its chart."""

from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click

from headway.cli.report import print_comparison
from headway.cli.running import run_policies
from headway.sim.chart import write_chart
from headway.sim.scenario import Scenario, ScenarioError
from headway.sim.scenario_file import load_scenario

SCENARIO: Final = "overload.toml"
POLICIES: Final = ["headway", "strict", "fifo"]
_EXAMPLE: Final = Path("examples/scenarios/noisy-tenant-heavy.toml")
_STORY: Final = """\
For 100 seconds, 1.8 times as much work arrives as 300 workers can do. Not every promise
can be kept: what counts is which ones break. Headway keeps payment and default, and lets
webhook wait no longer than it must.
"""


def show_simulated(out: Path) -> None:
    """Simulates an overload under three policies, and draws it."""
    scenario = _scenario()
    results = run_policies(scenario, POLICIES, seed=None, is_quiet=False)
    out.mkdir(parents=True, exist_ok=True)
    chart = out / "overload.html"
    write_chart(chart, results)
    click.echo(_STORY)
    print_comparison(results)
    click.echo(f"\nThe chart is in {chart}: open it in a browser.")
    if _EXAMPLE.is_file():
        click.echo(f"Try another: headway simulate {_EXAMPLE} --compare")


def _scenario() -> Scenario:
    """The packaged copy, or the one of the checkout that this file lies in."""
    packaged = files("headway.sim") / "scenarios" / SCENARIO
    checkout = Path(__file__).parents[4] / "examples" / "scenarios" / SCENARIO
    with ExitStack() as stack:
        if packaged.is_file():
            return load_scenario(stack.enter_context(as_file(packaged)))
        if checkout.is_file():
            return load_scenario(checkout)
    raise ScenarioError(f"{SCENARIO} is not part of this installation")
