"""A real overload, recorded, planned and run again with the workers that were named."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from headway.client import history
from headway.client.blocking import Client
from headway.core.events import AnyEvent
from headway.sim.plan.answer import Plan
from headway.sim.plan.grid import Grid, Range
from headway.spark.lake.lake import Lake
from headway.spark.pipeline.run import Pipeline, Settings
from headway.spark.plan import make
from headway.spark.plan.traffic import Wanted
from tests.server.process import Served
from tests.sim.plan.told import rows_of
from tests.spark.plan.real import Shift, play

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.long]
SECONDS = 40.0
STEADY = (Shift(11),)
COMING_AND_GOING = (Shift(7), Shift(4, begin=0.25, end=0.8), Shift(4, begin=0.5))
SAME_WORK = 0.03
"""Two runs whose jobs took longer or shorter by more than this are not comparable."""
TRIES = 5


class Played(NamedTuple):
    kept: dict[str, float]
    """The share of the jobs of each queue that started in time."""
    work_ms: int
    """How long all of them took."""
    plan: Plan | None


def played(
    folder: Path, shifts: tuple[Shift, ...], spark: Any = None, grid: Grid | None = None
) -> Played:
    """Runs it for real; with a Spark, a plan is made of what was recorded."""
    folder.mkdir()
    served = Served(folder / "data")
    try:
        play(served, folder, SECONDS, shifts)
        kept, work_ms = told_by(served)
        if spark is None:
            return Played(kept, work_ms, None)
        lake = Lake(str(folder / "lake"))
        Pipeline(spark, lake, Settings(url=served.address)).run()
    finally:
        served.stop()
    plan = make.of_history(
        spark, lake, Wanted(), grid or Grid(), lambda what, done, count: None
    )
    return Played(kept, work_ms, plan)


def told_by(served: Served) -> tuple[dict[str, float], int]:
    """What the server's own history says, read without any table."""
    client = Client(served.address)
    (own,) = client.ask(history.histories())
    told = [
        msgspec.convert(event, AnyEvent)
        for commit in history.commits(client, own.partition, own.first, own.next)
        for event in msgspec.msgpack.decode(commit.blob)[2]
    ]
    client.close()
    waits: dict[str, list[bool]] = {}
    work_ms = 0
    for row in rows_of(told):
        for attempt in row.attempts:
            assert attempt.ended_ms is not None
            work_ms += attempt.ended_ms - attempt.started_ms
            if not attempt.is_again:
                is_met = (attempt.wait_ms or 0) <= row.slo_ms
                waits.setdefault(row.queue, []).append(is_met)
    return {queue: sum(met) / len(met) for queue, met in waits.items()}, work_ms


def again(folder: Path, slots: int, work_ms: int) -> dict[str, float]:
    """The same jobs with other workers; on a busy machine it may need some tries."""
    for number in range(TRIES):
        found = played(folder / f"{slots}-{number}", (Shift(slots),))
        if abs(found.work_ms / work_ms - 1.0) <= SAME_WORK:
            return found.kept
    raise AssertionError("the machine is too busy for the same jobs to take as long")


@pytest.mark.timeout(1_800)
def test_as_many_real_workers_as_a_plan_names_keep_every_promise(
    spark: Any, tmp_path: Path
) -> None:
    grid = Grid(workers=Range(2, 24))
    found = played(tmp_path / "overload", STEADY, spark, grid)
    assert min(found.kept.values()) < 0.9, "no overload"
    plan = found.plan
    assert plan is not None
    assert plan.calibration is not None
    recorded = {name: one.recorded for name, one in plan.calibration.lanes.items()}
    assert recorded == pytest.approx(found.kept, abs=1e-5)
    assert plan.calibration.slots_most == STEADY[0].slots
    assert plan.calibration.error_points <= 2.0, plan.calibration
    slots = plan.recommended
    assert slots is not None
    enough = again(tmp_path, slots, found.work_ms)
    fewer = again(tmp_path, slots - -(-slots // 5), found.work_ms)
    print(plan.calibration, plan.recommendation, enough, fewer)  # noqa: T201
    assert min(enough.values()) >= 0.99
    assert min(fewer.values()) < 0.99


@pytest.mark.timeout(900)
def test_a_plan_is_close_where_real_workers_came_and_went(
    spark: Any, tmp_path: Path
) -> None:
    found = played(tmp_path / "overload", COMING_AND_GOING, spark)
    assert min(found.kept.values()) < 0.95, "no overload"
    assert found.plan is not None
    assert found.plan.calibration is not None
    assert found.plan.calibration.error_points <= 5.0, found.plan.calibration
