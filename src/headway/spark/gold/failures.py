"""What goes wrong: failures by queue, kind and error, however often its numbers vary."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.errors_sql import error_line
from headway.spark.gold.table import DISTINCT, DISTINCT_LOG, Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FAILED: Final = "type in ('retry', 'bury', 'lose', 'expire')"
_REASON: Final = """case type
    when 'lose' then 'lease lost' when 'expire' then 'expired' else reason
end"""
SAMPLE_LENGTH: Final = 1_000


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    failed = facts.events.where(_FAILED)
    at = F.timestamp_millis("at_ms")
    sketch = F.theta_sketch_agg("whose", F.lit(DISTINCT_LOG))
    return (
        failed.withColumn("whose", F.concat_ws("_", "partition", "job", "generation"))
        .groupBy(
            "queue",
            "kind",
            F.col("type").alias("what"),
            F.expr(_REASON).alias("reason"),
            error_line(F.col("text")).alias("error"),
            F.date_trunc("hour", at).alias("hour"),
        )
        .agg(
            F.count("*").alias("failures"),
            F.min(at).alias("first_at"),
            F.max(at).alias("last_at"),
            F.min(F.substring("text", 1, SAMPLE_LENGTH)).alias("sample"),
            sketch.alias("jobs_sketch"),
        )
        .withColumn("day", F.to_date("hour"))
    )


def _counted(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    return rows.withColumn("jobs", F.theta_sketch_estimate("jobs_sketch"))


FAILURES: Final = Gold(
    "gold.failures",
    "Attempts that failed and jobs that died, by error and hour.",
    {
        "queue": Column("string", "the queue"),
        "kind": Column("string", "the kind of job"),
        "what": Column("string", "what followed: retry, lose, bury or expire"),
        "reason": Column(
            "string",
            "failed, lease lost, timed out, no reply, expired or refused",
        ),
        "error": Column(
            "string",
            "the first line of the error, with <uuid>, <hex> and <number> for what "
            "varies; empty if none was told",
        ),
        "hour": Column("timestamp", "the hour in which it happened"),
    },
    {
        "failures": Measure(Column("bigint", "how often")),
        "first_at": Measure(Column("timestamp", "the first time in that hour"), "min"),
        "last_at": Measure(Column("timestamp", "the last time in that hour"), "max"),
        "sample": Measure(
            Column("string", "one of the texts: the first in order of the alphabet"),
            "min",
        ),
        "jobs_sketch": Measure(
            Column("binary", "theta sketch of the jobs, to add up"), DISTINCT
        ),
    },
    _rows,
    _counted,
    {"jobs": Column("bigint", "how many jobs it happened to; beyond 4,096 within 3 %")},
    condition=_FAILED,
)
