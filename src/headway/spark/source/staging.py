"""History straight into files: a task writes what it decoded and tells of the file only.

The rows do not pass through the JVM: on the way of an event to its table that would cost
more than its decoding.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from headway.spark.columns import EVENTS, Column, Columns, arrow_schema
from headway.spark.lake.delta import WRITE, filesystem, stats_of

STAGED: Final[Columns] = {
    "path": Column("string", "the file, as its table calls it"),
    "size": Column("bigint", "its bytes"),
    "stats": Column("string", "what the table's log says of its rows, as JSON"),
}
"""What a stream of history yields that is written to files."""
GROUP_ROWS: Final = 20_000
"""Types with fewer rows share a row group: readers of one type skip the others."""
_SCHEMA: Final = arrow_schema(EVENTS)


def staged(root: str, decoded: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Writes a file under the table's root; one row tells of it, or none of no rows."""
    by_type: dict[str, list[pa.RecordBatch]] = {}
    for batch in decoded:
        by_type.setdefault(batch.column("type")[0].as_py(), []).append(batch)
    if not by_type:
        return
    files, path = filesystem(root)
    name = f"{WRITE}={uuid.uuid4().hex}/part-0.parquet"
    files.create_dir(f"{path}/{name}".rpartition("/")[0], recursive=True)
    with (
        files.open_output_stream(f"{path}/{name}") as out,
        pq.ParquetWriter(out, _SCHEMA, compression="zstd") as writer,
    ):
        for table in _groups(by_type):
            writer.write_table(table, row_group_size=table.num_rows)
    with files.open_input_file(f"{path}/{name}") as written:
        size = written.size()
        footer = pq.ParquetFile(written).metadata
    row = {"path": [name], "size": [size], "stats": [json.dumps(stats_of(footer))]}
    yield pa.RecordBatch.from_pydict(row, schema=arrow_schema(STAGED))


def _groups(by_type: dict[str, list[pa.RecordBatch]]) -> Iterator[pa.Table]:
    few: list[pa.RecordBatch] = []
    for batches in by_type.values():
        if sum(batch.num_rows for batch in batches) < GROUP_ROWS:
            few += batches
        else:
            yield pa.Table.from_batches(batches, _SCHEMA)
    if few:
        yield pa.Table.from_batches(few, _SCHEMA)
