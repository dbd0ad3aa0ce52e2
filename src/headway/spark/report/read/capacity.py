"""How many workers were needed, and how many were busy."""

from typing import Final

import msgspec

from headway.spark.report.source import HOUR_S, Buckets, Source, buckets, hourly, rows

QUEUES_MAX: Final = 12


class Need(msgspec.Struct, frozen=True):
    """Of one queue."""

    queue: str
    hours: int
    busy_s: float
    workers: int
    """Needed in the worst minute."""
    worst_s: int
    """The hour that minute is in."""
    reason: str
    by_bucket: dict[int, int]
    """The most that were needed."""


class Capacity(msgspec.Struct, frozen=True):
    queues: list[Need]
    buckets: Buckets


def read(source: Source) -> Capacity | None:
    from pyspark.sql import functions as F

    table = source.table(
        "gold.advice", "hour", ("queue", "busy_s", "workers", "reason")
    )
    if table is None:
        return None
    seconds = F.unix_seconds("hour")
    past = table.where(seconds <= source.as_of_s)
    each = past.groupBy("queue").agg(
        F.count("*").alias("hours"),
        F.sum("busy_s").alias("busy_s"),
        F.max("workers").alias("workers"),
        F.max_by(seconds, "workers").alias("worst_s"),
        F.max_by("reason", "workers").alias("reason"),
        F.min(seconds).alias("first"),
        F.max(seconds).alias("last"),
    )
    found = rows(each.orderBy(F.desc("workers"), "queue"), QUEUES_MAX)
    if not found:
        return Capacity([], buckets(source.as_of_s, source.as_of_s, HOUR_S))
    by_queue, parts = hourly(past, found, F.max("workers"))
    needs = [
        Need(
            row["queue"],
            row["hours"],
            row["busy_s"],
            row["workers"],
            row["worst_s"],
            row["reason"] or "",
            by_queue[row["queue"]],
        )
        for row in found
    ]
    return Capacity(needs, parts)
