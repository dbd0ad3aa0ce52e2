"""The sink: tasks stage their rows on the server, and the driver publishes them once.

What a task sends is known by write, partition and attempt. Only attempts that the driver
names count, so that retries, speculation and whole runs may repeat as they like.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from headway.client import writes
from headway.client.blocking import Client
from headway.client.errors import ClientFailure
from headway.core.errors import BadValue, RuleBroken
from headway.spark.source.encode import jobs
from headway.spark.source.options import Options
from headway.wire.writes import Winner

CHUNK_BYTES: Final = 4 << 20
"""A chunk is sent when it is as large, or has as many jobs as the option says."""
BUFFER_BYTES: Final = 32 << 20
"""What a task keeps for all queues together; then the largest chunk is sent."""
_QUERY: Final = "sql.streaming.queryId"
_BATCH: Final = "streaming.sql.batchId"


@dataclass
class Sent(WriterCommitMessage):
    """What one attempt at a partition has staged."""

    write_id: str
    partition: int
    attempt: str
    chunks: int
    jobs: int
    series: str | None = None
    number: int = 0


class Chunks:
    """Gathers jobs by queue, and sends them in chunks."""

    def __init__(self, client: Client, options: Options, sent: Sent) -> None:
        self._client = client
        self._most = options.chunk_jobs
        self._sent = sent
        self._rows: dict[str, list[bytes]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self.is_published = False
        """Somebody was here before: all of it is accepted already."""

    def add(self, queue: str, row: bytes) -> None:
        rows = self._rows.setdefault(queue, [])
        rows.append(row)
        self._bytes[queue] = size = self._bytes.get(queue, 0) + len(row) + 1
        self._total += len(row) + 1
        if len(rows) >= self._most or size >= CHUNK_BYTES:
            self._send(queue)
        elif self._total >= BUFFER_BYTES:
            self._send(max(self._bytes, key=self._bytes.__getitem__))

    def finish(self) -> None:
        for queue in list(self._rows):
            self._send(queue)

    def _send(self, queue: str) -> None:
        rows = self._rows.pop(queue)
        self._total -= self._bytes.pop(queue)
        if self.is_published:
            return
        sent = self._sent
        place = (sent.partition, sent.attempt, sent.chunks)
        body = b"[" + b",".join(rows) + b"]"
        shown = self._client.ask(writes.put(sent.write_id, place, queue, body))
        self.is_published = shown.state != "staged"
        sent.chunks += 1
        sent.jobs += len(rows)


def stage(options: Options, batches: Iterator[pa.RecordBatch], sent: Sent) -> Sent:
    """Sends all rows of a partition."""
    client = options.client()
    try:
        chunks = Chunks(client, options, sent)
        for batch in batches:
            if not chunks.is_published:
                for queue, row in jobs(batch, options.queue):
                    chunks.add(queue, row)
        chunks.finish()
    finally:
        client.close()
    return sent


def publish(options: Options, messages: Sequence[WriterCommitMessage | None]) -> None:
    """One call, which the server knows by the name of the write."""
    sent = [one for one in messages if isinstance(one, Sent)]
    if not sent:
        return
    first = sent[0]
    winners = [Winner(one.partition, one.attempt, one.chunks) for one in sent]
    count = sum(one.jobs for one in sent)
    client = options.client()
    try:
        client.ask(
            writes.publish(first.write_id, winners, count, first.series, first.number)
        )
    finally:
        client.close()


def discard(options: Options, write_id: str) -> None:
    """What is published stays, and what can't be told now expires on the server."""
    client = options.client()
    try:
        client.ask(writes.discard(write_id))
    except (RuleBroken, ClientFailure):
        # Nothing was staged, or nobody answers. The failure that led here is told.
        return
    finally:
        client.close()


def _task() -> tuple[TaskContext, int, str]:
    """Attempts are told apart over all runs: numbers begin anew with each of them."""
    task = TaskContext.get()
    assert task is not None
    attempt = f"{task.taskAttemptId()}-{secrets.token_hex(6)}"
    return task, task.partitionId(), attempt


class JobWriter(DataSourceArrowWriter):
    """A batch. Its name is the user's, or made here: once for all tasks and retries."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._write_id = options.write_id or f"spark-{uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        _, partition, attempt = _task()
        sent = Sent(self._write_id, partition, attempt, 0, 0)
        return stage(self._options, iterator, sent)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        publish(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Comes after a commit that failed, too: the server knows what it came to."""
        discard(self._options, self._write_id)


class JobStreamWriter(DataSourceStreamArrowWriter):
    """A stream: a batch is known by its query and its number, however often it comes."""

    def __init__(self, options: Options) -> None:
        if options.write_id is not None:
            rule = "a stream names its writes by itself"
            raise BadValue("writeId", options.write_id, rule)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        task, partition, attempt = _task()
        query, batch = task.getLocalProperty(_QUERY), task.getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise BadValue("stream", "", "this task does not know its query and batch")
        write_id = f"{query}.{batch}"
        sent = Sent(write_id, partition, attempt, 0, 0, query, int(batch))
        return stage(self._options, iterator, sent)

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        publish(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        for write_id in {one.write_id for one in messages if isinstance(one, Sent)}:
            discard(self._options, write_id)
