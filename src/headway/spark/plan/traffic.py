"""The traffic of a span: selected from the tables by Spark, written once for all replays.

One row for each job that came in the span or was still there at its beginning, with its
attempts, in the order of the enqueues. It is dropped when the plan is made.
"""

import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from pyarrow import fs

from headway.sim.plan.recorded import Span
from headway.sim.plan.recording import Recording
from headway.sim.plan.rules import RuleRow
from headway.sim.plan.slots import LATENCY_MS
from headway.spark.errors import EmptySpan
from headway.spark.lake.delta import filesystem
from headway.spark.lake.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCRATCH: Final = "_plan"
AROUND_MAX_MS: Final = 3_600_000
"""No replay begins longer before the span, to warm up, or goes on longer after it, so
that its last jobs meet those that came next."""
_ID: Final = ("partition", "job", "generation")
_WHOSE: Final = (*_ID, "queue", "slo_ms", "tenant", "kind")
_SAID: Final = ("first_event", "priority", "cost", "weight")


class Wanted(NamedTuple):
    """Which part of the lake; None means all there is."""

    from_ms: int | None = None
    to_ms: int | None = None
    queues: tuple[str, ...] = ()


class Traffic(NamedTuple):
    path: str
    recording: Recording


def select(spark: "SparkSession", lake: Lake, wanted: Wanted) -> Traffic:
    """Writes the jobs of a span to scratch; raises EmptySpan if there are none."""
    known_ms = lake.published().at_ms
    jobs = _jobs(spark, lake, wanted)
    span = _warm(spark, lake, _span(jobs, wanted, known_ms))
    chosen = jobs.where(
        f"enqueued_ms < {span.until_ms}"
        f" and (ended_ms is null or ended_ms >= {span.begin_ms})"
    )
    attempts = _attempts(spark, lake, span)
    rows = (
        chosen.join(attempts, list(_ID), "left")
        .orderBy("enqueued_ms", "partition", "first_event")
        .drop(*_ID, "first_event")
    )
    path = lake.place.under(f"{SCRATCH}/{uuid.uuid4().hex}")
    rows.write.mode("errorifexists").parquet(path)
    first_ms, queues = _written(spark, path)
    span = msgspec.structs.replace(
        span, epoch_ms=first_ms, begin_ms=max(first_ms, span.begin_ms)
    )
    rules = _rules(spark, lake, span, queues)
    return Traffic(path, Recording(span=span, queues=queues, rules=rules))


def drop(traffic: Traffic) -> None:
    """Removes what was written for the replays."""
    files, path = filesystem(traffic.path)
    files.delete_dir(path)


def files_of(path: str) -> list[str]:
    """The files of a folder that Spark wrote in order, in that order."""
    files, root = filesystem(path)
    found = files.get_file_info(fs.FileSelector(root))
    return sorted(info.path for info in found if info.path.endswith(".parquet"))


def _jobs(spark: "SparkSession", lake: Lake, wanted: Wanted) -> "DataFrame":
    """Jobs that are over and jobs that are not, alike."""
    from pyspark.sql import functions as F

    moments = ("enqueued", "ready", "ended")
    over = lake.read(spark, "silver.jobs").select(
        *_WHOSE,
        *_SAID,
        "labels",
        *(F.unix_millis(f"{name}_at").alias(f"{name}_ms") for name in moments),
    )
    still = lake.read(spark, "silver.open_jobs").select(
        *_WHOSE,
        *_SAID,
        F.from_json("labels", "map<string,string>").alias("labels"),
        *(f"{name}_ms" for name in moments),
    )
    both = over.unionByName(still).where("enqueued_ms is not null")
    if wanted.queues:
        both = both.where(F.col("queue").isin(*wanted.queues))
    return both


def _span(jobs: "DataFrame", wanted: Wanted, known_ms: int) -> Span:
    from pyspark.sql import functions as F

    came = jobs
    if wanted.from_ms is not None:
        came = came.where(F.col("enqueued_ms") >= wanted.from_ms)
    if wanted.to_ms is not None:
        came = came.where(F.col("enqueued_ms") < wanted.to_ms)
    found = came.agg(
        F.count("*"), F.min("enqueued_ms"), F.max("enqueued_ms"), F.max("slo_ms")
    ).first()
    assert found is not None
    count, first_ms, last_ms, slo_ms = found
    if not count:
        raise EmptySpan("no jobs came in that span")
    from_ms = first_ms if wanted.from_ms is None else wanted.from_ms
    to_ms = last_ms + 1 if wanted.to_ms is None else min(wanted.to_ms, known_ms + 1)
    to_ms = max(to_ms, from_ms + 1)
    around_ms = min(slo_ms, AROUND_MAX_MS)
    return Span(
        epoch_ms=from_ms - around_ms,
        begin_ms=from_ms - around_ms,
        from_ms=from_ms,
        to_ms=to_ms,
        until_ms=to_ms + around_ms,
        known_ms=known_ms,
    )


