"""The sink: whatever fails and is repeated, the right jobs are there once."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import functions as F

import headway.spark
from headway.runtime.records import unpack_job
from headway.store.sqlite.snapshot import Snapshot
from tests.server.process import PATIENCE_S, Served
from tests.spark.between import Between
from tests.spark.cluster import cluster, environment

pytestmark = pytest.mark.xdist_group("spark")

BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture
def between(served: Served) -> Iterator[Between]:
    made = Between(served.address)
    yield made
    made.stop()


@pytest.fixture
def small_batches(spark: Any) -> Iterator[None]:
    """So that a task has sent something by the time at which it fails."""
    before = spark.conf.get(BATCH)
    spark.conf.set(BATCH, "100")
    yield
    spark.conf.set(BATCH, before)


def frame_of(spark: Any, count: int, partitions: int = 2) -> Any:
    return spark.range(0, count, 1, partitions).selectExpr(
        "concat('k', id) as kind",
        "concat('t', id % 10) as tenant",
        "to_json(named_struct('id', id)) as payload",
    )


def write(frame: Any, url: str, **options: object) -> None:
    writer = frame.write.format("headway").option("url", url)
    for name, value in {"queue": "mail", **options}.items():
        writer = writer.option(name, value)
    writer.mode("append").save()


def kinds(served: Served, count: int, queue: str = "mail") -> Counter[str]:
    """The kinds of all ready jobs, when there are as many, or too many, of them."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        shown = served.ask("GET", f"/v1/queues/{queue}").json
        if shown["counts"]["ready"] >= count:
            break
        assert time.monotonic() < until_s, shown["counts"]
    body = {"queues": [queue], "max": 1_000, "lease": "1h"}
    found: Counter[str] = Counter()
    while jobs := served.ask("POST", "/v1/lease", body).json["jobs"]:
        found.update(job["kind"] for job in jobs)
    return found


def each_once(count: int) -> Counter[str]:
    return Counter(f"k{number}" for number in range(count))


def test_rows_become_jobs_with_all_that_they_say(spark: Any, served: Served) -> None:
    frame = spark.sql(
        """select 'k' as kind, 'acme' as tenant, 7 as priority, 2 as cost,
        named_struct('to', 'ada', 'n', array(1, 2), 'by', map('x', 1)) as payload,
        interval 5 seconds as slo, map('region', 'eu') as labels,
        timestamp '2040-01-01 00:00:00' as run_at, 'key' as idempotency_key,
        map('h', 'v') as headers, '1h' as timeout, 3 as attempts, true as critical,
        '{"type": "fixed", "delay": "1s"}' as retry, 'web' as queue"""
    )
    headway.spark.register(spark)
    write(frame, served.address)
    served.until(200, "/v1/jobs?queue=web&state=scheduled")
    until_s = time.monotonic() + PATIENCE_S
    while not (found := served.ask("GET", "/v1/jobs?queue=web").json["jobs"]):
        assert time.monotonic() < until_s
    job = served.ask("GET", f"/v1/jobs/{found[0]['id']}").json
    assert job["payload"] == {"to": "ada", "n": [1, 2], "by": {"x": 1}}
    assert (job["slo_ms"], job["priority"], job["cost"]) == (5_000, 7, 2)
    assert (job["tenant"], job["labels"]) == ("acme", {"region": "eu"})
    assert (job["run_at_ms"], job["critical"]) == (2_208_988_800_000, True)
    assert (job["headers"], job["attempts_max"]) == ({"h": "v"}, 3)


def test_columns_that_no_job_has_are_refused_by_name(
    spark: Any, served: Served
) -> None:
    frame = frame_of(spark, 1)
    for more, told in (
        (F.lit(1).alias("colour"), "colour"),
        (F.lit("x").alias("cost"), "cost"),
        (F.lit("not json").alias("retry"), "retry"),
    ):
        with pytest.raises(Exception, match=told):
            write(frame.select("*", more), served.address)
    with pytest.raises(Exception, match="never replaced"):
        frame.write.format("headway").option("url", served.address).option(
            "queue", "mail"
        ).mode("overwrite").save()


def test_text_that_is_more_than_one_value_is_no_payload(
    spark: Any, served: Served
) -> None:
    frame = spark.sql("""select 'k' as kind, '1}, {"kind": "planted"' as payload""")
    with pytest.raises(Exception, match="payload"):
        write(frame, served.address)


def test_attempts_that_fail_in_the_middle_leave_nothing(
    spark: Any, served: Served, small_batches: None
) -> None:
    def breaks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for number, batch in enumerate(batches):
            if number == 3 and task.attemptNumber() < 2:
                raise RuntimeError("planted: this attempt breaks")
            yield batch

    frame = frame_of(spark, 2_000, 4)
    write(frame.mapInArrow(breaks, frame.schema), served.address, chunkJobs=100)
    assert kinds(served, 2_000) == each_once(2_000)


