"""What a batch has to be before it is published.

Events are without gaps and none comes twice; jobs go the ways that jobs can go; and
what was enqueued is what has ended and what is open, as the partition itself counted.
"""

from collections.abc import Sequence
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


class Tally(NamedTuple):
    """What a batch has of a queue in a partition; of no queue if that is None."""

    partition: str
    queue: str | None
    events: int
    first: int
    last: int
    since_ms: int
    at_ms: int
    sum: int
    squares: int
    opened: int
    ended: int
    died: int
    undead: int
    found: int
    """Of the conditions that were asked for those that hold for an event, as bits."""


def tallies(events: "DataFrame", conditions: Sequence[str] = ()) -> list[Tally]:
    """One pass over all events; numbers alone, so that nothing is sorted."""
    from pyspark.sql import functions as F

    bits = [f"if({one}, {1 << place}L, 0L)" for place, one in enumerate(conditions)]
    found = (
        events.where(F.col("type") != COUNT)
        .groupBy("partition", "queue")
        .agg(
            F.count("*").alias("events"),
            F.min("event").alias("first"),
            F.max("event").alias("last"),
            F.min("at_ms").alias("since_ms"),
            F.max("at_ms").alias("at_ms"),
            F.sum("event").alias("sum"),
            F.sum(F.expr(f"pmod(event * event, {_MODULUS})")).alias("squares"),
            F.count_if(F.expr("type in ('enqueue', 'redrive')")).alias("opened"),
            F.count_if(F.expr(ENDS)).alias("ended"),
            F.count_if(F.expr("type in ('bury', 'expire')")).alias("died"),
            F.count_if(F.expr("type in ('redrive', 'discard')")).alias("undead"),
            F.bit_or(F.expr(" | ".join(bits) or "0L")).alias("found"),
        )
        .collect()
    )
    return [Tally(*row) for row in found]


def found(tallies: list[Tally], conditions: Sequence[str]) -> set[str]:
    """Those of the conditions that hold for any event."""
    bits = 0
    for tally in tallies:
        bits |= tally.found
    return {one for place, one in enumerate(conditions) if bits >> place & 1}


def continuity(tallies: list[Tally], vector: dict[str, int]) -> dict[str, Read]:
    """Raises HistoryGap unless the events follow those before, each of them once."""
    by_partition: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_partition.setdefault(tally.partition, []).append(tally)
    reads = {}
    for name, found in by_partition.items():
        first = min(one.first for one in found)
        last = max(one.last for one in found)
        wanted = vector.get(name, first)
        if first != wanted:
            raise HistoryGap(
                f"partition {name}: event {wanted} should be next, "
                f"but the first that came is {first}"
            )
        count = sum(one.events for one in found)
        is_each_once = (
            count == last - first + 1
            and sum(one.sum for one in found) == (first + last) * count // 2
            and sum(one.squares for one in found) == _squares(first, last)
        )
        if not is_each_once:
            raise HistoryGap(
                f"partition {name}: of the events {first} to {last} some "
                f"are missing or came twice ({count} came)"
            )
        since_ms = min(one.since_ms for one in found)
        at_ms = max(one.at_ms for one in found)
        reads[name] = Read(first, last + 1, since_ms, at_ms)
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


def counted(events: "DataFrame") -> dict[tuple[str, str], tuple[int, int]]:
    """What the server counted last: open and dead jobs, by partition and queue."""
    from pyspark.sql import functions as F

    open_jobs = F.expr("ready + scheduled + leased + waiting").alias("open")
    found = (
        events.where(F.col("type") == COUNT)
        .groupBy("partition", "queue")
        .agg(F.max_by(F.struct(open_jobs, "dead"), "event"))
        .collect()
    )
    return {(partition, queue): tuple(told) for partition, queue, told in found}


def conservation(
    tallies: list[Tally],
    told: dict[tuple[str, str], tuple[int, int]],
    counts: dict[str, dict[str, Counted]],
    whole: list[str],
) -> dict[str, dict[str, Counted]]:
    """The counts after the batch; raises GateClosed if the partition counted otherwise."""
    after = {partition: dict(queues) for partition, queues in counts.items()}
    for one in tallies:
        if one.queue is None:
            continue
        queues = after.setdefault(one.partition, {})
        old = queues.get(one.queue, Counted(is_whole=one.partition in whole))
        new = Counted(
            old.open + one.opened - one.ended,
            old.dead + one.died - one.undead,
            old.is_whole,
        )
        queues[one.queue] = new
        server = told.get((one.partition, one.queue))
        if server is None or not new.is_whole or server == (new.open, new.dead):
            continue
        raise GateClosed(
            f"queue {one.queue!r}: its events add up to {new.open} open and "
            f"{new.dead} dead jobs, but the server counted {server[0]} and {server[1]}"
        )
    return after
