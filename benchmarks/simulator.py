"""How fast the simulator is: jobs simulated in a second of CPU time on one core."""

import gc
import time
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
    digests: set[str] = set()
    best = 0.0
    for _ in range(REPETITIONS):
        gc.collect()
        began = time.process_time()
        result = world.run(scenario)
        best = max(best, result.simulated_jobs / (time.process_time() - began))
        digests.add(result.digest)
    assert len(digests) == 1, f"{name} is not repeatable"
    note = f"{result.simulated_jobs:,} jobs, seed {result.seed}, best of {REPETITIONS}"
    return Figure(f"simulator, {name}.toml", best, "jobs/s", floor=floor, note=note)