def test_a_write_that_fails_for_good_enqueues_nothing(
    spark: Any, served: Served, small_batches: None
) -> None:
    def breaks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for number, batch in enumerate(batches):
            if number == 3 and task.partitionId() == 1:
                raise RuntimeError("planted: it always breaks")
            yield batch

    frame = frame_of(spark, 2_000, 2)
    broken = frame.mapInArrow(breaks, frame.schema)
    with pytest.raises(Exception, match="planted"):
        write(broken, served.address, chunkJobs=100, writeId="again")
    assert served.ask("GET", "/v1/queues/mail").status == 404
    # The same name, mended.
    write(frame, served.address, chunkJobs=100, writeId="again")
    assert kinds(served, 2_000) == each_once(2_000)


def test_a_commit_that_failed_after_it_took_effect_is_not_undone(
    spark: Any, served: Served, between: Between
) -> None:
    between.lost_answer = lambda method, path: path.endswith("/publish")
    with pytest.raises(Exception, match="no answer"):
        write(frame_of(spark, 1_000), between.address, writeId="w")
    assert ("DELETE", "/v1/writes/w") in between.seen
    # The whole application, once more.
    write(frame_of(spark, 1_000), served.address, writeId="w")
    assert kinds(served, 1_000) == each_once(1_000)


def test_a_driver_that_never_came_to_its_commit_may_run_again(
    spark: Any, served: Served, between: Between
) -> None:
    # Neither its commit nor its abort arrives, as if it had died before them.
    between.lost_request = lambda method, path: method in {"POST", "DELETE"}
    with pytest.raises(Exception, match="no answer"):
        write(frame_of(spark, 1_000), between.address, writeId="w")
    assert served.ask("GET", "/v1/writes/w").json["state"] == "staged"
    write(frame_of(spark, 1_000, 3), served.address, writeId="w")
    assert kinds(served, 1_000) == each_once(1_000)


