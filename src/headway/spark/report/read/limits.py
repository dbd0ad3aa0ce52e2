"""Which limits were full, how long, and who waited while who held them."""

from typing import TYPE_CHECKING, Final

import msgspec

from headway.spark.report.source import Buckets, Source, bucket_of, buckets, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LIMITS_MAX: Final = 30
TRENDS_MAX: Final = 6
PAIRS_MAX: Final = 15
_KEYS: Final = ("queue", "limit_name", "limit_value")

Name = tuple[str, str, str]
"""Queue, limit and value."""


class Limit(msgspec.Struct, frozen=True):
    """One value of a limit, over the minutes in which it was in use."""

    queue: str
    limit_name: str
    limit_value: str
    capacity: int
    highest: int
    used_share: float | None
    """What was used of its capacity on average; None if it has none."""
    stops: int
    full_ms: int
    worst_s: int
    """The minute in which it was full longest."""

    @property
    def name(self) -> Name:
        return self.queue, self.limit_name, self.limit_value


class Blocked(msgspec.Struct, frozen=True):
    """A tenant that waited for a limit while another, or itself, held it."""

    queue: str
    limit_name: str
    limit_value: str
    blocked: str | None
    """None stands for those who are not told by name; so it does below."""
    holder: str | None
    ms: float
    """How long, by the holder's part of what was held in those minutes."""


class Limits(msgspec.Struct, frozen=True):
    limits: list[Limit]
    """Those that were full longest first."""
    limits_all: int
    limits_full: int
    buckets: Buckets
    trends: dict[Name, dict[int, int]]
    """How long each was full, in ms, by the second with which a part begins."""
    blocked: list[Blocked] | None


def read(source: Source) -> Limits | None:
    from pyspark.sql import functions as F

    sums = ("stops", "full_ms")
    table = source.table(
        "gold.limits", "minute", (*_KEYS, *sums, "capacity", "highest", "used_ms")
    )
    if table is None:
        return None
    seconds = F.unix_seconds("minute")
    each = table.groupBy(*_KEYS).agg(
        F.max("capacity").alias("capacity"),
        F.max("highest").alias("highest"),
        F.expr("sum(used_ms) / nullif(sum(capacity * 60000D), 0)").alias("used_share"),
        *(F.sum(name).alias(name) for name in sums),
        F.max_by(seconds, F.struct("full_ms", -seconds)).alias("worst_s"),
    )
    first = each.orderBy(F.desc("full_ms"), F.desc("used_share"), *_KEYS)
    limits = [Limit(**row.asDict()) for row in rows(first, LIMITS_MAX)]
    (total,) = each.agg(
        F.count("*").alias("all"), F.count_if(F.expr("full_ms > 0")).alias("full")
    ).collect()
    chosen = [one.name for one in limits if one.full_ms][:TRENDS_MAX]
    parts, trends = _trends(source, table, chosen)
    return Limits(limits, total["all"], total["full"], parts, trends, _blocked(source))


def _trends(
    source: Source, table: "DataFrame", chosen: list[Name]
) -> tuple[Buckets, dict[Name, dict[int, int]]]:
    from pyspark.sql import functions as F

    seconds = F.unix_seconds("minute")
    (span,) = table.agg(
        F.coalesce(F.min(seconds), F.lit(source.as_of_s)).alias("first"),
        F.coalesce(F.max(seconds), F.lit(source.as_of_s)).alias("last"),
    ).collect()
    parts = buckets(span["first"], span["last"])
    trends: dict[Name, dict[int, int]] = {name: {} for name in chosen}
    if not chosen:
        return parts, trends
    wanted = F.lit(False)
    for name in chosen:
        is_it = F.lit(True)
        for key, value in zip(_KEYS, name, strict=True):
            is_it &= F.col(key) == value
        wanted |= is_it
    found = (
        table.where(wanted)
        .groupBy(*_KEYS, bucket_of("minute", parts.size_s).alias("at"))
        .agg(F.sum("full_ms").alias("full_ms"))
    )
    for row in rows(found, len(chosen) * len(parts.starts())):
        name = row["queue"], row["limit_name"], row["limit_value"]
        trends[name][row["at"]] = row["full_ms"]
    return parts, trends


def _blocked(source: Source) -> list[Blocked] | None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    table = source.table(
        "gold.limit_tenants", "minute", (*_KEYS, "tenant", "used_ms", "blocked_ms")
    )
    if table is None:
        return None
    keys = [*_KEYS, "minute"]
    held_ms = F.sum("used_ms").over(Window.partitionBy(*keys))
    holders = (
        table.where("used_ms > 0")
        .withColumn("part", F.col("used_ms") / held_ms)
        .select(*keys, F.col("tenant").alias("holder"), "part")
    )
    waiting = table.where("blocked_ms > 0").select(
        *keys, F.col("tenant").alias("blocked"), "blocked_ms"
    )
    # Few rows for each minute: history names no more than sixteen tenants.
    pairs = (
        waiting.join(holders, keys)
        .groupBy(*_KEYS, "blocked", "holder")
        .agg(F.sum(F.expr("blocked_ms * part")).alias("ms"))
    )
    order = (F.desc("ms"), *_KEYS, "blocked", "holder")
    return [Blocked(**row.asDict()) for row in rows(pairs.orderBy(*order), PAIRS_MAX)]
