"""How many workers were needed to keep the promises, hour by hour, and why.

The model is the one that advises a running fleet: `headway.core.capacity`. It is asked
for every minute of the hour. A lane's rate is then what became ready in the minutes
before that its SLO spans, this one included, as far as they are in the same hour: a
longer promise may be kept a little later. Its run times are those of the hour. Limits,
and what already waited when the hour began, are left out.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headway.core import capacity
from headway.spark.columns import Column, spark_schema
from headway.spark.gold.table import Facts, Gold, Measure, View

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

MINUTES: Final = 60
_WORK: Final = ("attempts", "run_ms", "run_sq_ms")


def _rows(facts: Facts) -> "DataFrame":
    from pyspark.sql import functions as F

    begun = facts.promised.select(
        "queue",
        "slo_ms",
        F.col("ready_minute").alias("minute"),
        F.expr("due - withdrawn").alias("ready"),
    )
    work = facts.work.select("queue", "slo_ms", "minute", *_WORK)
    both = begun.unionByName(work, allowMissingColumns=True)
    return (
        both.groupBy("queue", "slo_ms", "minute")
        .agg(
            *(
                F.coalesce(F.sum(name), F.lit(0)).alias(name)
                for name in ("ready", *_WORK)
            )
        )
        .withColumn("day", F.to_date("minute"))
    )


DEMAND: Final = Gold(
    "gold.demand",
    "What became ready and what attempts took, by lane and minute. Jobs that are to be "
    "ready later are in their minute already.",
    {
        "queue": Column("string", "the queue"),
        "slo_ms": Column("bigint", "the lane: how long its jobs may wait"),
        "minute": Column("timestamp", "the minute"),
    },
    {
        "ready": Measure(
            Column("bigint", "waits that began in it, but for those withdrawn since")
        ),
        "attempts": Measure(Column("bigint", "attempts that ended in it")),
        "run_ms": Measure(Column("bigint", "how long those took in all")),
        "run_sq_ms": Measure(Column("double", "the sum of the squares of it")),
    },
    _rows,
    is_by_event=False,
)

_KEYS: Final = {
    "queue": Column("string", "the queue"),
    "hour": Column("timestamp", "the hour"),
}
_FIGURES: Final = {
    "ready": Column("bigint", "waits that began, but for those withdrawn since"),
    "busy_s": Column("double", "worker-seconds of the attempts that ended"),
    "offered_s": Column(
        "double",
        "worker-seconds that became ready: waits times the lane's mean run in that "
        "hour, and where none has ended, times a second",
    ),
    "peak_s": Column("double", "the most of them in one minute"),
    "workers": Column(
        "bigint", "slots needed to keep the promises at the worst minute"
    ),
    "minute": Column("timestamp", "that minute, the first of its like"),
    "reason": Column("string", "what asked for so many"),
}


def _advice(rows: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F

    told = F.struct(
        F.minute("minute").alias("minute_of_hour"),
        "slo_ms",
        "ready",
        "attempts",
        "run_ms",
        "run_sq_ms",
    )
    hour = F.date_trunc("hour", "minute").alias("hour")
    hours = rows.groupBy("day", "queue", hour).agg(F.collect_list(told).alias("lanes"))
    return hours.mapInPandas(_advise, spark_schema(ADVICE.columns))


def _advise(frames: "Iterator[pd.DataFrame]") -> "Iterator[pd.DataFrame]":
    import pandas as pd

    for frame in frames:
        found = [
            {
                "day": row.day,
                "queue": row.queue,
                "hour": row.hour,
                **advised(row.queue, row.hour, list(row.lanes)),
            }
            for row in frame.itertuples()
        ]
        yield pd.DataFrame(found, columns=list(ADVICE.columns))


def advised(queue: str, hour: Any, told: list[dict[str, Any]]) -> dict[str, Any]:
    """The advice for one queue and hour, from what its minutes tell."""
    lanes = _lanes(told)
    offered = [
        sum(lane.ready[at] * lane.run_s for lane in lanes) for at in range(MINUTES)
    ]
    best, place = None, 0
    for at in range(MINUTES):
        if not any(lane.ready[at] for lane in lanes):
            continue
        wanted = capacity.wanted(
            capacity.Figures(
                lanes=tuple(lane.figures(queue, at) for lane in lanes),
                queues=(capacity.QueueFigures(name=queue),),
            )
        )
        if best is None or wanted.slots > best.slots:
            best, place = wanted, at
    return {
        "ready": sum(sum(lane.ready) for lane in lanes),
        "busy_s": sum(lane.run_ms for lane in lanes) / 1_000,
        "offered_s": sum(offered),
        "peak_s": max(offered),
        "workers": 0 if best is None else best.slots,
        "minute": hour + _minutes(place),
        "reason": "nothing became ready" if best is None else best.reason,
    }


def _minutes(count: int) -> Any:
    import pandas as pd

    return pd.Timedelta(minutes=count)


class _Lane:
    """An hour of one lane."""

    def __init__(self, slo_ms: int) -> None:
        self.slo_ms = slo_ms
        self.ready = [0] * MINUTES
        self.attempts = 0
        self.run_ms = 0
        self.run_sq_ms = 0.0

    @property
    def run_s(self) -> float:
        """The mean run."""
        if not self.run_ms:
            return capacity.RUN_MS / 1_000
        return self.run_ms / self.attempts / 1_000

    def figures(self, queue: str, at: int) -> capacity.LaneFigures:
        """Of a minute: its rate is that of the time that the SLO leaves."""
        span = max(1, min(MINUTES, self.slo_ms // 60_000))
        since = max(0, at + 1 - span)
        count = sum(self.ready[since : at + 1])
        return capacity.LaneFigures(
            queue=queue,
            slo_ms=self.slo_ms,
            per_s=max(0, count) / (span * 60),
            run_ms=self.run_ms / self.attempts if self.attempts else 0.0,
            run_sq_ms=self.run_sq_ms / self.attempts if self.attempts else 0.0,
        )


def _lanes(told: list[dict[str, Any]]) -> list[_Lane]:
    lanes: dict[int, _Lane] = {}
    for one in sorted(told, key=lambda one: (one["slo_ms"], one["minute_of_hour"])):
        lane = lanes.setdefault(one["slo_ms"], _Lane(one["slo_ms"]))
        lane.ready[one["minute_of_hour"]] += one["ready"]
        lane.attempts += one["attempts"]
        lane.run_ms += one["run_ms"]
        lane.run_sq_ms += one["run_sq_ms"]
    return list(lanes.values())


ADVICE: Final = View(
    "gold.advice",
    "How many worker slots were needed to keep the promises of a queue, by hour.",
    DEMAND.name,
    _KEYS,
    _FIGURES,
    _advice,
)
