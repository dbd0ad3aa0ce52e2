"""Which promises were kept, and when some were not."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import msgspec

from headway.spark.report.source import (
    MINUTE_S,
    Buckets,
    Source,
    bucket_of,
    buckets,
    hour_of_week,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LANES_MAX: Final = 40
TRENDS_MAX: Final = 12
SPELLS_MAX: Final = 15
_COUNTS: Final = ("met", "late", "overdue", "withdrawn")


class Kept(msgspec.Struct, frozen=True):
    """Promises by what became of them."""

    met: int = 0
    late: int = 0
    overdue: int = 0
    """Past their time, and still not started."""
    withdrawn: int = 0

    @property
    def missed(self) -> int:
        return self.late + self.overdue

    @property
    def judged(self) -> int:
        """Those of which it is known whether they were kept."""
        return self.met + self.missed

    def __add__(self, other: "Kept") -> "Kept":
        return Kept(*(getattr(self, one) + getattr(other, one) for one in _COUNTS))


class Lane(msgspec.Struct, frozen=True):
    queue: str
    slo_ms: int
    kept: Kept


class Spell(msgspec.Struct, frozen=True):
    """A time in which a lane missed promises, without a break."""

    queue: str
    slo_ms: int
    since_s: int
    until_s: int
    kept: Kept
    worst_s: int
    worst: Kept


class Promises(msgspec.Struct, frozen=True):
    lanes: list[Lane]
    """The shortest promise first."""
    total: Kept
    """Of all lanes, also those that are left out."""
    lanes_all: int
    lanes_missing: int
    """Lanes that missed a promise."""
    buckets: Buckets
    trends: dict[tuple[str, int], dict[int, Kept]]
    """By lane and bucket, for lanes that missed most and those that have most to do."""
    spells: list[Spell]
    weekly: dict[int, Kept]
    """By hour of the week."""


def read(source: Source) -> Promises | None:
    from pyspark.sql import functions as F

    table = source.table(
        "gold.promises",
        "minute",
        ("queue", "slo_ms", "due", "met", "late", "withdrawn"),
    )
    if table is None:
        return None
    is_over = F.unix_seconds("minute") + MINUTE_S <= source.as_of_s
    left = F.expr("greatest(due - met - late - withdrawn, 0)")
    judged = table.withColumn("overdue", F.when(is_over, left).otherwise(F.lit(0)))
    by_lane = judged.groupBy("queue", "slo_ms").agg(*_sums()).cache()
    try:
        lanes, total, lanes_all, lanes_missing = _lanes(by_lane)
    finally:
        by_lane.unpersist()
    past = judged.where(F.unix_seconds("minute") <= source.as_of_s)
    parts = _buckets(source, past)
    chosen = [(lane.queue, lane.slo_ms) for lane in lanes[:TRENDS_MAX]]
    trends = _trends(past, chosen, parts)
    return Promises(
        lanes=sorted(lanes, key=lambda lane: (lane.slo_ms, lane.queue)),
        total=total,
        lanes_all=lanes_all,
        lanes_missing=lanes_missing,
        buckets=parts,
        trends={key: trends[key] for key in sorted(trends, key=lambda key: key[::-1])},
        spells=spells(trends, parts),
        weekly={
            row["hour"]: _kept(row)
            for row in rows(
                past.groupBy(hour_of_week("minute").alias("hour")).agg(*_sums()), 168
            )
        },
    )


def spells(
    trends: dict[tuple[str, int], dict[int, Kept]], parts: Buckets
) -> list[Spell]:
    """Buckets with misses that follow each other, those with most misses first."""
    found = []
    for (queue, slo_ms), by_bucket in trends.items():
        run: list[tuple[int, Kept]] = []
        for at_s in [*parts.starts(), None]:
            kept = None if at_s is None else by_bucket.get(at_s)
            if at_s is not None and kept is not None and kept.missed:
                run.append((at_s, kept))
            elif run:
                found.append(_spell(queue, slo_ms, run, parts.size_s))
                run = []
    found.sort(key=lambda spell: (-spell.kept.missed, spell.since_s, spell.queue))
    return found[:SPELLS_MAX]


def _spell(queue: str, slo_ms: int, run: list[tuple[int, Kept]], size_s: int) -> Spell:
    worst_s, worst = max(run, key=lambda one: one[1].missed)
    total = sum((kept for _, kept in run), Kept())
    return Spell(queue, slo_ms, run[0][0], run[-1][0] + size_s, total, worst_s, worst)


def _lanes(by_lane: "DataFrame") -> tuple[list[Lane], Kept, int, int]:
    from pyspark.sql import functions as F

    missed = F.col("late") + F.col("overdue")
    wanted = by_lane.where(missed + F.col("met") > 0)
    first = wanted.orderBy(missed.desc(), F.col("met").desc(), "queue", "slo_ms")
    lanes = [
        Lane(row["queue"], row["slo_ms"], _kept(row)) for row in rows(first, LANES_MAX)
    ]
    (total,) = wanted.agg(
        *_sums(), F.count("*").alias("lanes"), F.count_if(missed > 0).alias("missing")
    ).collect()
    return lanes, _kept(total), total["lanes"], total["missing"]


def _buckets(source: Source, past: "DataFrame") -> Buckets:
    from pyspark.sql import functions as F

    seconds = F.unix_seconds("minute")
    (found,) = past.agg(
        F.min(seconds).alias("first"), F.max(seconds).alias("last")
    ).collect()
    if found["first"] is None:
        return buckets(source.as_of_s, source.as_of_s)
    return buckets(found["first"], found["last"])


def _trends(
    past: "DataFrame", chosen: list[tuple[str, int]], parts: Buckets
) -> dict[tuple[str, int], dict[int, Kept]]:
    found: dict[tuple[str, int], dict[int, Kept]] = {lane: {} for lane in chosen}
    if not chosen:
        return found
    at = bucket_of("minute", parts.size_s).alias("at")
    each = past.where(among(chosen)).groupBy("queue", "slo_ms", at).agg(*_sums())
    for row in rows(each, len(chosen) * len(parts.starts())):
        found[row["queue"], row["slo_ms"]][row["at"]] = _kept(row)
    return found


def among(lanes: list[tuple[str, int]]) -> "Column":
    """Whether a row is of one of these lanes; there is at least one."""
    from pyspark.sql import functions as F

    return reduce(
        or_,
        ((F.col("queue") == queue) & (F.col("slo_ms") == slo) for queue, slo in lanes),
    )


def _sums() -> "list[Column]":
    from pyspark.sql import functions as F

    return [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTS]


def _kept(row: "dict[str, int]") -> Kept:
    return Kept(*(row[name] for name in _COUNTS))
