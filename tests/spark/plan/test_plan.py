"""A plan from a lake: calibrated, the same however it is cut, and right about workers."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from headway.cli.main import headway
from headway.sim.plan.grid import Grid, Range, read_grid
from headway.sim.plan.replay import Point, replay
from headway.sim.scenario import Workers
from headway.sim.world import run
from headway.spark.errors import EmptySpan, NoLake
from headway.spark.lake.lake import Lake
from headway.spark.plan import make
from headway.spark.plan.sweep import Source, happened, read_jobs, run_points
from headway.spark.plan.traffic import SCRATCH, Wanted, drop, select
from tests.sim.plan.overload import overload
from tests.spark.plan.lakes import lake_of

pytestmark = pytest.mark.xdist_group("spark")
HIGH = 24


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of(spark, overload(), tmp_path_factory.mktemp("lake"))


def quiet(what: str, done: int, count: int) -> None:
    assert 0 <= done <= count, what


def call(*arguments: object) -> Result:
    return CliRunner().invoke(headway, ["plan", *map(str, arguments)])


def test_the_fewest_workers_that_a_plan_names_keep_every_promise_and_fewer_do_not(
    spark: Any, lake: Lake
) -> None:
    grid = Grid(workers=Range(2, HIGH))
    plan = make.of_history(spark, lake, Wanted(), grid, quiet)
    assert plan.calibration is not None
    assert plan.calibration.error_points <= 1.0
    assert plan.calibration.slots_most == 8
    recorded = {name: one.recorded for name, one in plan.calibration.lanes.items()}
    assert min(recorded.values()) < 0.9
    slots = plan.recommended
    assert slots is not None
    assert f"{slots} workers are the fewest" in plan.recommendation
    enough = run(overload(workers=(Workers(slots=slots),)))
    assert min(lane.attained for lane in enough.lanes.values()) >= 0.99
    fewer = run(overload(workers=(Workers(slots=slots - -(-slots // 5)),)))
    assert min(lane.attained for lane in fewer.lanes.values()) < 0.99
    assert list(Path(lake.place.root, SCRATCH).iterdir()) == []


def test_what_comes_out_does_not_depend_on_who_runs_the_points(
    spark: Any, lake: Lake
) -> None:
    traffic = select(spark, lake, Wanted())
    found = happened(spark, traffic)
    recording = msgspec.structs.replace(traffic.recording, happened=found)
    source = Source(recording, traffic.path)
    (doubled,) = read_grid(
        {"change": [{"name": "d", "weights": {"shop-1": 2}}]}
    ).changes[1:]
    points = [
        Point(),
        Point(workers=6),
        Point(workers=12),
        Point(workers=12, change=doubled),
    ]
    together = run_points(spark, source, points)
    backwards = run_points(spark, source, points[::-1])[::-1]
    alone = [run_points(spark, source, [point])[0] for point in points[:2]]
    here = [replay(recording, read_jobs(traffic.path), point) for point in points]
    drop(traffic)
    assert together == backwards == here
    assert together[:2] == alone
    assert len({one.digest for one in together}) == len(points)


def test_a_span_without_jobs_is_said_to_be_empty(spark: Any, lake: Lake) -> None:
    for wanted in (Wanted(from_ms=1, to_ms=2), Wanted(queues=("nothing",))):
        with pytest.raises(EmptySpan, match="no jobs came in that span"):
            select(spark, lake, wanted)


def test_a_part_of_history_is_calibrated_with_what_was_there_before(
    spark: Any, lake: Lake
) -> None:
    epoch_ms = overload().epoch_ms
    wanted = Wanted(from_ms=epoch_ms + 20_000, to_ms=epoch_ms + 40_000)
    plan = make.of_history(spark, lake, wanted, Grid(), quiet)
    assert plan.calibration is not None
    assert plan.calibration.error_points <= 2.0
    assert plan.calibration.slots_most == 8


def test_the_command_tells_the_calibration_first(
    spark: Any, lake: Lake, tmp_path: Path
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text(
        "workers = [8, 16]\n"
        '[[change]]\nname = "slower mail"\nqueue = "mail"\nslo = "30s"\n'
    )
    shown = call("--lake", lake.place.root, "--grid", grid)
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("Calibration: off by ")
    assert shown.output.index("recorded") < shown.output.index("Points")
    told = call("--lake", lake.place.root, "--grid", grid, "--json")
    plan = json.loads(told.stdout)
    assert [one["workers"] for one in plan["outcomes"]] == [8, 16, 8, 16]
    as_it_is, slower = plan["outcomes"][0], plan["outcomes"][2]
    assert slower["lanes"]["mail"]["attained"] > as_it_is["lanes"]["mail"]["attained"]


def test_the_command_sweeps_a_scenario_without_a_lake(
    spark: Any, tmp_path: Path
) -> None:
    scenario, grid = tmp_path / "small.toml", tmp_path / "grid.toml"
    scenario.write_text(
        'duration = "20s"\nworkers = [{ slots = 3 }]\n'
        '[[queues]]\nname = "mail"\nslo = "2s"\n'
        '[[loads]]\nname = "mail"\nqueue = "mail"\n'
        'arrivals = { kind = "poisson", per_second = 16 }\n'
        'service = { kind = "exponential", mean = "250ms" }\n'
    )
    grid.write_text("workers = { from = 1, to = 12 }\n")
    told = call("--scenario", scenario, "--grid", grid, "--json")
    assert told.exit_code == 0, told.output
    plan = json.loads(told.stdout)
    assert plan["calibration"] is None
    kept = {
        one["workers"]: one["lanes"]["mail"]["attained"] >= 0.99
        for one in plan["outcomes"]
    }
    assert kept[plan["recommended"]]
    assert not kept[plan["recommended"] - 1]


def test_a_lake_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text("workers = [1]\n")
    refused = call("--lake", tmp_path / "none", "--grid", grid)
    assert refused.exit_code == 2
    assert "nothing is published in" in refused.output
    with pytest.raises(NoLake):
        Lake(str(tmp_path / "none")).published()
