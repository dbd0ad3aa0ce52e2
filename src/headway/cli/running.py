"""Runs scenarios, with a progress bar where somebody is watching."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from headway.sim import world
from headway.sim.result import Result
from headway.sim.scenario import Scenario


def run_policies(
    scenario: Scenario, policies: list[str], *, seed: int | None, is_quiet: bool
) -> list[Result]:
    """One run for each policy, in their order."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=is_quiet or not sys.stderr.isatty(),
    )
    results = []
    with progress:
        for policy in policies:
            task = progress.add_task(policy, total=1.0)

            def advance(done: float, task: object = task) -> None:
                progress.update(task, completed=done)  # type: ignore[arg-type]

            results.append(
                world.run(scenario, policy=policy, seed=seed, progress=advance)
            )
            progress.update(task, completed=1.0)
    return results
