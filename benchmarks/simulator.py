"""How fast the simulator is: jobs simulated in a second of one core, core included."""

import gc
from pathlib import Path

from benchmarks.figure import Figure
from headway.sim import world
from headway.sim.scenario_file import load_scenario

SCENARIOS = Path("examples/scenarios")
REPETITIONS = 3
FLOORS: dict[str, float | None] = {
    "overload": 25_000,
    "noisy-tenant-heavy": None,
    "black-friday": None,
}
"""By scenario; without a floor it is shown for information."""


def run() -> list[Figure]:
    return [figure(name, floor) for name, floor in FLOORS.items()]


def figure(name: str, floor: float | None) -> Figure:
    """The best of some runs, which must all come to the same end."""
    scenario = load_scenario(SCENARIOS / f"{name}.toml")
    results = []
    for _ in range(REPETITIONS):
        gc.collect()
        results.append(world.run(scenario))
    assert len({result.digest for result in results}) == 1, f"{name} is not repeatable"
    best = max(results, key=lambda result: result.simulated_jobs_per_second)
    return Figure(
        f"simulator, {name}.toml",
        best.simulated_jobs_per_second,
        "jobs/s",
        floor=floor,
        note=f"{best.simulated_jobs:,} jobs, seed {best.seed}, best of {REPETITIONS}",
    )
