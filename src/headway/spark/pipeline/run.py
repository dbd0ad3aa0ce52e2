"""Runs the pipeline: a stream of history into batches, once or again and again."""

from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from headway.client import history
from headway.client.blocking import Client
from headway.spark.errors import HistoryGap, PipelineError, failure_of
from headway.spark.lake.delta import told
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Published
from headway.spark.pipeline.batch import Batch, Tell
from headway.spark.source.options import EVENTS_PER_BATCH, EVENTS_PER_TASK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BRONZE = "bronze.events"
CHECKPOINT = "_checkpoint"
READER = "pipeline"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    token: str | None = None
    reader: str = READER
    """The name under which the server keeps history for this lake."""
    events_per_batch: int = EVENTS_PER_BATCH
    events_per_task: int | None = None
    """None means two tasks for each core of the cluster, if they are large enough."""
    every_s: float | None = None
    """None means: what there is now, and then it ends."""


class Pipeline:
    """One lake, fed from one server."""

    def __init__(
        self,
        spark: "SparkSession",
        lake: Lake,
        settings: Settings,
        tell: Tell = lambda _: None,
        published: Callable[[Published], None] = lambda _: None,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._settings = settings
        self._tell = tell
        self._published = published
        self.record = lake.ledger.last()
        self._failure: PipelineError | None = None

    def run(self) -> Published:
        """Until everything is published that was there at the start, or for good."""
        from pyspark.errors import StreamingQueryException

        self._tell("heal")
        self._lake.heal(self.record)
        settings = self._settings
        self._check()
        self._follow()
        reader = (
            self._spark.readStream.format("headway")
            .option("url", settings.url)
            .option("starts", msgspec.json.encode(self.record.vector).decode())
            .option("eventsPerBatch", settings.events_per_batch)
            .option("eventsPerTask", self._events_per_task())
            .option("stageTo", self._lake.place.root)
        )
        if settings.token is not None:
            reader = reader.option("token", settings.token)
        writer = (
            reader.load()
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", self._lake.place.under(CHECKPOINT))
        )
        if settings.every_s is None:
            query = writer.trigger(availableNow=True).start()
        else:
            query = writer.trigger(processingTime=f"{settings.every_s} seconds").start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if self._failure is not None:
                raise self._failure from None
            raise failure_of(error) from error
        finally:
            query.stop()
        return self.record

    def _events_per_task(self) -> int:
        """Many, since jobs that begin in one task and end in another cost more."""
        settings = self._settings
        if settings.events_per_task is not None:
            return settings.events_per_task
        tasks = 2 * int(self._spark.sparkContext.defaultParallelism)
        return max(EVENTS_PER_TASK, settings.events_per_batch // tasks)

    def _batch(self, arrived: "DataFrame", _: int) -> None:
        """Spark's own number of a batch is of no meaning here."""
        batch = Batch(self._spark, self._lake, self.record, self._tell, self._mark)
        try:
            self._tell(f"write {BRONZE}")
            record = batch.run(told(arrived))
        except PipelineError as error:
            # What Spark makes of it says less, and on a hundred lines.
            self._failure = error
            raise
        if record is not None:
            self.record = record
            self._follow()
            self._published(record)

    def _check(self) -> None:
        """Raises HistoryGap unless the server goes on where the tables end."""
        url = self._settings.url
        with closing(self._client()) as client:
            for one in client.ask(history.histories()):
                position = self.record.vector.get(one.partition)
                if position is None:
                    continue
                if position < one.first:
                    raise HistoryGap(
                        f"partition {one.partition}: events {position} to "
                        f"{one.first - 1} were dropped by {url} before they were read"
                    )
                known = self.record.marks.get(one.partition)
                is_same = position <= one.next
                if is_same and known is not None and position > one.first:
                    is_same = self._mark(one.partition, position - 1) == known
                if not is_same:
                    raise HistoryGap(
                        f"partition {one.partition}: {url} does not go on at event "
                        f"{position}, where the tables end: it is another server, or "
                        "an older backup"
                    )

    def _mark(self, partition: str, event: int) -> str:
        """What the commit is that holds this event."""
        with closing(self._client()) as client:
            (commit, *_) = client.ask(history.page(partition, event, event + 1, 1))
        told = f"{commit.first} {commit.count} {commit.at_ms} ".encode() + commit.blob
        return blake2b(told, digest_size=16).hexdigest()

    def _follow(self) -> None:
        """The server may drop what is published here, and nothing else."""
        name = self._settings.reader
        with closing(self._client()) as client:
            for one in client.ask(history.histories()):
                position = self.record.vector.get(one.partition, one.first)
                client.ask(history.follow(name, one.partition, position))

    def _client(self) -> Client:
        return Client(self._settings.url, self._settings.token)
