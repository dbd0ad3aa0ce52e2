"""Who gets what: run time by tenant and hour, beside what each was entitled to.

A tenant is active in an hour in which jobs of it came, started or ended an attempt. The
run time of an hour is that of the attempts that ended in it. Entitled is each active
tenant of a queue to a part of that run time by its weight, as last told by the end of
the hour; a tenant of whom none was told has weight 1.
"""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold import shared
from headway.spark.gold.table import Facts, Gold, Measure, View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH: Final = "date '1970-01-01'"
_WEIGHT: Final = f"""coalesce(
    cast(substring(weight_told, {shared.TOLD_LENGTH + 1}) as double), 1)"""
_FLOW: Final = ("arrivals", "arrival_cost", "starts", "misses", "wait_ms")
_TOLD: Final = Measure(
    Column("string", "when the weight was told and what it is; null for never"), "max"
)


def _weights(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    return (
        facts.told.groupBy("queue", "tenant")
        .agg(F.max("weight_told").alias("weight_told"))
        .withColumn("day", F.expr(_EPOCH))
    )


def _weighed(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    return rows.withColumn("weight", F.expr(_WEIGHT))


WEIGHTS: Final = Gold(
    "gold.weights",
    "The weights of tenants as they were last told. All rows are of one day, 1970-01-01.",
    {
        "queue": Column("string", "the queue"),
        "tenant": Column("string", "the tenant"),
    },
    {"weight_told": _TOLD},
    _weights,
    _weighed,
    {"weight": Column("double", "its weight now")},
    is_by_event=False,
)


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    flow = facts.flow.select("queue", "tenant", "hour", *_FLOW)
    work = facts.work.select(
        "queue", "tenant", F.date_trunc("hour", "minute").alias("hour"), "run_ms"
    )
    before = facts.weights.select("queue", "tenant", "weight_told").withColumns(
        {"hour": F.expr(f"timestamp({_EPOCH})"), "is_before": F.lit(True)}
    )
    hours = flow
    for more in (work, facts.told, before):
        hours = hours.unionByName(more, allowMissingColumns=True)
    rows = hours.groupBy("queue", "tenant", "hour").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in (*_FLOW, "run_ms")),
        F.max("weight_told").alias("weight_told"),
        F.max("is_before").alias("is_before"),
    )
    # Hours, not events: there are few.
    so_far = (
        Window.partitionBy("queue", "tenant")
        .orderBy("hour")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        rows.withColumn("weight_told", F.max("weight_told").over(so_far))
        .where("is_before is null")
        .withColumn("day", F.to_date("hour"))
    )


def _shares(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_queue = Window.partitionBy("day", "queue", "hour")
    return (
        _weighed(rows)
        .withColumn("is_active", F.expr("arrivals + starts + run_ms > 0"))
        .withColumn("all_ms", F.sum("run_ms").over(of_queue))
        .withColumn(
            "all_weight", F.sum(F.expr("if(is_active, weight, 0)")).over(of_queue)
        )
        .withColumn("run_share", F.expr("run_ms / nullif(all_ms, 0)"))
        .withColumn(
            "entitled_share",
            F.expr("if(is_active, weight, 0) / nullif(all_weight, 0)"),
        )
        .drop("all_ms", "all_weight")
    )


FAIRNESS: Final = Gold(
    "gold.fairness",
    "What each tenant brought and got, by queue and hour, and what it was entitled to.",
    {
        "queue": Column("string", "the queue"),
        "tenant": Column("string", "the tenant"),
        "hour": Column("timestamp", "the hour in which it happened"),
    },
    {
        "arrivals": Measure(Column("bigint", "jobs that came, or were redriven")),
        "arrival_cost": Measure(Column("bigint", "units of limits of those that came")),
        "starts": Measure(Column("bigint", "waits that ended with a start")),
        "misses": Measure(Column("bigint", "those that took longer than their SLO")),
        "wait_ms": Measure(Column("bigint", "waits in all, but for held time")),
        "run_ms": Measure(Column("bigint", "time of the attempts that ended")),
        "weight_told": _TOLD,
    },
    _rows,
    _shares,
    {
        "weight": Column("double", "the weight as last told by the end of the hour"),
        "is_active": Column("boolean", "jobs came, started or ended an attempt"),
        "run_share": Column("double", "its part of the queue's run time in that hour"),
        "entitled_share": Column("double", "its part of the active tenants' weights"),
    },
)


def _index(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    by_weight = rows.where("is_active").withColumn("part", F.expr("run_share / weight"))
    return by_weight.groupBy("day", "queue", "hour").agg(
        F.count("*").alias("tenants"),
        F.count_if(F.expr("run_ms > 0")).alias("served"),
        F.sum("run_ms").alias("run_ms"),
        F.expr("sum(part) * sum(part) / nullif(count(*) * sum(part * part), 0)").alias(
            "jain"
        ),
    )


FAIRNESS_INDEX: Final = View(
    "gold.fairness_index",
    "How even run time was by weight, by queue and hour.",
    FAIRNESS.name,
    {
        "queue": Column("string", "the queue"),
        "hour": Column("timestamp", "the hour"),
    },
    {
        "tenants": Column("bigint", "tenants that were active"),
        "served": Column("bigint", "those that had run time"),
        "run_ms": Column("bigint", "time of the attempts that ended"),
        "jain": Column(
            "double",
            "Jain's index of run share by weight over the active tenants: 1 is even, "
            "1/tenants is all for one; null if nothing ran",
        ),
    },
    _index,
)


def _displacement(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    keys = ["day", "queue", "hour"]
    all_ms = rows.groupBy(*keys).agg(F.sum("run_ms").alias("all_ms"))
    # What is entitled adds up to what ran, so all lacks are as much as all surplus.
    lacks = (
        rows.where("is_active")
        .join(all_ms, keys)
        .withColumn("lack_ms", F.expr("entitled_share * all_ms - run_ms"))
    )
    above = lacks.where("lack_ms < 0")
    surplus = above.groupBy(*keys).agg(F.sum("lack_ms").alias("surplus_ms"))
    above = above.join(surplus, keys).select(
        *keys,
        F.col("tenant").alias("displacing"),
        F.expr("lack_ms / surplus_ms").alias("part"),
    )
    below = lacks.where("lack_ms > 0 and misses > 0").select(
        *keys, F.col("tenant").alias("displaced"), "lack_ms"
    )
    found = below.join(above, keys)
    # What is less than a microsecond is what is left of a difference of shares.
    return found.withColumn("displaced_ms", F.expr("lack_ms * part")).where(
        "displaced_ms >= 0.001"
    )


DISPLACEMENT: Final = View(
    "gold.displacement",
    "Who took whose run time: what a tenant lacked of its entitlement, in an hour in "
    "which some of its starts were late, spread over the tenants that had more than "
    "theirs, by how much more they had.",
    FAIRNESS.name,
    {
        "queue": Column("string", "the queue"),
        "hour": Column("timestamp", "the hour"),
        "displaced": Column(
            "string", "a tenant below its entitlement, that started late"
        ),
        "displacing": Column("string", "a tenant above its entitlement"),
    },
    {
        "displaced_ms": Column(
            "double", "run time that the one lacked, by the other's part of all surplus"
        )
    },
    _displacement,
)
