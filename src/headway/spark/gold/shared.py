"""What several tables are made of: one pass over a batch's events for all of them."""

from typing import TYPE_CHECKING, Final

from headway.spark.silver import ENDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BEGINS: Final = """case
    when type in ('enqueue', 'retry', 'reschedule') then run_at_ms
    when type = 'redrive' or (type = 'reply' and not is_done) then at_ms
end"""
_STARTS: Final = """case
    when type = 'lease' and not is_again then at_ms - wait_ms - held_ms
end"""
WAITS: Final = ("due", "met", "late", "withdrawn")
"""What may be told of a wait; each has its place here as its number."""

_IS_RULE: Final = "type = 'rule' and what like 'tenant %'"
_TENANT: Final = f"case when {_IS_RULE} then substring(what, 8) else tenant end"
_WEIGHT: Final = f"""case
    when type = 'enqueue' then weight
    when {_IS_RULE} then coalesce(cast(get_json_object(rule, '$.weight') as double), 1)
end"""
_IS_START: Final = "type = 'lease' and not is_again"
_TOLD: Final = "lpad(at_ms, 15, '0') || lpad(event, 19, '0')"
TOLD_LENGTH: Final = 15 + 19
"""Characters that say when a weight was told; the greatest is the newest."""


def promised(events: "DataFrame") -> "DataFrame":
    """Waits, by lane, the minute in which they begin and the one they are due in."""
    from pyspark.sql import functions as F

    told = events.where("slo_ms is not null")
    # An event begins a wait or ends it with a start; some end one without, as well.
    ready_ms = F.expr(f"coalesce({_BEGINS}, {_STARTS})").alias("ready_ms")
    what = f"case when {_BEGINS} is not null then 0 when wait_ms <= slo_ms then 1 else 2 end"
    each = told.where(f"{_BEGINS} is not null or {_STARTS} is not null").select(
        "queue", "slo_ms", ready_ms, F.expr(what).alias("what")
    )
    withdrawn = told.where("unstarted_ms > 0").select(
        "queue",
        "slo_ms",
        F.col("unstarted_ms").alias("ready_ms"),
        F.lit(3).alias("what"),
    )
    counts = (
        F.count_if(F.col("what") == code).alias(name) for code, name in enumerate(WAITS)
    )
    return (
        each.unionByName(withdrawn)
        .groupBy(
            "queue",
            "slo_ms",
            _trunc("minute", "ready_ms").alias("ready_minute"),
            _trunc("minute", "ready_ms + slo_ms").alias("due_minute"),
        )
        .agg(*counts)
    )


def flow(events: "DataFrame") -> "DataFrame":
    """What came, started and ended."""
    from pyspark.sql import functions as F

    is_told = f"type in ('enqueue', 'redrive') or {_IS_START} or {ENDS}"
    rows = events.where(is_told).select(
        "queue",
        "slo_ms",
        "tenant",
        _trunc("hour", "at_ms").alias("hour"),
        F.expr("type in ('enqueue', 'redrive')").alias("is_arrival"),
        F.expr("if(type = 'enqueue', cost, 0)").alias("cost"),
        F.expr(_IS_START).alias("is_start"),
        F.expr(f"{_IS_START} and wait_ms > slo_ms").alias("is_miss"),
        F.expr(f"if({_IS_START}, wait_ms, 0)").alias("wait_ms"),
        F.expr(ENDS).alias("is_end"),
    )
    # Numbers alone: with a text among them Spark would sort the events.
    return rows.groupBy("queue", "slo_ms", "tenant", "hour").agg(
        F.count_if("is_arrival").alias("arrivals"),
        F.sum("cost").alias("arrival_cost"),
        F.count_if("is_start").alias("starts"),
        F.count_if("is_miss").alias("misses"),
        F.sum("wait_ms").alias("wait_ms"),
        F.count_if("is_end").alias("ends"),
    )


def told_weights(events: "DataFrame") -> "DataFrame":
    """The last weight that was told of a tenant in an hour, with when that was."""
    from pyspark.sql import functions as F

    rows = events.where(f"weight is not null or ({_IS_RULE})").select(
        "queue",
        F.expr(_TENANT).alias("tenant"),
        _trunc("hour", "at_ms").alias("hour"),
        F.expr(f"{_TOLD} || ({_WEIGHT})").alias("told"),
    )
    return rows.groupBy("queue", "tenant", "hour").agg(
        F.max("told").alias("weight_told")
    )


def work(attempts: "DataFrame") -> "DataFrame":
    """Attempts that ended, by lane, tenant and the minute in which they did."""
    from pyspark.sql import functions as F

    minute = F.date_trunc("minute", "ended_at")
    return attempts.groupBy("queue", "slo_ms", "tenant", minute.alias("minute")).agg(
        F.count("*").alias("attempts"),
        F.sum("run_ms").alias("run_ms"),
        F.sum(F.expr("cast(run_ms as double) * run_ms")).alias("run_sq_ms"),
    )


def _trunc(unit: str, moment_ms: str) -> "Column":
    from pyspark.sql import functions as F

    return F.date_trunc(unit, F.timestamp_millis(F.expr(moment_ms)))
