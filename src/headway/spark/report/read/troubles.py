"""What went wrong, what came late, and who did not answer."""

from typing import Final

import msgspec

from headway.spark.report.source import (
    Quantiles,
    Source,
    as_quantiles,
    merged,
    quantiles,
    rows,
)

ERRORS_MAX: Final = 20
SCHEDULES_MAX: Final = 30
PARTNERS_MAX: Final = 30
DEADLY: Final = ("bury", "expire")


class Failure(msgspec.Struct, frozen=True):
    """One error, in whatever numbers it came."""

    queue: str
    kind: str
    reason: str
    error: str
    failures: int
    retries: int
    dead: int
    first_s: int
    last_s: int
    sample: str


class Failures(msgspec.Struct, frozen=True):
    errors: list[Failure]
    """Those that killed most jobs first, then those that came most often."""
    errors_all: int
    failures: int
    dead: int


class Schedule(msgspec.Struct, frozen=True):
    queue: str
    schedule: str
    ticks: int
    skipped: int
    tick_late_ms: int
    """In all."""
    tick_latest_ms: int | None
    starts: int
    start_latest_ms: int | None
    quantiles: Quantiles | None
    """From the time of the tick to the start of its job."""


class Partner(msgspec.Struct, frozen=True):
    queue: str
    partner: str
    waits: int
    replies: int
    early: int
    timeouts: int
    late: int
    repeated: int
    longest_ms: int | None
    quantiles: Quantiles | None


def read_failures(source: Source) -> Failures | None:
    from pyspark.sql import functions as F

    keys = ("queue", "kind", "reason", "error")
    table = source.table(
        "gold.failures",
        "hour",
        (*keys, "what", "failures", "first_at", "last_at", "sample"),
    )
    if table is None:
        return None
    is_deadly = F.col("what").isin(*DEADLY)
    each = table.groupBy(*keys).agg(
        F.sum("failures").alias("failures"),
        F.sum(F.when(is_deadly, F.col("failures")).otherwise(0)).alias("dead"),
        F.min(F.unix_seconds("first_at")).alias("first_s"),
        F.max(F.unix_seconds("last_at")).alias("last_s"),
        F.min("sample").alias("sample"),
    )
    (total,) = each.agg(
        F.coalesce(F.sum("failures"), F.lit(0)).alias("failures"),
        F.coalesce(F.sum("dead"), F.lit(0)).alias("dead"),
        F.count("*").alias("errors"),
    ).collect()
    first = each.orderBy(F.desc("dead"), F.desc("failures"), *keys)
    return Failures(
        [
            Failure(
                row["queue"] or "",
                row["kind"] or "",
                row["reason"] or "",
                row["error"] or "",
                row["failures"],
                row["failures"] - row["dead"],
                row["dead"],
                row["first_s"],
                row["last_s"],
                row["sample"] or "",
            )
            for row in rows(first, ERRORS_MAX)
        ],
        total["errors"],
        total["failures"],
        total["dead"],
    )


def read_schedules(source: Source) -> list[Schedule] | None:
    from pyspark.sql import functions as F

    sums = ("ticks", "skipped", "tick_late_ms", "starts")
    most = ("tick_latest_ms", "start_latest_ms")
    table = source.table(
        "gold.schedules",
        "day",
        ("queue", "schedule", *sums, *most, "start_late_sketch"),
    )
    if table is None:
        return None
    each = (
        table.groupBy("queue", "schedule")
        .agg(
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums),
            *(F.max(name).alias(name) for name in most),
            merged("start_late_sketch").alias("sketch"),
        )
        .orderBy(F.desc("skipped"), F.desc("start_latest_ms"), "queue", "schedule")
        .select("*", quantiles("sketch").alias("quantiles"))
    )
    return [
        Schedule(
            row["queue"],
            row["schedule"],
            row["ticks"],
            row["skipped"],
            row["tick_late_ms"],
            row["tick_latest_ms"],
            row["starts"],
            row["start_latest_ms"],
            as_quantiles(row["quantiles"]),
        )
        for row in rows(each.drop("sketch"), SCHEDULES_MAX)
    ]


def read_replies(source: Source) -> list[Partner] | None:
    from pyspark.sql import functions as F

    sums = ("waits", "replies", "early", "timeouts", "late", "repeated")
    table = source.table(
        "gold.replies",
        "hour",
        ("queue", "partner", *sums, "longest_ms", "answer_sketch"),
    )
    if table is None:
        return None
    each = (
        table.groupBy("queue", "partner")
        .agg(
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums),
            F.max("longest_ms").alias("longest_ms"),
            merged("answer_sketch").alias("sketch"),
        )
        .orderBy(F.desc("timeouts"), F.desc("waits"), "queue", "partner")
        .select("*", quantiles("sketch").alias("quantiles"))
    )
    return [
        Partner(
            queue=row["queue"],
            partner=row["partner"] or "",
            longest_ms=row["longest_ms"],
            quantiles=as_quantiles(row["quantiles"]),
            **{name: row[name] for name in sums},
        )
        for row in rows(each.drop("sketch"), PARTNERS_MAX)
    ]
