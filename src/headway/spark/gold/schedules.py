"""How punctual schedules are: their ticks, and the jobs that came of them."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import SKETCH, SKETCH_K, Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    day = F.to_date(F.timestamp_millis("tick_ms")).alias("day")
    late_ms = F.expr("at_ms - tick_ms")
    ticks = facts.events.where("type = 'tick'")
    ticked = ticks.groupBy("queue", "schedule", day).agg(
        F.count("*").alias("ticks"),
        F.count_if(F.expr("job = 0")).alias("skipped"),
        F.sum(late_ms).alias("tick_late_ms"),
        F.max(late_ms).alias("tick_latest_ms"),
    )
    started = facts.jobs.where("schedule is not null and started_at is not null")
    late_ms = F.expr("unix_millis(started_at) - unix_millis(tick_at)")
    day = F.to_date("tick_at").alias("day")
    starts = started.groupBy("queue", "schedule", day).agg(
        F.count("*").alias("starts"),
        F.sum(late_ms).alias("start_late_ms"),
        F.max(late_ms).alias("start_latest_ms"),
        F.kll_sketch_agg_bigint(late_ms, F.lit(SKETCH_K)).alias("start_late_sketch"),
    )
    none = F.lit(0)
    return ticked.unionByName(starts, allowMissingColumns=True).withColumns(
        {
            name: F.coalesce(name, none)
            for name in ("ticks", "skipped", "tick_late_ms", "starts", "start_late_ms")
        }
    )


SCHEDULES: Final = Gold(
    "gold.schedules",
    "Ticks of schedules and the starts of their jobs, by the day of the tick. A start is "
    "counted when its job is over.",
    {
        "queue": Column("string", "the queue"),
        "schedule": Column("string", "the schedule"),
    },
    {
        "ticks": Measure(Column("bigint", "ticks that came")),
        "skipped": Measure(Column("bigint", "those that the queue had no room for")),
        "tick_late_ms": Measure(
            Column("bigint", "how long after their time the ticks came, in all")
        ),
        "tick_latest_ms": Measure(Column("bigint", "the most of it"), "max"),
        "starts": Measure(Column("bigint", "jobs of ticks that started and are over")),
        "start_late_ms": Measure(
            Column("bigint", "how long after the tick's time they started, in all")
        ),
        "start_latest_ms": Measure(Column("bigint", "the most of it"), "max"),
        "start_late_sketch": Measure(
            Column("binary", "KLL sketch of the same, in ms; empty if none started"),
            SKETCH,
        ),
    },
    _rows,
    is_by_event=False,
)
