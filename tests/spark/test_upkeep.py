"""A lake that is rebuilt, compacted and vacuumed says the same as before."""

from pathlib import Path
from typing import Any

import pytest

from headway.spark.pipeline.upkeep import compact, rebuild, vacuum
from tests.server.process import Served
from tests.spark.work import content, run, work

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.long,
    pytest.mark.timeout(1_200),
]


def test_a_rebuilt_lake_is_the_same(spark: Any, served: Served, tmp_path: Path) -> None:
    work(served)
    lake = run(spark, served, tmp_path / "lake", 20)
    before, batch = content(spark, lake), lake.published().batch
    record = rebuild(spark, lake, 0)
    assert record.batch == batch + 1
    assert content(spark, lake) == before
    # From the last batch on: what was before it is left as it is.
    rebuild(spark, lake, lake.published().at_ms)
    assert content(spark, lake) == before


def test_a_compacted_lake_is_the_same_with_fewer_files(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    lake = run(spark, served, tmp_path / "lake", 20)
    before = content(spark, lake)
    files = len(lake["bronze.events"].files())
    assert files > 1
    record = compact(spark, lake)
    assert len(lake["bronze.events"].files()) == 1
    assert record.vector == lake.published().vector
    assert content(spark, lake) == before
    assert vacuum(lake, 0)["bronze.events"] >= files
    assert content(spark, lake) == before
    # And it goes on.
    assert served.ask("POST", "/v1/queues/mail/jobs", {"kind": "k"}).status == 201
    run(spark, served, tmp_path / "lake", 20)
    opened = len(content(spark, lake)["silver.open_jobs"])
    assert opened == len(before["silver.open_jobs"]) + 1
