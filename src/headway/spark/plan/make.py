"""Makes a plan: the span is written, looked back on, replayed as it was, then swept."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from headway.sim.plan.answer import Plan, calibration, plan
from headway.sim.plan.change import check
from headway.sim.plan.grid import Grid
from headway.sim.plan.outcome import Outcome
from headway.sim.plan.replay import Point
from headway.sim.plan.search import sweep
from headway.sim.scenario import Scenario
from headway.spark.lake.lake import Lake
from headway.spark.plan.sweep import Source, happened, run_points
from headway.spark.plan.traffic import Wanted, drop, select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Advance = Callable[[str, int, int], None]
"""Told what is under way, how much of it is done, and how much there is."""


def of_history(
    spark: "SparkSession", lake: Lake, wanted: Wanted, grid: Grid, advance: Advance
) -> Plan:
    """What other workers and rules would have made of recorded traffic."""
    advance("history", 0, 2)
    traffic = select(spark, lake, wanted)
    try:
        advance("history", 1, 2)
        recording = msgspec.structs.replace(
            traffic.recording, happened=happened(spark, traffic)
        )
        advance("history", 2, 2)
        for change in grid.changes:
            check(change, recording.configs().values())
        source = Source(recording, traffic.path)
        as_it_was = Point(seed=grid.seed, target=grid.target)
        (replayed,) = _runner(spark, source, "calibration", advance)([as_it_was])
        found = calibration(recording, replayed)
        outcomes = sweep(grid, _runner(spark, source, "points", advance))
    finally:
        drop(traffic)
    return plan(grid, outcomes, found)


def of_scenario(
    spark: "SparkSession", scenario: Scenario, grid: Grid, advance: Advance
) -> Plan:
    """What other workers and rules make of a scenario."""
    for change in grid.changes:
        check(change, scenario.queues)
    source = Source(scenario=scenario)
    outcomes = sweep(grid, _runner(spark, source, "points", advance))
    return plan(grid, outcomes, None)


def _runner(
    spark: "SparkSession", source: Source, what: str, advance: Advance
) -> Callable[[list[Point]], list[Outcome]]:
    before = 0

    def run(points: list[Point]) -> list[Outcome]:
        nonlocal before
        began = before
        before += len(points)

        def tell(done: int, count: int) -> None:
            advance(what, began + done, began + count)

        return run_points(spark, source, points, tell)

    return run
