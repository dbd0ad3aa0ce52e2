"""History straight into files: a task writes what it decoded and tells of the files only.

The rows do not pass through the JVM: on the way of an event to its table that would cost
more than its decoding. Jobs whose whole life a task has seen go to silver from here, too.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from headway.spark.columns import EVENTS, Column, Columns, arrow_schema
from headway.spark.lake.delta import WRITE, Place, filesystem, stats_of
from headway.spark.source.lives import lives

BRONZE: Final = "bronze.events"
JOBS: Final = "silver.jobs"
ATTEMPTS: Final = "silver.attempts"
REST: Final = "rest"
"""Events of jobs that are not whole: beside those of bronze, and part of no table."""

STAGED: Final[Columns] = {
    "table": Column("string", "whose file it is; `rest` for what is of no table"),
    "path": Column("string", "the file, as its table calls it"),
    "size": Column("bigint", "its bytes"),
    "stats": Column("string", "what the table's log says of its rows, as JSON"),
}
"""What a stream of history yields that is written to files."""
GROUP_ROWS: Final = 20_000
"""Types with fewer rows share a row group: readers of one type skip the others."""
CHUNK: Final = 500_000
"""Events that a task holds in memory: some 650 MB with all that is made of them."""
_SCHEMA: Final = arrow_schema(EVENTS)


def staged(
    root: str, decoded: Iterable[list[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Writes files under the lake's root; a row tells of each, or none of no rows.

    What was decoded comes in the piles that `decode.piles` makes.
    """
    files = _Files(root)
    rest = _SCHEMA.empty_table()
    for by_type in _chunks(decoded):
        found = lives(by_type, rest)
        for group in _groups(by_type):
            files.add(BRONZE, group)
        files.add(JOBS, found.jobs)
        files.add(ATTEMPTS, found.attempts)
        rest = found.rest
        # What is not whole waits for what follows, up to a chunk's worth of it.
        if rest.num_rows > CHUNK:
            files.add(REST, rest)
            rest = _SCHEMA.empty_table()
        del by_type, found  # or two chunks would be in memory
    files.add(REST, rest)
    yield from files.closed()


def _chunks(
    decoded: Iterable[list[pa.RecordBatch]],
) -> Iterator[dict[str, list[pa.RecordBatch]]]:
    """The events by their types, as many at a time as are kept in memory.

    What happened between the first and the last event of a chunk is all in it, or a
    job could be taken for whole that is not.
    """
    by_type: dict[str, list[pa.RecordBatch]] = {}
    count = 0
    for pile in decoded:
        for batch in pile:
            by_type.setdefault(batch.column("type")[0].as_py(), []).append(batch)
            count += batch.num_rows
        if count >= CHUNK:
            yield by_type
            by_type, count = {}, 0
    if by_type:
        yield by_type


def home(name: str) -> str:
    """The table in whose folder the files of this name are."""
    return BRONZE if name == REST else name


class _Files:
    """The files of one task: one for each table that it has rows for."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._open: dict[str, _File] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        """As a group of their own."""
        if not rows.num_rows:
            return
        if table not in self._open:
            self._open[table] = _File(self._root, table, rows.schema)
        self._open[table].writer.write_table(rows, row_group_size=rows.num_rows)

    def closed(self) -> Iterator[pa.RecordBatch]:
        for one in self._open.values():
            yield one.closed()


class _File:
    """A file that is being written."""

    def __init__(self, root: str, table: str, schema: pa.Schema) -> None:
        self._table = table
        self._files, path = filesystem(Place(root).table(home(table)))
        self._name = f"{WRITE}={uuid.uuid4().hex}/part-0.parquet"
        self._path = f"{path}/{self._name}"
        self._files.create_dir(self._path.rpartition("/")[0], recursive=True)
        self._out = self._files.open_output_stream(self._path)
        self.writer = pq.ParquetWriter(self._out, schema, **_packing(schema))

    def closed(self) -> pa.RecordBatch:
        """Whole now; answers the row that tells of it."""
        self.writer.close()
        self._out.close()
        with self._files.open_input_file(self._path) as written:
            size = written.size()
            footer = pq.ParquetFile(written).metadata
        row = {
            "table": [self._table],
            "path": [self._name],
            "size": [size],
            "stats": [json.dumps(stats_of(footer))],
        }
        return pa.RecordBatch.from_pydict(row, schema=arrow_schema(STAGED))


def _packing(schema: pa.Schema) -> dict[str, Any]:
    """Numbers by their differences: in bronze, four tenths less work and size than by
    dictionaries.
    """
    numbers = [
        field.name
        for field in schema
        if pa.types.is_int64(field.type) or pa.types.is_timestamp(field.type)
    ]
    return {
        "compression": "zstd",
        "use_dictionary": [one.name for one in schema if one.name not in numbers],
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    }


def _groups(by_type: dict[str, list[pa.RecordBatch]]) -> Iterator[pa.Table]:
    few: list[pa.RecordBatch] = []
    for batches in by_type.values():
        if sum(batch.num_rows for batch in batches) < GROUP_ROWS:
            few += batches
        else:
            yield pa.Table.from_batches(batches, _SCHEMA)
    if few:
        yield pa.Table.from_batches(few, _SCHEMA)
