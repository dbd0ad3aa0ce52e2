"""What limits were used for, minute by minute: how much, how long full, and by whom.

History tells it of every minute in which something happened to a limit. Minutes after
that in which everything stayed as it was are told as one, and are one row each here.
"""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_IS_LIMIT: Final = "type = 'limit'"
_MINUTE: Final = """explode(transform(
    sequence(0L, minutes - 1),
    number -> timestamp_millis(minute_ms + number * 60000)
))"""
_PARTS: Final = (
    "array<struct<tenant:string,used_ms:bigint,stops:bigint,blocked_ms:bigint>>"
)
_SUMS: Final = ("used_ms", "stops", "blocked_ms")
_KEYS: Final = {
    "queue": Column("string", "the queue"),
    "limit_name": Column(
        "string", "the limit; `cap:kind` and `cap:tenant` are operators' caps"
    ),
    "limit_value": Column(
        "string", "the value that it holds for: of a label, a kind, a tenant; or empty"
    ),
    "minute": Column("timestamp", "the minute"),
}
_ADDED: Final = {
    "used_ms": Measure(
        Column(
            "bigint",
            "units in use times how long; a unit of a rate is in use for one period",
        )
    ),
    "stops": Measure(
        Column("bigint", "how often a job that was next had to wait for the limit")
    ),
    "blocked_ms": Measure(
        Column(
            "bigint",
            "how long such jobs waited in all: the next of each turn, and where the "
            "limit is the whole queue's, the next of the queue",
        )
    ),
}


def _told(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    return facts.events.where(_IS_LIMIT).withColumn("minute", F.expr(_MINUTE))


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    return (
        _told(facts)
        .groupBy(*_KEYS)
        .agg(
            F.max("capacity").alias("capacity"),
            F.max("highest").alias("highest"),
            *(F.sum(name).alias(name) for name in (*_SUMS, "full_ms")),
        )
        .withColumn("day", F.to_date("minute"))
    )


def _shares(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    return rows.withColumn(
        "used_share", F.expr("used_ms / nullif(capacity * 60000D, 0)")
    )


LIMITS: Final = Gold(
    "gold.limits",
    "How much of each limit was in use, and how long it kept jobs waiting, by minute. A "
    "limit that nobody held or waited for has no row. Time before an owner was replaced "
    "within the minute is left out.",
    _KEYS,
    {
        "capacity": Measure(
            Column("bigint", "units at once; of a rate, in each of its periods"), "max"
        ),
        "highest": Measure(
            Column(
                "bigint", "the most in use at once; of a rate, that was not paid for"
            ),
            "max",
        ),
        **_ADDED,
        "full_ms": Measure(Column("bigint", "how long it kept anybody waiting")),
    },
    _rows,
    _shares,
    {
        "used_share": Column(
            "double",
            "what was used of capacity, on average over the minute; null if it was 0",
        )
    },
    is_by_event=False,
    condition=_IS_LIMIT,
)


def _by_tenant(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    parts = _told(facts).select(*_KEYS, F.inline(F.from_json("limit_parts", _PARTS)))
    return (
        parts.groupBy(*_KEYS, "tenant")
        .agg(*(F.sum(name).alias(name) for name in _SUMS))
        .withColumn("day", F.to_date("minute"))
    )


LIMIT_TENANTS: Final = Gold(
    "gold.limit_tenants",
    "Who held each limit and whom it kept waiting, by minute: the eight tenants that held "
    "most, the eight that waited longest, and all others as one.",
    {
        **_KEYS,
        "tenant": Column("string", "the tenant; null for all others"),
    },
    _ADDED,
    _by_tenant,
    is_by_event=False,
    condition=_IS_LIMIT,
)
