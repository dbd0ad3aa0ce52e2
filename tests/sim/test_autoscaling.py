"""A fleet that obeys the advice keeps a day's promises with hardly a slot too many."""

from pathlib import Path

import msgspec
import pytest

from headway.core.config import Concurrency, QueueConfig
from headway.sim import autoscaling
from headway.sim.autoscaling import Fleet, Scaled
from headway.sim.scenario import (
    Load,
    Poisson,
    Scenario,
    Service,
    Spread,
    Trace,
    Workers,
)
from headway.sim.scenario_file import load_scenario

SCENARIOS = Path(__file__).parents[2] / "examples" / "scenarios"
RATIO_MAX = 1.2


def black_friday(part: float = 1.0) -> Scenario:
    """The whole scenario, or a shop with so much of its jobs and workers."""
    scenario = load_scenario(SCENARIOS / "black-friday.toml")
    if part == 1.0:
        return scenario
    loads = []
    for load in scenario.loads:
        assert isinstance(load.arrivals, Trace)
        trace = msgspec.structs.replace(
            load.arrivals, jobs=thinned(load.arrivals.jobs, part)
        )
        loads.append(msgspec.structs.replace(load, arrivals=trace))
    workers = tuple(
        msgspec.structs.replace(group, slots=round(group.slots * part))
        for group in scenario.workers
    )
    return msgspec.structs.replace(scenario, loads=tuple(loads), workers=workers)


def thinned(jobs: tuple[int, ...], part: float) -> tuple[int, ...]:
    """So much of every step; what rounding leaves over goes to the next."""
    fewer = []
    rest = 0.0
    for count in jobs:
        rest += count * part
        fewer.append(int(rest))
        rest -= int(rest)
    return tuple(fewer)


def steady(per_second: float, *, slots: int = 1, queue: QueueConfig) -> Scenario:
    return Scenario(
        name="steady",
        duration_ms=300_000,
        workers=(Workers(slots=slots),),
        queues=(queue,),
        loads=(
            Load(
                name="load",
                queue=queue.name,
                arrivals=Poisson(per_second=per_second),
                service=Service(kind=Spread.EXPONENTIAL, mean_ms=1_000),
            ),
        ),
    )


def check_promises(scaled: Scaled) -> None:
    assert {name: lane.attained for name, lane in scaled.result.lanes.items()} == {
        "payment": 1.0,
        "mail": 1.0,
        "webhook": 1.0,
    }
    assert scaled.is_kept
    assert scaled.result.outcomes.open == 0
    # The work itself: no plan, not even one that knows the future, pays for less.
    assert scaled.work_s <= scaled.paid_s <= RATIO_MAX * scaled.work_s


def test_a_small_black_friday_is_kept_with_few_workers_too_many() -> None:
    check_promises(autoscaling.run(black_friday(0.1)))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_black_friday_is_kept_with_few_workers_too_many(seed: int) -> None:
    check_promises(autoscaling.run(black_friday(), seed=seed))


def test_work_is_what_the_jobs_ran_and_nobody_is_paid_twice() -> None:
    queue = QueueConfig(name="q", slo_ms=60_000)
    scaled = autoscaling.run(steady(5.0, slots=3, queue=queue), Fleet(start_ms=1_000))
    assert scaled.result.outcomes.open == 0
    assert scaled.work_s == pytest.approx(1_500, rel=0.1)
    most_s = max(scaled.sizes) * scaled.result.ended_ms / 1_000
    assert scaled.work_s < scaled.paid_s < most_s + 60 * scaled.most


def test_a_fleet_does_not_grow_beyond_what_limits_let_it_use() -> None:
    queue = QueueConfig(name="q", slo_ms=60_000, limits=(Concurrency("line", 4),))
    scaled = autoscaling.run(steady(10.0, queue=queue))
    assert max(scaled.sizes) == 4


def test_the_same_seed_gives_the_same_fleet() -> None:
    queue = QueueConfig(name="q", slo_ms=5_000)
    first, second = (
        autoscaling.run(steady(8.0, slots=9, queue=queue), seed=3) for _ in range(2)
    )
    assert first.result.digest == second.result.digest
    assert (first.sizes, first.paid_s) == (second.sizes, second.paid_s)
