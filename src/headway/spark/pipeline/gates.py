"""What a batch has to be before it is published.

Events are without gaps and none comes twice; jobs go the ways that jobs can go; and
what was enqueued is what has ended and what is open, as the partition itself counted.
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headway.spark.decode import COUNT
from headway.spark.errors import GateClosed, HistoryGap
from headway.spark.lake.published import Counted
from headway.spark.silver import ENDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODULUS: Final = 1_000_003
_SHOWN: Final = 5

ILLEGAL: Final = """case
    when ends > 1 then 'ended more than once'
    when ended_event is not null and last_event > ended_event
        then 'something happened after its end'
    when coalesce(leases, 0) - coalesce(lease_ends, 0) not in (0, 1)
        then 'leases and their ends do not alternate'
    when ended_event is not null and coalesce(leases, 0) <> coalesce(lease_ends, 0)
        then 'ended while it was leased'
    when outcome = 1 and coalesce(leases, 0) = 0 then 'done without a start'
    when started_ms < enqueued_ms then 'started before it was enqueued'
end"""
"""Why a job can't be true, as a column of what is known of it; null if it can."""
ORPHAN: Final = "case when enqueued_ms is null then 'never enqueued' end"
"""Only where history was read from its first event on."""


class Read(NamedTuple):
    """What of a partition's history is in a batch."""

    first: int
    before: int
    since_ms: int
    """When the first of it happened."""
    at_ms: int
    """When the last of it did."""


def continuity(events: "DataFrame", vector: dict[str, int]) -> dict[str, Read]:
    """Raises HistoryGap unless the events follow those before, each of them once."""
    from pyspark.sql import functions as F

    found = (
        events.where(F.col("type") != COUNT)
        .groupBy("partition")
        .agg(
            F.count("*").alias("count"),
            F.min("event").alias("first"),
            F.max("event").alias("last"),
            F.min("at_ms").alias("since_ms"),
            F.max("at_ms").alias("at_ms"),
            F.sum("event").alias("sum"),
            F.sum(F.expr(f"pmod(event * event, {_MODULUS})")).alias("squares"),
        )
        .collect()
    )
    reads = {}
    for row in found:
        first, last = row["first"], row["last"]
        wanted = vector.get(row["partition"], first)
        if first != wanted:
            raise HistoryGap(
                f"partition {row['partition']}: event {wanted} should be next, "
                f"but the first that came is {first}"
            )
        is_each_once = (
            row["count"] == last - first + 1
            and row["sum"] == (first + last) * row["count"] // 2
            and row["squares"] == _squares(first, last)
        )
        if not is_each_once:
            raise HistoryGap(
                f"partition {row['partition']}: of the events {first} to {last} some "
                f"are missing or came twice ({row['count']} came)"
            )
        reads[row["partition"]] = Read(first, last + 1, row["since_ms"], row["at_ms"])
    return reads


def _squares(first: int, last: int) -> int:
    import numpy as np

    numbers: Any = np.arange(first, last + 1, dtype=np.int64) % _MODULUS
    return int((numbers * numbers % _MODULUS).sum())


def illegal(known: "DataFrame", whole: list[str]) -> "DataFrame":
    """Jobs that can't be true, each with the rule that it breaks."""
    from pyspark.sql import functions as F

    orphan = F.when(F.col("partition").isin(whole), F.expr(ORPHAN))
    broken = F.coalesce(F.expr(ILLEGAL), orphan)
    return known.withColumn("broken", broken).where("broken is not null")


def refuse(broken: "DataFrame") -> None:
    """Raises GateClosed if there are any, and names some of them."""
    rows = broken.select("partition", "job", "generation", "broken").limit(_SHOWN + 1)
    found = rows.collect()
    if not found:
        return
    shown = "; ".join(
        f"job {row['partition']}_{row['job']} {row['broken']}" for row in found[:_SHOWN]
    )
    more = " and more" if len(found) > _SHOWN else ""
    raise GateClosed(f"jobs that can't be true: {shown}{more}")


def conservation(
    events: "DataFrame", counts: dict[str, dict[str, Counted]], whole: list[str]
) -> dict[str, dict[str, Counted]]:
    """The counts after the batch; raises GateClosed if the partition counted otherwise."""
    from pyspark.sql import functions as F

    found = (
        events.groupBy("partition", "queue")
        .agg(
            F.count_if(F.expr("type in ('enqueue', 'redrive')")).alias("opened"),
            F.count_if(F.expr(ENDS)).alias("ended"),
            F.count_if(F.expr("type in ('bury', 'expire')")).alias("died"),
            F.count_if(F.expr("type in ('redrive', 'discard')")).alias("undead"),
            F.max_by(
                F.struct("ready", "scheduled", "leased", "waiting", "dead"),
                F.when(F.col("type") == COUNT, F.col("event")),
            ).alias("told"),
        )
        .collect()
    )
    after = {partition: dict(queues) for partition, queues in counts.items()}
    for row in found:
        queues = after.setdefault(row["partition"], {})
        old = queues.get(row["queue"], Counted(is_whole=row["partition"] in whole))
        new = Counted(
            old.open + row["opened"] - row["ended"],
            old.dead + row["died"] - row["undead"],
            old.is_whole,
        )
        queues[row["queue"]] = new
        told = row["told"]
        if told is None or not new.is_whole:
            continue
        open_jobs = told["ready"] + told["scheduled"] + told["leased"] + told["waiting"]
        if (open_jobs, told["dead"]) != (new.open, new.dead):
            raise GateClosed(
                f"queue {row['queue']!r}: its events add up to {new.open} open and "
                f"{new.dead} dead jobs, but the server counted {open_jobs} and "
                f"{told['dead']}"
            )
    return after
