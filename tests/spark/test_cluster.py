"""The pipeline on a cluster, submitted as its users submit it."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from headway.spark.lake.lake import Lake
from tests.server.process import Served
from tests.spark.cluster import HOME, cluster, environment
from tests.spark.work import content, run, work

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.long,
    pytest.mark.timeout(1_800),
]

PROGRAM = "from headway.cli.main import main\n\nmain()\n"


def test_a_submitted_pipeline_makes_the_tables_that_a_local_one_makes(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    program = tmp_path / "pipeline.py"
    program.write_text(PROGRAM)
    lake = Lake(str(tmp_path / "submitted"))
    with cluster(tmp_path / "cluster") as master:
        subprocess.run(
            [
                str(HOME / "bin" / "spark-submit"),
                *("--master", master, "--executor-memory", "512m"),
                str(program),
                *("pipeline", "run", "--server", served.address),
                *("--lake", lake.place.root, "--reader", "submitted"),
            ],
            env=environment(),
            check=True,
            timeout=900,
        )
    local = run(spark, served, tmp_path / "local")
    assert content(spark, lake) == content(spark, local)
