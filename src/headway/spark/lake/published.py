"""What is published: for each batch the versions of all tables, and how far they go.

A batch exists for its readers when its record is here. It is the last thing to be
written, and the only thing that says what was done already.
"""

from typing import Any, Final

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from headway.spark.errors import LakeBusy, LakeFromFuture
from headway.spark.lake.delta import Place

NAME: Final = "_published"
FORMAT: Final = 1
"""Of the tables as a whole: a lake with a higher number is refused."""
_SCHEMA: Final = pa.schema(
    [("batch", pa.int64()), ("at_ms", pa.int64()), ("record", pa.string())]
)


class Counted(msgspec.Struct):
    """How many jobs of a queue are open and dead, as its events add up."""

    open: int = 0
    dead: int = 0
    is_whole: bool = True
    """Everything from its first event on was read; else nothing can be said."""


class Published(msgspec.Struct):
    """One batch, as its readers see it."""

    batch: int = 0
    """Counted by us: 0 is the lake before its first batch."""
    at_ms: int = 0
    """When its last event happened."""
    vector: dict[str, int] = {}
    """For each partition the first event that is not in the tables."""
    marks: dict[str, str] = {}
    """For each partition what its last commit was: by it the server is known again."""
    versions: dict[str, int | None] = {}
    """For each table its version; None is a table that is not there yet."""
    counts: dict[str, dict[str, Counted]] = {}
    """By partition and queue."""
    events: int = 0
    """In all batches so far."""
    format: int = FORMAT


class Ledger:
    """Where batches are published."""

    def __init__(self, place: Place) -> None:
        self._path = place.under(NAME)
        self._storage = place.storage

    def last(self) -> Published:
        """The newest record; an empty lake has one, too."""
        rows = self._rows()
        if not rows:
            return Published()
        return self._read(max(rows, key=lambda row: row["batch"])["record"])

    def all(self) -> list[Published]:
        """Every record there is, oldest first."""
        rows = sorted(self._rows(), key=lambda row: row["batch"])
        return [self._read(row["record"]) for row in rows]

    def publish(self, record: Published) -> None:
        row = {
            "batch": [record.batch],
            "at_ms": [record.at_ms],
            "record": [msgspec.json.encode(record).decode()],
        }
        found = self._open()
        try:
            write_deltalake(
                self._path if found is None else found,
                pa.table(row, schema=_SCHEMA),
                mode="append",
                storage_options=self._storage,
            )
        except CommitFailedError as error:
            raise LakeBusy(f"somebody else publishes to {self._path}") from error

    def _rows(self) -> list[dict[str, Any]]:
        found = self._open()
        if found is None:
            return []
        rows: list[dict[str, Any]] = found.to_pyarrow_table().to_pylist()
        return rows

    def _read(self, record: str) -> Published:
        told = msgspec.json.decode(record)
        if told.get("format", 0) > FORMAT:
            raise LakeFromFuture(
                f"{self._path} was written by a newer version of Headway "
                f"(format {told['format']}, known is {FORMAT})"
            )
        return msgspec.convert(told, Published)

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self._path, storage_options=self._storage)
        except TableNotFoundError:
            return None
