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
_SCHEMA: Final = arrow_schema(EVENTS)


def staged(root: str, decoded: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes files under the lake's root; a row tells of each, or none of no rows."""
    by_type: dict[str, list[pa.RecordBatch]] = {}
    for batch in decoded:
        by_type.setdefault(batch.column("type")[0].as_py(), []).append(batch)
    if not by_type:
        return
    found = lives(by_type)
    yield _written(root, BRONZE, list(_groups(by_type)))
    for name, table in ((JOBS, found.jobs), (ATTEMPTS, found.attempts)):
        if table.num_rows:
            yield _written(root, name, [table])
    if found.rest.num_rows:
        yield _written(root, REST, [found.rest])


def home(name: str) -> str:
    """The table in whose folder the files of this name are."""
    return BRONZE if name == REST else name


def _written(root: str, table: str, groups: list[pa.Table]) -> pa.RecordBatch:
    """A file with a group of rows for each of these."""
    files, path = filesystem(Place(root).table(home(table)))
    name = f"{WRITE}={uuid.uuid4().hex}/part-0.parquet"
    files.create_dir(f"{path}/{name}".rpartition("/")[0], recursive=True)
    with (
        files.open_output_stream(f"{path}/{name}") as out,
        pq.ParquetWriter(out, groups[0].schema, compression="zstd") as writer,
    ):
        for group in groups:
            writer.write_table(group, row_group_size=group.num_rows)
    with files.open_input_file(f"{path}/{name}") as written:
        size = written.size()
        footer = pq.ParquetFile(written).metadata
    row: dict[str, list[Any]] = {"table": [table], "path": [name], "size": [size]}
    row["stats"] = [json.dumps(stats_of(footer))]
    return pa.RecordBatch.from_pydict(row, schema=arrow_schema(STAGED))


def _groups(by_type: dict[str, list[pa.RecordBatch]]) -> Iterator[pa.Table]:
    few: list[pa.RecordBatch] = []
    for batches in by_type.values():
        if sum(batch.num_rows for batch in batches) < GROUP_ROWS:
            few += batches
        else:
            yield pa.Table.from_batches(batches, _SCHEMA)
    if few:
        yield pa.Table.from_batches(few, _SCHEMA)
