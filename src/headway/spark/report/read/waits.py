"""How long jobs waited and ran, and how much came, hour by hour of the week."""

from typing import TYPE_CHECKING, Final

import msgspec

from headway.spark.report.read.promises import LANES_MAX, TRENDS_MAX, among
from headway.spark.report.source import (
    Buckets,
    Quantiles,
    Source,
    as_quantiles,
    bucket_of,
    buckets,
    hour_of_week,
    merged,
    quantiles,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KINDS_MAX: Final = 30


class Waits(msgspec.Struct, frozen=True):
    """Of one lane."""

    queue: str
    slo_ms: int
    starts: int
    wait_ms: int
    held_ms: int
    longest_ms: int
    quantiles: Quantiles | None


class AllWaits(msgspec.Struct, frozen=True):
    lanes: list[Waits]
    """The shortest promise first."""
    starts: int
    """Of all lanes, also those that are left out."""
    longest_ms: int | None
    buckets: Buckets
    trends: dict[tuple[str, int], dict[int, Quantiles]]
    weekly: dict[int, Quantiles]
    """By hour of the week, of all lanes."""


class Kind(msgspec.Struct, frozen=True):
    """Of one kind of job."""

    queue: str
    kind: str
    attempts: int
    acks: int
    run_ms: int
    longest_ms: int
    quantiles: Quantiles | None


class Runs(msgspec.Struct, frozen=True):
    kinds: list[Kind]
    """Those with the most run time first."""
    kinds_all: int
    attempts: int
    run_ms: int


def read(source: Source) -> AllWaits | None:
    from pyspark.sql import functions as F

    sums = ("starts", "wait_ms", "held_ms")
    table = source.table(
        "gold.waits",
        "minute",
        ("queue", "slo_ms", *sums, "longest_ms", "wait_sketch"),
    )
    if table is None:
        return None
    seconds = F.unix_seconds("minute")
    by_lane = table.groupBy("queue", "slo_ms").agg(
        *(F.sum(name).alias(name) for name in sums),
        F.max("longest_ms").alias("longest_ms"),
        merged("wait_sketch").alias("sketch"),
    )
    first = by_lane.orderBy(F.desc("starts"), "queue", "slo_ms").select(
        "*", quantiles("sketch").alias("quantiles")
    )
    lanes = [
        Waits(
            row["queue"],
            row["slo_ms"],
            row["starts"],
            row["wait_ms"],
            row["held_ms"],
            row["longest_ms"],
            as_quantiles(row["quantiles"]),
        )
        for row in rows(first.drop("sketch"), LANES_MAX)
    ]
    (total,) = table.agg(
        F.coalesce(F.sum("starts"), F.lit(0)).alias("starts"),
        F.max("longest_ms").alias("longest_ms"),
        F.coalesce(F.min(seconds), F.lit(source.as_of_s)).alias("first"),
        F.coalesce(F.max(seconds), F.lit(source.as_of_s)).alias("last"),
    ).collect()
    parts = buckets(total["first"], total["last"])
    chosen = [(lane.queue, lane.slo_ms) for lane in lanes[:TRENDS_MAX]]
    weekly = (
        table.groupBy(hour_of_week("minute").alias("hour"))
        .agg(merged("wait_sketch").alias("sketch"))
        .select("hour", quantiles("sketch").alias("quantiles"))
    )
    return AllWaits(
        sorted(lanes, key=lambda lane: (lane.slo_ms, lane.queue)),
        total["starts"],
        total["longest_ms"],
        parts,
        _trends(table, chosen, parts),
        {
            row["hour"]: Quantiles(*row["quantiles"])
            for row in rows(weekly, 168)
            if row["quantiles"] is not None
        },
    )


def _trends(
    table: "DataFrame", chosen: list[tuple[str, int]], parts: Buckets
) -> dict[tuple[str, int], dict[int, Quantiles]]:
    if not chosen:
        return {}
    each = (
        table.where(among(chosen))
        .groupBy("queue", "slo_ms", bucket_of("minute", parts.size_s).alias("at"))
        .agg(merged("wait_sketch").alias("sketch"))
        .select("queue", "slo_ms", "at", quantiles("sketch").alias("quantiles"))
    )
    trends: dict[tuple[str, int], dict[int, Quantiles]] = {}
    for row in rows(each, len(chosen) * len(parts.starts())):
        one = as_quantiles(row["quantiles"])
        if one is not None:
            trends.setdefault((row["queue"], row["slo_ms"]), {})[row["at"]] = one
    return {key: trends[key] for key in sorted(trends, key=lambda key: key[::-1])}


def read_runs(source: Source) -> Runs | None:
    from pyspark.sql import functions as F

    table = source.table(
        "gold.runs",
        "hour",
        ("queue", "kind", "end", "attempts", "run_ms", "longest_ms", "run_sketch"),
    )
    if table is None:
        return None
    acks = F.when(F.col("end") == "ack", F.col("attempts")).otherwise(0)
    each = (
        table.groupBy("queue", "kind")
        .agg(
            F.sum("attempts").alias("attempts"),
            F.sum(acks).alias("acks"),
            F.sum("run_ms").alias("run_ms"),
            F.max("longest_ms").alias("longest_ms"),
            merged("run_sketch").alias("sketch"),
        )
        .orderBy(F.desc("run_ms"), "queue", "kind")
        .select("*", quantiles("sketch").alias("quantiles"))
        .drop("sketch")
    )
    (total,) = each.agg(
        F.coalesce(F.sum("attempts"), F.lit(0)).alias("attempts"),
        F.coalesce(F.sum("run_ms"), F.lit(0)).alias("run_ms"),
        F.count("*").alias("kinds"),
    ).collect()
    kinds = [
        Kind(
            row["queue"],
            row["kind"],
            row["attempts"],
            row["acks"],
            row["run_ms"],
            row["longest_ms"],
            as_quantiles(row["quantiles"]),
        )
        for row in rows(each, KINDS_MAX)
    ]
    return Runs(kinds, total["kinds"], total["attempts"], total["run_ms"])


def read_arrivals(source: Source) -> dict[int, int] | None:
    """Jobs that came, by hour of the week."""
    from pyspark.sql import functions as F

    table = source.table("gold.load", "hour", ("arrivals",))
    if table is None:
        return None
    weekly = table.groupBy(hour_of_week("hour").alias("of_week")).agg(
        F.sum("arrivals").alias("arrivals")
    )
    return {row["of_week"]: row["arrivals"] for row in rows(weekly, 168)}
