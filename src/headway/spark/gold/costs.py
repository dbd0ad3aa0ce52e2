"""What tenants cost: their jobs that are over, by the day on which they ended."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    day = F.to_date("ended_at").alias("day")
    return facts.jobs.groupBy("tenant", "queue", day).agg(
        F.count("*").alias("jobs"),
        F.count_if(F.expr("outcome = 'done'")).alias("done"),
        F.sum("leases").alias("attempts"),
        F.sum("run_ms").alias("run_ms"),
        F.count("cost").alias("priced"),
        F.coalesce(F.sum("cost"), F.lit(0)).alias("cost"),
        F.coalesce(F.sum(F.expr("cost * run_ms")), F.lit(0)).alias("cost_run_ms"),
    )


COSTS: Final = Gold(
    "gold.costs",
    "What the jobs of each tenant took, by queue and by the day on which they ended.",
    {
        "tenant": Column("string", "the tenant"),
        "queue": Column("string", "the queue"),
    },
    {
        "jobs": Measure(Column("bigint", "jobs that ended; a redriven one once more")),
        "done": Measure(Column("bigint", "those that were done")),
        "attempts": Measure(Column("bigint", "how often they were handed to a worker")),
        "run_ms": Measure(Column("bigint", "their time in the hands of workers")),
        "priced": Measure(
            Column("bigint", "jobs whose cost is known: all but redriven ones")
        ),
        "cost": Measure(Column("bigint", "units of limits of those, in all")),
        "cost_run_ms": Measure(
            Column("bigint", "units times time of each of those, in all")
        ),
    },
    _rows,
)
