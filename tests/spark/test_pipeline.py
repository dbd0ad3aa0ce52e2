"""History to tables: what a server did is what the tables say, however it is cut."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headway.spark.errors import GateClosed, HistoryGap
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Counted
from headway.spark.pipeline.batch import Batch
from headway.spark.pipeline.run import Pipeline, Settings
from headway.spark.source.history import HistoryStream
from headway.spark.source.options import read_options
from tests.server.process import Served
from tests.spark.conftest import rows_of
from tests.spark.work import content, run, staged, work

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server at which nothing happens any more."""
    served = Served(tmp_path_factory.mktemp("worked") / "data")
    try:
        work(served)
        yield served
    finally:
        served.stop()


@pytest.fixture(scope="module")
def lake(spark: Any, worked: Served, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """All of its history, in one go."""
    return run(spark, worked, tmp_path_factory.mktemp("lake"))


def test_jobs_and_attempts_are_as_they_were(spark: Any, lake: Lake) -> None:
    outcomes = sorted(
        row["outcome"] for row in rows_of(lake.read(spark, "silver.jobs"))
    )
    assert outcomes == ["cancelled", "dead", *["done"] * 8]
    (dead,) = (
        row
        for row in rows_of(lake.read(spark, "silver.jobs"))
        if row["outcome"] == "dead"
    )
    assert dead["last_error"] == "KeyError: 'x'"
    assert dead["labels"] == {"region": "eu"}
    ends = sorted(row["end"] for row in rows_of(lake.read(spark, "silver.attempts")))
    assert ends == [*["ack"] * 8, "bury", "retry"]
    assert len(rows_of(lake.read(spark, "silver.open_jobs"))) == 2
    assert len(rows_of(lake.read(spark, "silver.open_leases"))) == 1
    (promises,) = rows_of(
        lake.read(spark, "gold.promises").groupBy().sum("due", "met", "withdrawn")
    )
    assert list(promises.values()) == [13, 11, 1]
    counts = lake.published().counts["p1"]["mail"]
    assert counts == Counted(open=2, dead=1)


def test_tables_do_not_depend_on_how_history_is_cut(
    spark: Any, worked: Served, lake: Lake, tmp_path: Path
) -> None:
    steps: list[str] = []
    cut = run(spark, worked, tmp_path / "cut", per_batch=20, tell=steps.append)
    batches = cut.published().batch
    assert batches > 1
    assert content(spark, lake) == content(spark, cut)
    # What no event tells of is left alone.
    assert steps.count("write gold.load") == batches
    assert 0 < steps.count("write gold.failures") < batches
    assert steps.count("write gold.replies") == 0


@pytest.mark.parametrize(("more", "is_all"), [(0, True), (3, True), (4, False)])
def test_a_batch_takes_along_what_little_is_left(
    worked: Served, more: int, is_all: bool
) -> None:
    stream = HistoryStream(read_options({"url": worked.address}))
    stream.prepareForTriggerAvailableNow()
    ((name, end),) = stream.latestOffset({}, ReadAllAvailable()).items()
    start = {name: end - 24 - more}
    found = stream.latestOffset(start, ReadMaxRows(24))
    assert (found == {name: end}) is is_all
    assert found[name] >= start[name] + 24


def test_what_was_published_is_not_taken_twice(
    spark: Any, worked: Served, lake: Lake
) -> None:
    root = Path(lake.place.root)
    before = content(spark, lake)
    for file in sorted((root / "_checkpoint" / "commits").iterdir()):
        file.unlink()
    run(spark, worked, root)
    assert content(spark, lake) == before
    assert lake.published().batch == 1


def test_a_gap_is_named_and_nothing_is_published(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    lake = Lake(str(tmp_path / "lake"))
    settings = Settings(url=served.address)
    pipeline = Pipeline(spark, lake, settings)
    pipeline.record.vector = {"p1": 3}
    pipeline.record.batch = 1
    events = spark.read.format("headway").option("url", served.address).load()
    with pytest.raises(HistoryGap, match="event 3 should be next"):
        Batch(spark, lake, pipeline.record, lambda _: None).run(
            staged(lake, events.where("event <> 3"))
        )
    assert lake.ledger.last().batch == 0


def test_a_batch_that_can_not_be_true_is_quarantined(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F

    work(served)
    lake = Lake(str(tmp_path / "lake"))
    events = spark.read.format("headway").option("url", served.address).load()
    first = events.where("type = 'lease'").agg(F.min("event")).first()[0]
    lied = events.withColumn(
        "type", F.when(F.col("event") == first, "promote").otherwise(F.col("type"))
    )
    lied = lied.where("type <> 'count'")
    with pytest.raises(GateClosed, match="leases and their ends"):
        Batch(spark, lake, lake.ledger.last(), lambda _: None).run(staged(lake, lied))
    assert lake.ledger.last().batch == 0
    kept = rows_of(lake.quarantine.read(spark))
    assert {row["broken"] for row in kept} == {"leases and their ends do not alternate"}
    assert len({row["job"] for row in kept}) == 1
