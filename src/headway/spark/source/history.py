"""History as a source: by partition and number, so that it can be read again."""

import gc
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from headway.client import history
from headway.spark.decode import piles
from headway.spark.errors import HistoryGap
from headway.spark.source.options import Options
from headway.spark.source.staging import staged
from headway.wire.history import Commit

_SLACK: Final = 8
"""A batch takes up to an eighth more than was asked for, if nothing is left then."""


class Range(InputPartition):
    """Events of one partition that one task reads."""

    def __init__(self, partition: str, first: int, before: int) -> None:
        super().__init__((partition, first, before))
        self.partition = partition
        self.first = first
        self.before = before


def read_range(options: Options, part: Range) -> Iterator[list[pa.RecordBatch]]:
    """Fetched page by page and taken apart; raises HistoryGap if some are not there."""
    client = options.client()
    read = part.first

    def fetched() -> Iterator[Commit]:
        nonlocal read
        for commit in history.commits(client, part.partition, part.first, part.before):
            if commit.first > read:
                raise HistoryGap(
                    f"partition {part.partition}: event {read} is missing, "
                    f"{commit.first} follows"
                )
            read = commit.first + commit.count
            yield commit

    was_on = gc.isenabled()
    # Millions of short lists and no cycle among them: the collector costs a third.
    gc.disable()
    try:
        yield from piles(part.partition, fetched(), part.first, part.before)
    finally:
        if was_on:
            gc.enable()
        client.close()
    if read < part.before:
        raise HistoryGap(
            f"partition {part.partition}: event {read} is missing at the end"
        )


def cut(partition: str, first: int, before: int, size: int) -> list[Range]:
    """The events in pieces of a task's size."""
    return [
        Range(partition, start, min(start + size, before))
        for start in range(first, before, size)
    ]


class HistoryReader(DataSourceReader):
    """A batch: what there is when it is planned, or the range that was asked for."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        client = options.client()
        try:
            found = client.ask(history.histories())
        finally:
            client.close()
        ranges: list[InputPartition] = []
        for one in found:
            first = (
                max(options.first, one.first) if options.first == 1 else options.first
            )
            before = (
                one.next if options.before is None else min(options.before, one.next)
            )
            ranges += cut(one.partition, first, before, options.events_per_task)
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        return chain.from_iterable(read_range(self._options, partition))


class HistoryStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream: offsets are the next event of each partition."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._ends: dict[str, int] | None = None
        """Where an availableNow run stops."""

    def initialOffset(self) -> dict[str, int]:
        starts = dict(self._options.starts)
        for partition, (first, _) in self._there().items():
            starts.setdefault(partition, first)
        return starts

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends = {name: before for name, (_, before) in self._there().items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.events_per_batch)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        ends = self._ends
        if ends is None:
            ends = {name: before for name, (_, before) in self._there().items()}
        left = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        # For what little is left: a batch of its own would cost as much as a million.
        slack = 0 if left is None else left // _SLACK
        offset = dict(start)
        for partition, end in sorted(ends.items()):
            first = offset.get(partition, 1)
            before = end
            if left is not None:
                if first + left + slack < end:
                    before = self._whole(partition, first + left)
                taken = max(0, before - first)
                slack -= min(slack, max(0, taken - left))
                left = max(0, left - taken)
            offset[partition] = max(first, before)
        return offset

    def _whole(self, partition: str, before: int) -> int:
        """The end of the commit that holds the event before this one.

        What a partition counted is known as of the end of a commit.
        """
        client = self._options.client()
        try:
            found = client.ask(history.page(partition, before - 1, before, 1))
        finally:
            client.close()
        return found[0].first + found[0].count if found else before

    def partitions(
        self, start: dict[str, int], end: dict[str, int]
    ) -> Sequence[InputPartition]:
        options = self._options
        ranges: list[InputPartition] = []
        for partition, before in sorted(end.items()):
            # A batch that was planned before the last stop may be known already.
            first = max(start.get(partition, 1), options.starts.get(partition, 1))
            ranges += cut(partition, first, before, options.events_per_task)
        return ranges or [Range("", 1, 1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Range)
        if partition.first >= partition.before:
            return iter(())
        decoded = read_range(self._options, partition)
        root = self._options.stage_to
        return chain.from_iterable(decoded) if root is None else staged(root, decoded)

    def commit(self, end: dict[str, int]) -> None:
        """Comes a batch late: good enough to say what need not be kept any more."""
        name = self._options.reader
        if name is None:
            return
        client = self._options.client()
        try:
            for partition, position in end.items():
                client.ask(history.follow(name, partition, position))
        finally:
            client.close()

    def _there(self) -> dict[str, tuple[int, int]]:
        client = self._options.client()
        try:
            found = client.ask(history.histories())
        finally:
            client.close()
        return {one.partition: (one.first, one.next) for one in found}
