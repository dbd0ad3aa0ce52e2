"""Jobs as a source: what the server's index finds, a queue a partition.

Jobs are those that were enqueued when it was planned; their states are those of the
moment at which their page was read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from headway.client import search
from headway.core.states import JobState
from headway.spark.columns import arrow_schema
from headway.spark.columns_source import JOBS
from headway.spark.source.options import Options
from headway.wire.jobs import Found, JobShown
from headway.wire.values import QUEUE

OPEN: Final = ("scheduled", "ready", "leased", "waiting")
"""States of the backlog."""
_SCHEMA: Final = arrow_schema(JOBS)
_STATES: Final = tuple(state.value for state in JobState)
_QUEUE: Final = re.compile(QUEUE)
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{0,128}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = {
    "enqueued_at": "enqueued_ms",
    "run_at": "run_at_ms",
    "ended_at": "ended_ms",
    "lease_until": "lease_until_ms",
}


class Wanted(msgspec.Struct):
    """Which jobs are wanted, as the server is asked for them."""

    queues: frozenset[str] | None = None
    """None means all of them."""
    states: frozenset[str] = frozenset(_STATES)
    tenant: str | None = None
    kind: str | None = None
    since_ms: int = 0
    until_ms: int | None = None
    """Exclusive."""
    is_nothing: bool = False
    """Two filters contradict each other."""

    def take(self, given: Filter) -> bool:
        """Whether the server sees to the filter, so that nobody has to look again."""
        match given:
            case EqualTo(attribute=(name,), value=str(value)):
                return self._equal(name, frozenset([value]))
            case In(attribute=(("queue" | "state") as name,), value=values):
                is_plain = all(isinstance(value, str) for value in values)
                return is_plain and self._equal(name, frozenset(values))
            case _:
                self._narrow(given)
                return False

    def _equal(self, name: str, values: frozenset[str]) -> bool:
        """What no queue, state or name can be is left to Spark, which finds nothing."""
        if name == "queue" and all(map(_QUEUE.fullmatch, values)):
            self.queues = values if self.queues is None else self.queues & values
            return True
        if name == "state" and values <= frozenset(_STATES):
            self.states &= values
            return True
        (value, *others) = values
        if name not in ("tenant", "kind") or others or not _NAME.fullmatch(value):
            return False
        self.is_nothing |= getattr(self, name) not in (None, value)
        setattr(self, name, value)
        return True

    def _narrow(self, given: Filter) -> None:
        """Spark looks at times again; the server need not send what lies outside."""
        match given:
            case GreaterThanOrEqual(attribute=("enqueued_at",), value=datetime() as at):
                self.since_ms = max(self.since_ms, _us(at) // 1_000)
            case GreaterThan(attribute=("enqueued_at",), value=datetime() as at):
                self.since_ms = max(self.since_ms, _us(at) // 1_000)
            case LessThan(attribute=("enqueued_at",), value=datetime() as at):
                self._before(-(-_us(at) // 1_000))
            case LessThanOrEqual(attribute=("enqueued_at",), value=datetime() as at):
                self._before(_us(at) // 1_000 + 1)

    def _before(self, until_ms: int) -> None:
        known_ms = self.until_ms
        self.until_ms = until_ms if known_ms is None else min(known_ms, until_ms)

    def query(self, queue: str, indexed_ms: int) -> dict[str, str | int]:
        """Nothing that came after the index was first looked at."""
        until_ms = indexed_ms + 1
        if self.until_ms is not None:
            until_ms = min(until_ms, self.until_ms)
        query: dict[str, str | int] = {
            "queue": queue,
            "order": "oldest",
            "since": max(self.since_ms, 0),
            "until": max(until_ms, 0),
        }
        if self.states != frozenset(_STATES):
            query["state"] = ",".join(sorted(self.states))
        if self.tenant is not None:
            query["tenant"] = self.tenant
        if self.kind is not None:
            query["kind"] = self.kind
        return query


class Slice(InputPartition):
    """The jobs of one queue that one task reads."""

    def __init__(self, query: Mapping[str, str | int]) -> None:
        super().__init__(tuple(query.items()))
        self.query = dict(query)


class JobsReader(DataSourceReader):
    """Without filters: all that is asked for is read, and Spark looks at it."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.wanted = Wanted()
        if options.queue is not None:
            self.wanted.queues = frozenset([options.queue])
        if options.table == "backlog":
            self.wanted.states = frozenset(OPEN)

    def partitions(self) -> Sequence[InputPartition]:
        wanted = self.wanted
        if wanted.is_nothing or not wanted.states:
            return []
        client = self._options.client()
        try:
            names = wanted.queues
            if names is None:
                names = frozenset(search.queues(client))
            slices: list[InputPartition] = []
            for name in sorted(names):
                # How far the index is now: what it learns later is another's to read.
                seen = client.ask(search.search({"queue": name, "limit": 1}))
                slices.append(Slice(wanted.query(name, seen.indexed_ms)))
        finally:
            client.close()
        return slices

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        client = self._options.client()
        try:
            for page in search.pages(client, partition.query):
                yield batch_of(page)
        finally:
            client.close()


class FilteredJobsReader(JobsReader):
    """With filters: Spark must allow it, and fails if it does not."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        return iter([one for one in filters if not self.wanted.take(one)])


def batch_of(page: Found) -> pa.RecordBatch:
    columns = {name: [_cell(name, job) for job in page.jobs] for name in _SCHEMA.names}
    columns["indexed_to"] = [page.indexed_to] * len(page.jobs)
    return pa.RecordBatch.from_pydict(columns, schema=_SCHEMA)


def _cell(name: str, job: JobShown) -> Any:
    if name in _TIMES:
        at_ms = getattr(job, _TIMES[name])
        return None if at_ms is None else at_ms * 1_000
    match name:
        case "reason":
            return job.errors[-1].reason if job.errors else None
        case "error":
            return job.errors[-1].text if job.errors else None
        case "labels":
            return None if job.labels is None else list(job.labels.items())
        case "indexed_to":
            return None
    return getattr(job, name)


def _us(at: datetime) -> int:
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(microseconds=1)
