"""History to tables: what a server did is what the tables say, however it is cut."""

from pathlib import Path
from typing import Any

import pytest

from headway.spark.errors import GateClosed, HistoryGap
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Counted
from headway.spark.pipeline.batch import Batch
from headway.spark.pipeline.run import Pipeline, Settings
from tests.server.process import Served
from tests.spark.conftest import rows_of

pytestmark = pytest.mark.xdist_group("spark")


def enqueue(served: Served, count: int, **fields: object) -> None:
    jobs = [{"kind": "k", "slo": "5s", **fields} for _ in range(count)]
    assert served.ask("POST", "/v1/queues/mail/jobs", jobs).status == 201


def lease(served: Served, most: int) -> list[str]:
    body = {"queues": ["mail"], "max": most, "worker": "w"}
    found = served.ask("POST", "/v1/lease", body).json
    return [job["token"] for job in found["jobs"]]


def work(served: Served) -> None:
    """Twelve jobs: eight done, one of them at its second attempt; one dead, one
    cancelled, one leased, one ready."""
    enqueue(served, 12, tenant="acme", labels={"region": "eu"})
    first, second, *rest = lease(served, 9)
    failures = [
        {"token": first, "error": "ValueError: no 17", "retry_in": 0},
        {"token": second, "error": "KeyError: 'x'", "bury": True},
    ]
    assert served.ask("POST", "/v1/nack", {"jobs": failures}).status == 200
    assert served.ask("POST", "/v1/ack", {"tokens": rest}).status == 200
    (again,) = lease(served, 1)
    assert served.ask("POST", "/v1/ack", {"tokens": [again]}).status == 200
    lease(served, 1)
    query = "/v1/jobs?queue=mail&state=ready"
    found = served.until(200, query).json["jobs"]
    while len(found) != 2:
        found = served.ask("GET", query).json["jobs"]
    assert served.ask("DELETE", f"/v1/jobs/{found[0]['id']}").status in {200, 202, 204}


def run(spark: Any, served: Served, lake: Path, per_batch: int = 2_000_000) -> Lake:
    made = Lake(str(lake))
    settings = Settings(
        url=served.address, events_per_batch=per_batch, events_per_task=per_batch
    )
    Pipeline(spark, made, settings).run()
    return made


def test_jobs_and_attempts_are_as_they_were(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    lake = run(spark, served, tmp_path / "lake")
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
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    whole = run(spark, served, tmp_path / "whole")
    cut = run(spark, served, tmp_path / "cut", per_batch=7)
    assert cut.published().batch > 3
    for name in whole.tables:
        one, other = whole.read(spark, name), cut.read(spark, name)
        if name == "bronze.events":
            # Counts are told once for what a task reads.
            one, other = (frame.where("type <> 'count'") for frame in (one, other))
        assert rows_of(one) == rows_of(other), name


def test_what_was_published_is_not_taken_twice(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    work(served)
    lake = run(spark, served, tmp_path / "lake")
    before = {name: rows_of(lake.read(spark, name)) for name in lake.tables}
    for file in sorted((tmp_path / "lake" / "_checkpoint" / "commits").iterdir()):
        file.unlink()
    run(spark, served, tmp_path / "lake")
    assert before == {name: rows_of(lake.read(spark, name)) for name in lake.tables}
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
            events.where("event <> 3")
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
        Batch(spark, lake, lake.ledger.last(), lambda _: None).run(lied)
    assert lake.ledger.last().batch == 0
    kept = rows_of(lake.quarantine.read(spark))
    assert {row["broken"] for row in kept} == {"leases and their ends do not alternate"}
    assert len({row["job"] for row in kept}) == 1
