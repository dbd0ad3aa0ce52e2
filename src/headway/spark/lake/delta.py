"""One Delta table: Spark writes its files, and a commit to its log makes them part of it.

The log is kept by the `deltalake` library, so that every reader of Delta tables reads
ours. Files that were written and never committed belong to nobody, until vacuum.
"""

import json
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    RemoveAction,
    create_table_with_add_actions,
)
from pyarrow import fs

from headway.spark.columns import Columns, arrow_schema, spark_schema
from headway.spark.errors import LakeBusy, LakeFromFuture

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITE: Final = "write"
"""Files of one write are in a folder of their own: `write=ID/…`."""
_STATS: Final = ("int64", "int32", "date32[day]")
"""Columns of these types have their least and greatest value in the log."""


class Place(NamedTuple):
    """A lake, and what is needed to reach it."""

    root: str
    storage: dict[str, str] | None = None
    """Options of an object store, as `deltalake` names them."""

    def under(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def table(self, name: str) -> str:
        """Where a table is that is called so."""
        return self.under(name.replace(".", "/"))


class Table:
    """A table by its name, `silver.jobs`, with its columns in order."""

    def __init__(
        self, place: Place, name: str, columns: Columns, split: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.columns = columns
        self.split = split
        """Columns that are the same in all rows of a file, by which files are found."""
        self._place = place
        self.path = place.table(name)

    def version(self) -> int | None:
        """The newest; None if there is no table yet."""
        found = self.opened()
        return None if found is None else found.version()

    def check(self) -> None:
        """Refuses a table that has columns which this version does not know."""
        found = self.opened()
        if found is None:
            return
        unknown = [
            field.name
            for field in found.schema().fields
            if field.name not in self.columns
        ]
        if unknown:
            raise LakeFromFuture(
                f"{self.path} has columns that this version of Headway does not know: "
                f"{', '.join(unknown)}"
            )

    def read(
        self,
        spark: "SparkSession",
        version: int | None = None,
        where: dict[str, Iterable[Any]] | None = None,
    ) -> "DataFrame":
        """The rows as of a version; `where` keeps files whose split column has a value."""
        return self.frame(spark, self.files(version, where))

    def empty(self, spark: "SparkSession") -> "DataFrame":
        return spark.createDataFrame([], spark_schema(self.columns))

    def frame(self, spark: "SparkSession", files: list[AddAction]) -> "DataFrame":
        """The rows of these files, staged or committed."""
        if not files:
            return self.empty(spark)
        frame = (
            spark.read.schema(spark_schema(self.columns))
            .option("basePath", self.path)
            .parquet(*(f"{self.path}/{one.path}" for one in files))
        )
        return frame.select(*self.columns)

    def stage(self, frame: "DataFrame") -> list[AddAction]:
        """Writes the rows to files that nobody sees yet."""
        folder = f"{WRITE}={uuid.uuid4().hex}"
        writer = frame.select(*self.columns).write.mode("errorifexists")
        if self.split:
            writer = writer.partitionBy(*self.split)
        writer.parquet(f"{self.path}/{folder}")
        return self._staged(folder)

    def forget(self, files: list[AddAction]) -> None:
        """Removes files that are part of nothing; what stays, vacuum will find."""
        found, root = filesystem(self.path)
        for one in files:
            with suppress(OSError):
                found.delete_dir(f"{root}/{one.path}".rpartition("/")[0])

    def commit(
        self,
        adds: list[AddAction],
        *,
        removes: list[AddAction] | None = None,
        batch: tuple[str, int],
    ) -> int:
        """Makes the files part of the table, all or none; answers its new version."""
        schema = Schema.from_arrow(arrow_schema(self.columns))
        told = CommitProperties(app_transactions=[Transaction(*batch)])
        found = self.opened()
        if found is None:
            create_table_with_add_actions(
                self.path,
                schema,
                adds,
                mode="error",
                partition_by=list(self.split),
                storage_options=self._place.storage,
                commit_properties=told,
            )
            return 0
        now_ms = int(time.time() * 1_000)
        gone = [
            RemoveAction(one.path, True, now_ms, one.size, dict(one.partition_values))
            for one in removes or []
        ]
        try:
            self._add_columns(found, schema)
            found.create_write_transaction(
                [*gone, *adds],
                "append",
                schema,
                partition_by=list(self.split),
                commit_properties=told,
            )
        except CommitFailedError as error:
            raise LakeBusy(f"somebody else writes to {self.path}") from error
        found.update_incremental()
        return int(found.version())

    def _add_columns(self, found: DeltaTable, schema: Schema) -> None:
        """An older version made the table: its log has to name what is new."""
        known = {field.name for field in found.schema().fields}
        new = [field for field in schema.fields if field.name not in known]
        if new:
            found.alter.add_columns(new)

    def files(
        self, version: int | None = None, where: dict[str, Iterable[Any]] | None = None
    ) -> list[AddAction]:
        """The files that the table is made of, as they would be removed."""
        return [
            AddAction(
                path=one["path"],
                size=one["size_bytes"],
                partition_values=_written(one.get("partition") or {}),
                modification_time=0,
                data_change=True,
                stats="",
            )
            for one in self._files(version, where)
        ]

    def restore(self, version: int | None) -> bool:
        """Back to this version, by a new one; whether anything was to be undone."""
        found = self.opened()
        if found is None or found.version() == version:
            return False
        wanted = [] if version is None else self.files(version)
        have = self.files()
        if {one.path for one in wanted} == {one.path for one in have}:
            return False
        if version is None:
            self.commit([], removes=have, batch=("restore", found.version()))
        else:
            found.restore(version)
        return True

    def has(self, version: int) -> bool:
        """Whether the files of a version are all there still."""
        files, root = fs.FileSystem.from_uri(_uri(self.path))
        try:
            named = [f"{root}/{one.path}" for one in self.files(version)]
        except DeltaError:
            return False
        return all(one.type == fs.FileType.File for one in files.get_file_info(named))

    def opened(self, version: int | None = None) -> DeltaTable | None:
        """The table's log, at a version or the newest; None if there is no table."""
        try:
            return DeltaTable(
                self.path, version=version, storage_options=self._place.storage
            )
        except TableNotFoundError:
            return None

    def _files(
        self, version: int | None, where: dict[str, Iterable[Any]] | None
    ) -> list[dict[str, Any]]:
        found = self.opened(version)
        if found is None:
            return []
        actions: list[dict[str, Any]] = pa.table(found.get_add_actions()).to_pylist()
        if where is None:
            return actions
        wanted = {name: {str(one) for one in values} for name, values in where.items()}
        return [
            action
            for action in actions
            if all(
                str(action["partition"][name]) in values
                for name, values in wanted.items()
            )
        ]

    def _staged(self, folder: str) -> list[AddAction]:
        files, root = filesystem(self.path)
        chosen = fs.FileSelector(f"{root}/{folder}", recursive=True)
        adds = []
        for info in files.get_file_info(chosen):
            if info.type != fs.FileType.File or not info.path.endswith(".parquet"):
                continue
            path = info.path[len(root) + 1 :]
            with files.open_input_file(info.path) as opened:
                footer = pq.ParquetFile(opened).metadata
            if footer.num_rows == 0:
                continue
            adds.append(
                AddAction(
                    path=path,
                    size=info.size,
                    partition_values=_values(path, self.split),
                    modification_time=int(time.time() * 1_000),
                    data_change=True,
                    stats=json.dumps(stats_of(footer)),
                )
            )
        return adds


def told(rows: "DataFrame") -> dict[str, list[AddAction]]:
    """Files that tasks wrote by themselves, one row for each, by table."""
    found: dict[str, list[AddAction]] = {}
    for row in rows.collect():
        add = AddAction(
            path=row["path"],
            size=row["size"],
            partition_values={},
            modification_time=int(time.time() * 1_000),
            data_change=True,
            stats=row["stats"],
        )
        found.setdefault(row["table"], []).append(add)
    return found


def filesystem(path: str) -> tuple[Any, str]:
    """Where a path is, and what it is called there."""
    found: tuple[Any, str] = fs.FileSystem.from_uri(_uri(path))
    return found


def _uri(path: str) -> str:
    if "://" in path:
        # Hadoop has a name of its own for it.
        return f"s3://{path[6:]}" if path.startswith("s3a://") else path
    from pathlib import Path

    return Path(path).absolute().as_uri()


def _values(path: str, split: tuple[str, ...]) -> dict[str, str | None]:
    """What the names of the folders say: write=…/day=2026-11-15/part-….parquet."""
    named = dict(part.split("=", 1) for part in path.split("/")[:-1])
    return {name: named[name] for name in split}


def _written(values: dict[str, Any]) -> dict[str, str | None]:
    return {
        name: None if value is None else str(value) for name, value in values.items()
    }


def stats_of(footer: pq.FileMetaData) -> dict[str, Any]:
    """The number of rows, and the least and greatest of plain columns."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    kinds = {
        field.name: str(field.type)
        for field in footer.schema.to_arrow_schema()
        if str(field.type) in _STATS
    }
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            name = column.path_in_schema
            found = column.statistics
            if name not in kinds or found is None or not found.has_min_max:
                continue
            low, high = found.min, found.max
            if kinds[name].startswith("date"):
                low, high = str(low), str(high)
            least[name] = min(least.get(name, low), low)
            greatest[name] = max(greatest.get(name, high), high)
    return {
        "numRecords": footer.num_rows,
        "minValues": least,
        "maxValues": greatest,
    }
