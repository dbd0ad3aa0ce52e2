"""Are the promises kept? By lane and minute; a backlog past its time counts as missed.

A wait is promised for the minute in which its SLO runs out. It is due there from the
moment it begins, and whether it was met is known when it ends with a start. What is due
and neither met nor late nor withdrawn, and whose minute is over, is overdue.
"""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold import shared
from headway.spark.gold.table import Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    return (
        facts.promised.withColumnRenamed("due_minute", "minute")
        .groupBy("queue", "slo_ms", "minute")
        .agg(*(F.sum(name).alias(name) for name in shared.WAITS))
        .withColumn("day", F.to_date("minute"))
    )


PROMISES: Final = Gold(
    "gold.promises",
    "Promises kept and missed, by lane and by the minute they were promised for.",
    {
        "queue": Column("string", "the queue"),
        "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
        "minute": Column("timestamp", "the minute in which the waits ran out of time"),
    },
    {
        "due": Measure(Column("bigint", "waits that were promised for this minute")),
        "met": Measure(Column("bigint", "those that ended with a start in time")),
        "late": Measure(Column("bigint", "those that ended with a start, too late")),
        "withdrawn": Measure(
            Column("bigint", "those that ended otherwise: cancelled, expired, put off")
        ),
    },
    rows,
    is_by_event=False,
)
