"""Dead letters in the lake: what they have in common, and the way back for some.

The lake knows who died of what, the server who is still dead. Whoever is put back is
chosen here and checked there, by its number and by when it died.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from headway.client import dead, history
from headway.client.blocking import Client
from headway.spark.errors_sql import error_line
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Published
from headway.wire.operations import Operation
from headway.wire.values import BATCH_MAX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tell = Callable[[str], None]
SAMPLE_LENGTH: Final = 1_000
POLL_S: Final = 0.05
POLL_MAX_S: Final = 1.0
_ORDER: Final = ("ended_at", "partition", "job")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of which all of this holds; None is any."""

    queue: str | None = None
    kind: str | None = None
    tenant: str | None = None
    error: str | None = None
    """Contained in the error's line, as `groups` shows it."""
    since_ms: int | None = None
    until_ms: int | None = None
    """This moment is not in the range."""


class Group(NamedTuple):
    """Dead letters of one queue and kind that died of the same."""

    queue: str
    kind: str
    reason: str
    error: str
    jobs: int
    redriven: int
    """Of them; they had another life since."""
    tenants: int
    first_at: datetime
    last_at: datetime
    sample: str
    """The id of the last one."""
    text: str
    """What it died of, at length."""


class Letter(NamedTuple):
    """One dead letter."""

    partition: str
    id: str
    queue: str
    kind: str
    tenant: str
    generation: int
    ended_at: datetime
    reason: str
    error: str


class Redriven(NamedTuple):
    """What became of a selection."""

    chosen: int = 0
    back: int = 0
    """Put back; in a dry run, those that would be."""
    moved_on: int = 0
    """Not dead any more, or dead for another time."""
    elsewhere: int = 0
    """Of a partition that this server does not have."""


class Mine:
    """The dead letters of a lake as it is published now."""

    def __init__(self, spark: "SparkSession", lake: Lake) -> None:
        self._spark = spark
        self._lake = lake
        self._record: Published = lake.published()

    def groups(self, selection: Selection, most: int) -> list[Group]:
        """Those with the most jobs first."""
        from pyspark.sql import functions as F

        found = (
            self._dead(selection)
            .groupBy("queue", "kind", "reason", "error")
            .agg(
                F.count("*").alias("jobs"),
                F.count_if("is_redriven").alias("redriven"),
                F.count_distinct("tenant").alias("tenants"),
                F.min("ended_at").alias("first_at"),
                F.max("ended_at").alias("last_at"),
                F.max_by("id", F.struct(*_ORDER)).alias("sample"),
                F.max_by("text", F.struct(*_ORDER)).alias("text"),
            )
            .orderBy(F.desc("jobs"), "queue", "kind", "reason", "error")
            .limit(most)
        )
        return [Group(*row) for row in found.select(*Group._fields).collect()]

    def letters(self, selection: Selection, most: int) -> Iterator[Letter]:
        """The oldest that had no other life since, queue by queue."""
        found = self._dead(selection).where("not is_redriven")
        chosen = found.orderBy(*_ORDER).limit(most)
        told = chosen.orderBy("partition", "queue", *_ORDER).select(*Letter._fields)
        return (Letter(*row) for row in told.toLocalIterator())

    def redrive(
        self,
        client: Client,
        letters: Iterator[Letter],
        *,
        rate: float | None,
        is_dry: bool,
        tell: Tell,
    ) -> Redriven:
        """Puts them back, page by page; repeated, it finds nothing left to do."""
        ours = {one.partition for one in client.ask(history.histories())}
        # What died again after the lake was written has died of something else.
        before_ms = self._record.at_ms + 1
        counted = Redriven()
        for (partition, queue), ids in _pages(letters):
            back = elsewhere = 0
            if partition not in ours:
                elsewhere = len(ids)
            elif is_dry:
                back = client.ask(dead.preview(queue, ids, before_ms)).matched
            else:
                started = client.ask(dead.redrive(queue, ids, before_ms, rate))
                tell(f"operation {started.id}: {len(ids):,} jobs of {queue}")
                back = _ended(client, started).done
            counted = Redriven(
                counted.chosen + len(ids),
                counted.back + back,
                counted.moved_on + len(ids) - back - elsewhere,
                counted.elsewhere + elsewhere,
            )
        return counted

    def _dead(self, selection: Selection) -> "DataFrame":
        from pyspark.sql import functions as F

        jobs = self._read("silver.jobs")
        lives = [
            frame.where("generation > 0").select("partition", "job", "generation")
            for frame in (jobs, self._read("silver.open_jobs"))
        ]
        newest = (
            lives[0]
            .unionByName(lives[1])
            .groupBy("partition", "job")
            .agg(F.max("generation").alias("newest"))
        )
        found = jobs.where("outcome in ('dead', 'expired')")
        for name in ("queue", "kind", "tenant"):
            value = getattr(selection, name)
            if value is not None:
                found = found.where(F.col(name) == value)
        if selection.since_ms is not None:
            since = F.timestamp_millis(F.lit(selection.since_ms))
            found = found.where(F.col("ended_at") >= since)
        if selection.until_ms is not None:
            until = F.timestamp_millis(F.lit(selection.until_ms))
            found = found.where(F.col("ended_at") < until)
        told = (
            found.join(newest, ["partition", "job"], "left")
            .withColumn("error", error_line(F.col("last_error")))
            .withColumn("reason", F.coalesce("last_reason", "outcome"))
            .withColumn("id", F.concat_ws("_", "partition", "job"))
            .withColumn("text", F.substring("last_error", 1, SAMPLE_LENGTH))
            .withColumn("is_redriven", F.expr("coalesce(newest, 0) > generation"))
        )
        if selection.error is not None:
            told = told.where(F.contains("error", F.lit(selection.error)))
        return told

    def _read(self, name: str) -> "DataFrame":
        """All tables as of the same batch."""
        version = self._record.versions.get(name)
        table = self._lake[name]
        if version is None:
            return table.empty(self._spark)
        return table.read(self._spark, version)


def _pages(
    letters: Iterator[Letter],
) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Ids of one queue that follow one another, so many as one request takes."""
    for whose, some in groupby(letters, lambda one: (one.partition, one.queue)):
        ids = (one.id for one in some)
        while page := list(islice(ids, BATCH_MAX)):
            yield whose, page


def _ended(client: Client, operation: Operation) -> Operation:
    pause_s = POLL_S
    while operation.state == "running":
        time.sleep(pause_s)
        pause_s = min(POLL_MAX_S, pause_s * 1.5)
        operation = client.ask(dead.operation(operation.id))
    return operation
