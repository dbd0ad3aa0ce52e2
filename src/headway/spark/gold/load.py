"""How much there is to do: by lane and hour, and by the hour of the week."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FLOW: Final = ("arrivals", "arrival_cost", "starts", "ends")
_WORK: Final = ("attempts", "run_ms")


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    hour = F.date_trunc("hour", "minute").alias("hour")
    flow = facts.flow.where("slo_ms is not null")
    both = flow.select("queue", "slo_ms", "hour", *_FLOW).unionByName(
        facts.work.select("queue", "slo_ms", hour, *_WORK), allowMissingColumns=True
    )
    sums = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in (*_FLOW, *_WORK))
    rows = both.groupBy("queue", "slo_ms", "hour").agg(*sums)
    return rows.withColumn("day", F.to_date("hour"))


def _weekly(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    hour = F.expr("cast(weekday(hour) * 24 + hour(hour) as int)")
    return rows.withColumn("hour_of_week", hour)


LOAD: Final = Gold(
    "gold.load",
    "What came, and what it took, by lane and hour.",
    {
        "queue": Column("string", "the queue"),
        "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
        "hour": Column("timestamp", "the hour in which it happened"),
    },
    {
        "arrivals": Measure(Column("bigint", "jobs that came, or were redriven")),
        "arrival_cost": Measure(Column("bigint", "units of limits of those that came")),
        "starts": Measure(Column("bigint", "waits that ended with a start")),
        "ends": Measure(Column("bigint", "jobs that ended, however that was")),
        "attempts": Measure(Column("bigint", "attempts that ended")),
        "run_ms": Measure(Column("bigint", "how long those took in all")),
    },
    _rows,
    _weekly,
    {"hour_of_week": Column("int", "0 to 167, in UTC: 0 is the first hour of Monday")},
)
