"""Places where a store can live: each can be opened again and again, also twice."""

from pathlib import Path
from typing import Protocol

from headway.store.memory import MemoryDisk, MemoryStore
from headway.store.port import Store
from headway.store.sqlite.options import MIB, SqliteOptions
from headway.store.sqlite.store import SqliteStore
from tests.postgres.shared import InPostgres


class Place(Protocol):
    def open(self) -> Store:
        """A store that is closed by whoever opens it, or by the end of the test."""
        ...

    def open_beside(self) -> Store:
        """Another handle, for an owner that takes over while the first one lives."""
        ...

    def close(self) -> None: ...


class InMemory:
    def __init__(self, _directory: Path) -> None:
        self._disk = MemoryDisk()

    def open(self) -> Store:
        return MemoryStore(self._disk)

    def open_beside(self) -> Store:
        return MemoryStore(self._disk)

    def close(self) -> None:
        pass


class InSqlite:
    pending_rows = 4_096
    pending_bytes = 4 * MIB
    bundle_least = 16

    def __init__(self, directory: Path) -> None:
        self.path = directory / "partition.db"
        self._opened: list[SqliteStore] = []

    def open(self) -> Store:
        return self._open(is_locked=True)

    def open_beside(self) -> Store:
        return self._open(is_locked=False)

    def close(self) -> None:
        for store in self._opened:
            store.close()

    def _open(self, *, is_locked: bool) -> SqliteStore:
        options = SqliteOptions(
            is_locked=is_locked,
            pending_rows=self.pending_rows,
            pending_bytes=self.pending_bytes,
            bundle_least=self.bundle_least,
        )
        store = SqliteStore(self.path, options)
        self._opened.append(store)
        return store


class InSqliteSorted(InSqlite):
    """Every commit sorts into the tables what the one before has left."""

    pending_rows = 0


class InSqliteThinned(InSqlite):
    """What is pending is written anew again and again."""

    pending_bytes = 200


class InSqliteMixed(InSqlite):
    """Of most turns some is in the tables and some is pending."""

    pending_rows = 4


class InSqliteBundled(InSqlite):
    """Jobs become bundles as soon as there are two of them."""

    pending_rows = 3
    bundle_least = 2


PLACES = [
    InMemory,
    InSqlite,
    InSqliteSorted,
    InSqliteThinned,
    InSqliteMixed,
    InSqliteBundled,
    InPostgres,
]