def stream(spark: Any, served: Served, folder: Path) -> None:
    frame = spark.readStream.schema("kind string").json(str(folder / "in"))
    writer = frame.writeStream.format("headway").option("url", served.address)
    query = (
        writer.option("queue", "mail")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def arrive(spark: Any, folder: Path, first: int, before: int) -> None:
    rows = spark.range(first, before, 1, 1).selectExpr("concat('k', id) as kind")
    rows.write.mode("append").json(str(folder / "in"))


def test_a_batch_that_is_replayed_changes_nothing(
    spark: Any, served: Served, tmp_path: Path
) -> None:
    arrive(spark, tmp_path, 0, 500)
    stream(spark, served, tmp_path)
    arrive(spark, tmp_path, 500, 1_000)
    stream(spark, served, tmp_path)
    commits = tmp_path / "checkpoint" / "commits"
    for name in ("1", ".1.crc"):
        (commits / name).unlink(missing_ok=True)
    arrive(spark, tmp_path, 1_000, 1_100)
    stream(spark, served, tmp_path)
    # And all of it, by a checkpoint from before: its numbers have been.
    shutil.rmtree(commits)
    stream(spark, served, tmp_path)
    assert kinds(served, 1_100) == each_once(1_100)


def read(spark: Any, served: Served, table: str, **options: object) -> Any:
    reader = spark.read.format("headway").option("url", served.address)
    for name, value in {"table": table, **options}.items():
        reader = reader.option(name, value)
    return reader.load()


def until_indexed(served: Served, queue: str, count: int) -> list[Any]:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        answer = served.ask("GET", f"/v1/jobs?queue={queue}&limit=1000")
        if answer.status == 200 and len(answer.json["jobs"]) == count:
            return list(answer.json["jobs"])
        assert time.monotonic() < until_s, answer


def test_jobs_and_backlog_are_read_with_filters_that_hold(
    spark: Any, served: Served, between: Between
) -> None:
    for queue, count in (("mail", 30), ("web", 20)):
        jobs = [
            {"kind": f"k{number % 3}", "tenant": f"t{number % 2}", "labels": {"a": "b"}}
            for number in range(count)
        ]
        assert served.ask("POST", f"/v1/queues/{queue}/jobs", jobs).status == 201
    body = {"queues": ["mail"], "max": 10}
    leased = served.ask("POST", "/v1/lease", body).json["jobs"]
    tokens = [job["token"] for job in leased[:4]]
    assert served.ask("POST", "/v1/ack", {"tokens": tokens}).status == 200
    until_indexed(served, "web", 20)
    until_s = time.monotonic() + PATIENCE_S
    done = "/v1/jobs?queue=mail&state=done"
    while len(served.ask("GET", done).json["jobs"]) < 4:
        assert time.monotonic() < until_s
    everything = read(spark, served, "jobs")
    assert everything.count() == 50
    assert read(spark, served, "backlog").count() == 46
    assert read(spark, served, "backlog", pushdown="false").count() == 46
    assert read(spark, served, "jobs", queue="web").count() == 20
    rows = [row.asDict() for row in everything.collect()]
    one = next(row for row in rows if row["state"] == "done")
    assert (one["labels"], one["ended_at"] is None) == ({"a": "b"}, False)
    moment = sorted(row["enqueued_at"] for row in rows)[25]
    for condition, holds in (
        (F.col("queue") == "mail", lambda row: row["queue"] == "mail"),
        (F.col("queue") == "no such", lambda row: False),
        (
            F.col("state").isin("done", "leased"),
            lambda r: r["state"] in ("done", "leased"),
        ),
        (F.col("state") == "odd", lambda row: False),
        (F.col("tenant") == "t1", lambda row: row["tenant"] == "t1"),
        (
            (F.col("kind") == "k1") & (F.col("kind") == "k2"),
            lambda row: False,
        ),
        (F.col("enqueued_at") >= moment, lambda row: row["enqueued_at"] >= moment),
        (F.col("enqueued_at") > moment, lambda row: row["enqueued_at"] > moment),
        (F.col("enqueued_at") < moment, lambda row: row["enqueued_at"] < moment),
        (F.col("enqueued_at") <= moment, lambda row: row["enqueued_at"] <= moment),
    ):
        wanted = sorted(row["id"] for row in rows if holds(row))
        found = sorted(row["id"] for row in everything.where(condition).collect())
        assert found == wanted, condition
    narrow = spark.read.format("headway").option("url", between.address)
    narrow = narrow.option("table", "jobs").load()
    assert (
        narrow.where("queue = 'web' and kind = 'k1' and state = 'ready'").count() == 7
    )
    asked = [path for _, path in between.seen if "kind=k1" in path]
    assert asked
    assert all("state=ready" in path and "queue=web" in path for path in asked)
    assert not any("queue=mail" in path for _, path in between.seen)


def drive(master: str, url: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.driver", master, url, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        # With its Java: it has to be ended as a whole.
        start_new_session=True,
    )


def until_taken(served: Served, name: str) -> Any:
    until_s = time.monotonic() + 10 * PATIENCE_S
    while True:
        shown = served.ask("GET", f"/v1/writes/{name}").json
        if shown["state"] == "taken_in":
            return shown
        assert time.monotonic() < until_s, shown
        threading.Event().wait(0.1)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_cluster_with_slow_and_failing_tasks_writes_a_million_jobs_once(
    served: Served, between: Between, tmp_path: Path
) -> None:
    count, partitions = 1_000_000, 20
    with cluster(tmp_path / "cluster") as master:
        arguments = (str(count), str(partitions), "w", "trouble")
        driver = drive(master, between.address, *arguments)
        said, _ = driver.communicate()
        assert driver.returncode == 0, said
    attempts: dict[str, set[str]] = {}
    for method, path in between.seen:
        if method == "PUT":
            partition, attempt = path.split("/")[5:7]
            attempts.setdefault(partition, set()).add(attempt)
    # Some were tried again, others at the same time: both have sent something.
    assert len(attempts["1"]) > 1
    assert len(attempts[str(partitions - 1)]) > 1
    shown = until_taken(served, "w")
    assert (shown["jobs"], shown["taken"]) == (count, count)
    counts = served.ask("GET", "/v1/queues/mail").json["counts"]
    assert counts["ready"] == count
    assert served.stop() == 0
    assert seen_ids(served.data / "headway.db") == count


def seen_ids(store: Path) -> int:
    """How many different payloads history's own store holds, if no two are the same."""
    seen: set[bytes] = set()
    total = 0
    with Snapshot(store) as snapshot:
        for row in snapshot.rows():
            total += 1
            seen.add(unpack_job(row[0], row[6], row[5]).spec.payload)
    assert total == len(seen)
    return total


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_driver_killed_at_its_commit_and_run_again_writes_once(
    served: Served, between: Between, moment: str
) -> None:
    arguments = ("5000", "2", "w", "plain")
    driver: subprocess.Popen[str] | None = None

    def kill(method: str, path: str) -> bool:
        if not path.endswith("/publish"):
            return False
        assert driver is not None
        os.killpg(driver.pid, signal.SIGKILL)
        return True

    if moment == "before":
        between.lost_request = kill
    else:
        between.lost_answer = kill
    driver = drive("local[2]", between.address, *arguments)
    driver.communicate()
    assert driver.returncode == -signal.SIGKILL
    told = served.ask("GET", "/v1/writes/w").json["state"]
    assert told in ({"staged"} if moment == "before" else {"published", "taken_in"})
    between.lost_request = between.lost_answer = lambda method, path: False
    again = drive("local[2]", between.address, *arguments)
    said, _ = again.communicate()
    assert again.returncode == 0, said
    until_taken(served, "w")
    assert served.ask("GET", "/v1/queues/mail").json["counts"]["ready"] == 5_000
