"""What an owner's store lies on: it outlives the owner, and it can be made to fail."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, Protocol

import apsw

from headway.sim.disk import (
    NO_SPACE,
    SYNC_FAILED,
    WRITE_FAILED,
    Fault,
    Operation,
    SimulatedDisk,
)
from headway.sim.faults.rates import Kind
from headway.store.errors import StoreError, StoreFailed
from headway.store.memory import MemoryDisk, MemoryStore
from headway.store.port import Batch, Store
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems

PATH: Final = Path("partition.db")
COMMIT_OPERATIONS: Final = 12
"""About as many writes and flushes as one commit takes."""


class Medium(Protocol):
    """Opened again and again; `plan` says what goes wrong with one of the next writes."""

    def open(self) -> Store: ...

    def plan(self, kind: Kind) -> None: ...

    def die(self, *, is_power_cut: bool) -> None:
        """Whoever had it open is gone."""
        ...

    def replaced(self) -> None:
        """Whoever has it open is paused, and another will open it."""
        ...

    def heal(self) -> None: ...

    def problems(self) -> list[str]: ...

    def close(self) -> None: ...


class MemoryMedium:
    """Without tears, but two owners can have it open at once."""

    def __init__(self, chance: Random) -> None:
        self.disk = MemoryDisk()
        self.planned: Kind | None = None
        self.chance = chance

    def open(self) -> Store:
        return _FailingStore(self)

    def plan(self, kind: Kind) -> None:
        self.planned = kind

    def die(self, *, is_power_cut: bool) -> None:
        self.planned = None

    def replaced(self) -> None:
        pass

    def heal(self) -> None:
        self.planned = None

    def problems(self) -> list[str]:
        return []

    def close(self) -> None:
        pass


class _FailingStore(MemoryStore):
    """Fails before or after a commit as planned, and is of no use from then on."""

    def __init__(self, medium: MemoryMedium) -> None:
        super().__init__(medium.disk)
        self._medium = medium

    def commit(self, batch: Batch, epoch: int) -> None:
        medium = self._medium
        planned, medium.planned = medium.planned, None
        if planned is None:
            super().commit(batch, epoch)
            return
        if planned is not Kind.FULL and medium.chance.random() < 0.5:
            super().commit(batch, epoch)
        self.close()
        raise StoreFailed(f"planned: {planned}")


class DiskMedium:
    """A SQLite file on the simulated disk."""

    def __init__(self, seed: int, chance: Random) -> None:
        self.disk = SimulatedDisk(seed)
        self.chance = chance
        wal_bytes = chance.choice([16, 64, 256]) * 1024
        self._options = SqliteOptions(
            vfs=self.disk.name,
            is_exclusive=True,
            cache_bytes=1024 * 1024,
            wal_passive_bytes=wal_bytes,
            wal_truncate_bytes=4 * wal_bytes,
            pending_rows=chance.choice([0, 20, 200, 4_096]),
            pending_bytes=chance.choice([1, 16, 4_096]) * 1024,
            bundle_least=chance.choice([2, 16]),
        )
        self._opened: list[SqliteStore] = []

    def open(self) -> Store:
        store = SqliteStore(PATH, self._options)
        self._opened.append(store)
        return store

    def plan(self, kind: Kind) -> None:
        begin = self.chance.randrange(COMMIT_OPERATIONS)
        match kind:
            case Kind.STOP | Kind.CUT:
                self.disk.stops_at = self.disk.operations + 1 + begin
            case Kind.FULL:
                self._fail("write", NO_SPACE, begin)
            case Kind.SYNC:
                self._fail("sync", SYNC_FAILED, begin // 4)
            case _:
                self._fail("write", WRITE_FAILED, begin)

    def die(self, *, is_power_cut: bool) -> None:
        if is_power_cut:
            self.disk.power_cut(self.chance)
        else:
            self.disk.crash()
        self._close_all()

    def replaced(self) -> None:
        """SQLite's lock keeps two apart: the first must have lost it to be replaced."""
        self.disk.crash()

    def heal(self) -> None:
        self.disk.faults.clear()
        self.disk.stops_at = None

    def problems(self) -> list[str]:
        self._close_all()
        return problems(PATH, self._options)

    def close(self) -> None:
        self._close_all()
        self.disk.close()

    def _fail(self, on: Operation, error: int, after: int) -> None:
        self.disk.faults.append(Fault(on, error, after))

    def _close_all(self) -> None:
        while self._opened:
            _quietly(self._opened.pop().close)


def _quietly(close: Callable[[], None]) -> None:
    with suppress(apsw.Error, StoreError):
        close()
