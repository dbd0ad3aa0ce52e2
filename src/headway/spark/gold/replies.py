"""How long the outside world takes to answer, and how often it does not."""

from typing import TYPE_CHECKING, Final

from headway.spark.columns import Column
from headway.spark.gold.table import SKETCH, SKETCH_K, Facts, Gold, Measure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMED_OUT: Final = "type in ('retry', 'bury') and reason = 'no reply'"
_TOLD: Final = f"type in ('wait', 'reply', 'reply_kept') or ({_TIMED_OUT})"
_COUNTS: Final = {
    "waits": "type = 'wait'",
    "replies": "type = 'reply'",
    "early": "type = 'reply' and is_early",
    "timeouts": _TIMED_OUT,
    "kept_early": "type = 'reply_kept' and fate = 'early'",
    "repeated": "type = 'reply_kept' and fate = 'repeated'",
    "late": "type = 'reply_kept' and fate = 'late'",
}


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    told = facts.events.where(_TOLD).withColumn(
        "answer_ms", F.expr("if(type = 'reply', waited_ms, null)")
    )
    hour = F.date_trunc("hour", F.timestamp_millis("at_ms"))
    return (
        told.groupBy(
            "queue",
            "kind",
            F.regexp_extract("reply_key", r"^(\p{L}*)", 1).alias("partner"),
            hour.alias("hour"),
        )
        .agg(
            *(F.count_if(F.expr(what)).alias(name) for name, what in _COUNTS.items()),
            F.coalesce(F.sum("answer_ms"), F.lit(0)).alias("answer_ms"),
            F.max("answer_ms").alias("longest_ms"),
            F.kll_sketch_agg_bigint("answer_ms", F.lit(SKETCH_K)).alias(
                "answer_sketch"
            ),
        )
        .withColumn("day", F.to_date("hour"))
    )


REPLIES: Final = Gold(
    "gold.replies",
    "Waits for replies and how they ended, by partner and hour.",
    {
        "queue": Column("string", "the queue"),
        "kind": Column("string", "the kind of job; null for replies that met no job"),
        "partner": Column("string", "the letters that the reply key begins with"),
        "hour": Column("timestamp", "the hour in which it happened"),
    },
    {
        "waits": Measure(Column("bigint", "waits that began")),
        "replies": Measure(Column("bigint", "waits that a reply ended")),
        "early": Measure(Column("bigint", "those whose reply was there before")),
        "timeouts": Measure(Column("bigint", "waits that ended for want of a reply")),
        "kept_early": Measure(Column("bigint", "replies that came before their wait")),
        "repeated": Measure(Column("bigint", "replies that came again, in vain")),
        "late": Measure(Column("bigint", "replies that came after the wait had ended")),
        "answer_ms": Measure(
            Column("bigint", "from the wait to its reply, in all; early ones take 0")
        ),
        "longest_ms": Measure(
            Column("bigint", "the longest; null if none came"), "max"
        ),
        "answer_sketch": Measure(
            Column("binary", "KLL sketch of the same, in ms; empty if none came"),
            SKETCH,
        ),
    },
    _rows,
    condition=_TOLD,
)
