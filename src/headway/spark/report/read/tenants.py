"""Who got what: shares against weights, how even that was, and who displaced whom."""

from typing import Final

import msgspec

from headway.spark.report.source import HOUR_S, Buckets, Source, buckets, hourly, rows

TENANTS_MAX: Final = 30
PAIRS_MAX: Final = 15
QUEUES_MAX: Final = 8


class Tenant(msgspec.Struct, frozen=True):
    """What a tenant got in a queue, over the hours in which it was active there."""

    queue: str
    tenant: str
    weight: float
    arrivals: int
    starts: int
    misses: int
    wait_ms: int
    run_ms: int
    share: float
    """Its part of the queue's run time."""
    entitled: float
    """The part that its weight entitled it to, while it was active."""


class Evenness(msgspec.Struct, frozen=True):
    """Jain's index of a queue: 1 is even by weight."""

    queue: str
    worst: float
    worst_s: int
    mean: float
    by_bucket: dict[int, float]
    """The worst of each bucket."""


class Displaced(msgspec.Struct, frozen=True):
    displaced: str
    displacing: str
    queue: str
    ms: float
    hours: int
    worst_s: int


class Tenants(msgspec.Struct, frozen=True):
    tenants: list[Tenant]
    tenants_all: int
    evenness: list[Evenness] | None
    buckets: Buckets | None
    displaced: list[Displaced] | None


class Cost(msgspec.Struct, frozen=True):
    tenant: str
    jobs: int
    done: int
    attempts: int
    run_ms: int
    cost: int
    share: float
    """Its part of all run time."""


class Costs(msgspec.Struct, frozen=True):
    tenants: list[Cost]
    tenants_all: int
    run_ms: int
    cost: int


def read(source: Source) -> Tenants | None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    sums = ("arrivals", "starts", "misses", "wait_ms", "run_ms")
    keys = ("queue", "tenant")
    table = source.table(
        "gold.fairness", "hour", (*keys, *sums, "weight", "entitled_share")
    )
    if table is None:
        return None
    hour_ms = F.sum("run_ms").over(Window.partitionBy("queue", "hour"))
    entitled = F.coalesce(F.col("entitled_share"), F.lit(0.0)) * F.col("hour_ms")
    each = (
        table.withColumn("hour_ms", hour_ms)
        .groupBy("queue", "tenant")
        .agg(
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums),
            F.sum(entitled).alias("entitled_ms"),
            F.max_by("weight", "hour").alias("weight"),
        )
    )
    shared = each.withColumns(
        {
            "queue_ms": F.sum("run_ms").over(Window.partitionBy("queue")),
            "all": F.count("*").over(Window.partitionBy()),
        }
    )
    found = rows(
        shared.orderBy(F.desc("run_ms"), F.desc("arrivals"), "queue", "tenant"),
        TENANTS_MAX,
    )
    tenants = [
        Tenant(
            queue=row["queue"],
            tenant=row["tenant"],
            weight=row["weight"],
            share=row["run_ms"] / (row["queue_ms"] or 1),
            entitled=row["entitled_ms"] / (row["queue_ms"] or 1),
            **{name: row[name] for name in sums},
        )
        for row in found
    ]
    tenants.sort(key=lambda one: (one.queue, -one.run_ms, one.tenant))
    even = _evenness(source)
    return Tenants(
        tenants,
        found[0]["all"] if found else 0,
        None if even is None else even[0],
        None if even is None else even[1],
        _displaced(source),
    )


def _evenness(source: Source) -> tuple[list[Evenness], Buckets] | None:
    from pyspark.sql import functions as F

    table = source.table("gold.fairness_index", "hour", ("queue", "jain", "run_ms"))
    if table is None:
        return None
    seconds = F.unix_seconds("hour")
    # One tenant alone is always even: that says nothing.
    known = table.where("jain is not null")
    if "tenants" in table.columns:
        known = known.where("tenants > 1")
    each = known.groupBy("queue").agg(
        F.min("jain").alias("worst"),
        F.min_by(seconds, "jain").alias("worst_s"),
        (F.sum(F.expr("jain * run_ms")) / F.sum("run_ms")).alias("mean"),
        F.min(seconds).alias("first"),
        F.max(seconds).alias("last"),
        F.sum("run_ms").alias("run_ms"),
    )
    found = rows(each.orderBy(F.desc("run_ms"), "queue"), QUEUES_MAX)
    if not found:
        return [], buckets(source.as_of_s, source.as_of_s, HOUR_S)
    by_queue, parts = hourly(known, found, F.min("jain"))
    told = [
        Evenness(
            row["queue"],
            row["worst"],
            row["worst_s"],
            row["mean"],
            by_queue[row["queue"]],
        )
        for row in found
    ]
    return told, parts


def _displaced(source: Source) -> list[Displaced] | None:
    from pyspark.sql import functions as F

    keys = ("displaced", "displacing", "queue")
    table = source.table("gold.displacement", "hour", (*keys, "displaced_ms"))
    if table is None:
        return None
    each = table.groupBy(*keys).agg(
        F.sum("displaced_ms").alias("ms"),
        F.count("*").alias("hours"),
        F.max_by(F.unix_seconds("hour"), "displaced_ms").alias("worst_s"),
    )
    return [
        Displaced(**row.asDict())
        for row in rows(each.orderBy(F.desc("ms"), *keys), PAIRS_MAX)
    ]


def read_costs(source: Source) -> Costs | None:
    from pyspark.sql import functions as F

    sums = ("jobs", "done", "attempts", "run_ms", "cost")
    table = source.table("gold.costs", "day", ("tenant", *sums))
    if table is None:
        return None
    each = table.groupBy("tenant").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums)
    )
    first = rows(each.orderBy(F.desc("run_ms"), "tenant"), TENANTS_MAX)
    (total,) = each.agg(
        F.coalesce(F.sum("run_ms"), F.lit(0)).alias("run_ms"),
        F.coalesce(F.sum("cost"), F.lit(0)).alias("cost"),
        F.count("*").alias("tenants"),
    ).collect()
    return Costs(
        [
            Cost(**row.asDict(), share=row["run_ms"] / (total["run_ms"] or 1))
            for row in first
        ],
        total["tenants"],
        total["run_ms"],
        total["cost"],
    )
