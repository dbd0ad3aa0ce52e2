"""A pipeline that dies, at whatever step: the next run leaves the same tables."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headway.spark.lake.lake import Lake
from tests.server.process import Served
from tests.spark.work import content, run, work

pytestmark = pytest.mark.xdist_group("spark")


class Died(Exception):
    """In place of a kill, for the tests that have no time for a new process."""


def dying(at: int) -> Callable[[str], None]:
    """Dies at the step with this number."""
    steps = count()

    def step(name: str) -> None:
        if next(steps) == at:
            raise Died(name)

    return step


def steps_of(spark: Any, served: Served, lake: Path) -> list[str]:
    steps: list[str] = []
    run(spark, served, lake, 20, steps.append)
    return steps


@pytest.mark.long
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, 0.97])
def test_a_run_that_died_is_made_good(
    spark: Any, served: Served, tmp_path: Path, place: float
) -> None:
    work(served)
    steps = steps_of(spark, served, tmp_path / "whole")
    whole = content(spark, Lake(str(tmp_path / "whole")))
    at = int(place * len(steps))
    with pytest.raises(Exception, match=r"Died|STREAM_FAILED"):
        run(spark, served, tmp_path / "lake", 20, dying(at))
    lake = run(spark, served, tmp_path / "lake", 20)
    assert content(spark, lake) == whole, steps[at]


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_driver_killed_at_whatever_step_leaves_the_same_tables(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    """Killed for good, with its JVM, at some points of all batches, at other steps in
    each; every third time Spark's own record of the last batch is lost, too."""
    work(served)
    steps = steps_of(spark, served, tmp_path / "whole")
    points = list(enumerate(steps))[:: len(steps) // 24 | 1]
    assert len(points) >= 20
    assert len({name for _, name in points}) >= 15
    whole = content(spark, Lake(str(tmp_path / "whole")))
    for number, (at, name) in enumerate(points):
        place = tmp_path / f"lake-{at}"
        killed = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.spark.test_kills",
                served.address,
                place,
                str(at),
            ],
            env=os.environ,
            capture_output=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2_000:]
        commits = place / "_checkpoint" / "commits"
        if number % 3 == 0 and commits.is_dir():
            for file in sorted(commits.iterdir())[-2:]:
                file.unlink()
        lake = run(spark, served, place, 20)
        assert content(spark, lake) == whole, name
        shutil.rmtree(place)


def die_for_good(url: str, lake: str, at: int) -> None:
    from headway.spark.pipeline.run import Pipeline, Settings
    from headway.spark.session import session

    steps = count()

    def step(_: str) -> None:
        if next(steps) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = Settings(url=url, events_per_batch=20, events_per_task=20)
    Pipeline(session(master="local[2,3]"), Lake(lake), settings, step).run()


if __name__ == "__main__":
    die_for_good(sys.argv[1], sys.argv[2], int(sys.argv[3]))
