"""Are the promises kept? By lane and minute; a backlog past its time counts as missed.

A wait is promised for the minute in which its SLO runs out. It is due there from the
moment it begins, and whether it was met is known when it ends with a start. What is due
and neither met nor late nor withdrawn, and whose minute is over, is overdue.
"""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BEGINS: Final = """case
    when type in ('enqueue', 'retry', 'reschedule') then run_at_ms
    when type = 'redrive' or (type = 'reply' and not is_done) then at_ms
end"""
_STARTS: Final = """case
    when type = 'lease' and not is_again then at_ms - wait_ms - held_ms
end"""
_WITHDRAWN: Final = "nullif(unstarted_ms, 0)"


def rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    told = facts.events.where("slo_ms is not null").select(
        "queue",
        "slo_ms",
        F.expr(
            f"""filter(array(
                named_struct('what', 'due', 'ready_ms', {_BEGINS}),
                named_struct('what', if(wait_ms <= slo_ms, 'met', 'late'),
                             'ready_ms', {_STARTS}),
                named_struct('what', 'withdrawn', 'ready_ms', {_WITHDRAWN})
            ), one -> one.ready_ms is not null)"""
        ).alias("told"),
    )
    each = told.select("queue", "slo_ms", F.inline("told"))
    minute = F.date_trunc("minute", F.timestamp_millis(F.expr("ready_ms + slo_ms")))
    return (
        each.groupBy("queue", "slo_ms", minute.alias("minute"))
        .agg(
            *(
                F.count_if(F.col("what") == name).alias(name)
                for name in ("due", "met", "late", "withdrawn")
            )
        )
        .withColumn("day", F.to_date("minute"))
    )


PROMISES: Final = Gold(
    "gold.promises",
    "Promises kept and missed, by lane and by the minute they were promised for.",
    {
        "queue": Column("string", "the queue"),
        "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
        "minute": Column("timestamp", "the minute in which the waits ran out of time"),
    },
    {
        "due": Measure(Column("bigint", "waits that were promised for this minute")),
        "met": Measure(Column("bigint", "those that ended with a start in time")),
        "late": Measure(Column("bigint", "those that ended with a start, too late")),
        "withdrawn": Measure(
            Column("bigint", "those that ended otherwise: cancelled, expired, put off")
        ),
    },
    rows,
)