def _warm(spark: "SparkSession", lake: Lake, span: Span) -> Span:
    """Begins when the backlog did that the span begins with: who is over its share is
    not forgotten before a backlog is gone."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    first_ms = span.from_ms - AROUND_MAX_MS
    waits = (
        lake.read(spark, "silver.attempts")
        .where(f"wait_ms > {LATENCY_MS} and not is_again")
        .select(F.unix_millis("started_at").alias("until_ms"), "wait_ms")
        .selectExpr("until_ms - wait_ms as ready_ms", "until_ms")
        .where(f"until_ms > {first_ms} and ready_ms < {span.from_ms}")
    )
    before = Window.orderBy("ready_ms", "until_ms").rowsBetween(
        Window.unboundedPreceding, -1
    )
    islands = waits.withColumn("last_ms", F.max("until_ms").over(before)).where(
        "last_ms is null or last_ms < ready_ms"
    )
    found = islands.agg(F.max("ready_ms")).first()
    began_ms = span.begin_ms if found is None or found[0] is None else found[0]
    begin_ms = max(first_ms, min(began_ms, span.begin_ms))
    return msgspec.structs.replace(span, begin_ms=begin_ms)


def _attempts(spark: "SparkSession", lake: Lake, span: Span) -> "DataFrame":
    """By job, in the order of their starts; those that ended before are left out."""
    from pyspark.sql import functions as F

    told = ("wait_ms", "held_ms", "is_again", "worker")
    over = lake.read(spark, "silver.attempts").select(
        *_ID,
        "token",
        F.unix_millis("started_at").alias("started_ms"),
        F.unix_millis("ended_at").alias("ended_ms"),
        "end",
        *told,
    )
    still = lake.read(spark, "silver.open_leases").select(
        *_ID,
        "token",
        "started_ms",
        F.lit(None).cast("bigint").alias("ended_ms"),
        F.lit(None).cast("string").alias("end"),
        *told,
    )
    chosen = over.unionByName(still).where(
        f"started_ms is not null and (ended_ms is null or ended_ms >= {span.begin_ms})"
    )
    each = F.struct("started_ms", "token", "ended_ms", "end", *told)
    return chosen.groupBy(*_ID).agg(
        F.array_sort(F.collect_list(each)).alias("attempts")
    )


def _written(spark: "SparkSession", path: str) -> tuple[int, tuple[str, ...]]:
    """When the first job came, and the queues that there are."""
    from pyspark.sql import functions as F

    found = (
        spark.read.parquet(path)
        .agg(F.min("enqueued_ms"), F.sort_array(F.collect_set("queue")))
        .first()
    )
    assert found is not None
    return int(found[0]), tuple(found[1])


def _rules(
    spark: "SparkSession", lake: Lake, span: Span, queues: tuple[str, ...]
) -> tuple[RuleRow, ...]:
    """The newest of each before the span, and all within it, in their order."""
    from pyspark.sql import functions as F

    told = (
        lake.read(spark, "bronze.events")
        .where(f"type = 'rule' and at_ms < {span.until_ms}")
        .where(F.col("queue").isin(*queues))
        .select("partition", "event", "at_ms", "queue", "what", "rule")
    )
    fact = "if(what like 'tenant %' or what like 'kind %', what, '')"
    before = (
        told.where(f"at_ms <= {span.begin_ms}")
        .groupBy("partition", "queue", F.expr(fact).alias("fact"))
        .agg(F.max_by(F.struct("event", "at_ms", "what", "rule"), "event").alias("of"))
        .select("queue", "of.*")
    )
    since = told.where(f"at_ms > {span.begin_ms}").select(*before.columns)
    found = before.unionByName(since).orderBy("at_ms", "event").collect()
    return tuple(
        RuleRow(row["at_ms"], row["queue"], row["what"], row["rule"]) for row in found
    )
