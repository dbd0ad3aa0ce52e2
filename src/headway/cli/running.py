"""Runs scenarios, with a progress bar where somebody is watching."""

from typing import Final

from headway.cli.watching import watching
from headway.sim import autoscaling, world
from headway.sim.autoscaling import Scaled
from headway.sim.result import Result
from headway.sim.scenario import Scenario

STEPS: Final = 1_000


def run_policies(
    scenario: Scenario, policies: list[str], *, seed: int | None, is_quiet: bool
) -> list[Result]:
    """One run for each policy, in their order."""
    results = []
    with watching(is_quiet=is_quiet) as advance:
        for policy in policies:

            def tell(done: float, policy: str = policy) -> None:
                advance(policy, round(done * STEPS), STEPS)

            results.append(world.run(scenario, policy=policy, seed=seed, progress=tell))
            tell(1.0)
    return results


def run_scaled(scenario: Scenario, *, seed: int | None, is_quiet: bool) -> Scaled:
    """One run with as many workers as are wanted."""
    with watching(is_quiet=is_quiet) as advance:

        def tell(done: float) -> None:
            advance("autoscale", round(done * STEPS), STEPS)

        scaled = autoscaling.run(scenario, seed=seed, progress=tell)
        tell(1.0)
    return scaled
