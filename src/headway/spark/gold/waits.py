"""How long jobs waited and ran: sums, and sketches that add up to any quantile."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import SKETCH, SKETCH_K, Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _waits(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    minute = F.date_trunc("minute", F.timestamp_millis("at_ms"))
    return (
        facts.events.where("type = 'lease' and not is_again")
        .groupBy("queue", "slo_ms", minute.alias("minute"))
        .agg(
            F.count("*").alias("starts"),
            F.sum("wait_ms").alias("wait_ms"),
            F.sum("held_ms").alias("held_ms"),
            F.max("wait_ms").alias("longest_ms"),
            F.kll_sketch_agg_bigint("wait_ms", F.lit(SKETCH_K)).alias("wait_sketch"),
        )
        .withColumn("day", F.to_date("minute"))
    )


WAITS: Final = Gold(
    "gold.waits",
    "How long jobs waited for their start, by lane and by the minute of the start.",
    {
        "queue": Column("string", "the queue"),
        "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
        "minute": Column("timestamp", "the minute of the start"),
    },
    {
        "starts": Measure(Column("bigint", "waits that ended with a start")),
        "wait_ms": Measure(Column("bigint", "their length in all, but for held time")),
        "held_ms": Measure(
            Column("bigint", "time paused, blocked or outside a window, in all")
        ),
        "longest_ms": Measure(Column("bigint", "the longest wait"), "max"),
        "wait_sketch": Measure(
            Column("binary", "KLL sketch of the waits, in ms"), SKETCH
        ),
    },
    _waits,
)


def _runs(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    hour = F.date_trunc("hour", "ended_at")
    return (
        facts.attempts.groupBy("queue", "kind", hour.alias("hour"), "end")
        .agg(
            F.count("*").alias("attempts"),
            F.sum("run_ms").alias("run_ms"),
            F.max("run_ms").alias("longest_ms"),
            F.kll_sketch_agg_bigint("run_ms", F.lit(SKETCH_K)).alias("run_sketch"),
        )
        .withColumn("day", F.to_date("hour"))
    )


RUNS: Final = Gold(
    "gold.runs",
    "How long attempts took, by kind and by how they ended.",
    {
        "queue": Column("string", "the queue"),
        "kind": Column("string", "the kind of job"),
        "hour": Column("timestamp", "the hour in which the attempts ended"),
        "end": Column("string", "how they ended: ack, retry, lose, …"),
    },
    {
        "attempts": Measure(Column("bigint", "attempts")),
        "run_ms": Measure(Column("bigint", "their length in all")),
        "longest_ms": Measure(Column("bigint", "the longest"), "max"),
        "run_sketch": Measure(
            Column("binary", "KLL sketch of their lengths, in ms"), SKETCH
        ),
    },
    _runs,
)
