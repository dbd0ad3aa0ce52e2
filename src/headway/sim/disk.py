"""A disk in memory for SQLite: it forgets what was not flushed, tears, fills and fails.

It is a VFS without shared memory: a store on it must be exclusive.
"""

from itertools import count
from random import Random
from typing import Any, Final, Literal, cast

import apsw
import msgspec

from headway.sim.disk_file import DiskFile

Operation = Literal["write", "sync"]
_numbers = count(1)

NO_SPACE: Final = apsw.SQLITE_FULL
WRITE_FAILED: Final = apsw.SQLITE_IOERR_WRITE
SYNC_FAILED: Final = apsw.SQLITE_IOERR_FSYNC
LOGS: Final = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
"""Of these SQLite flushes the directory, too, when they are new and first flushed."""


class Fault(msgspec.Struct):
    """What goes wrong, from some operation on."""

    on: Operation
    error: int = 0
    """A result code of SQLite; 0 is only slow."""
    after: int = 0
    """So many operations of its kind go well before, counted from now."""
    times: int = 1
    delay_ms: int = 0
    """Added to the disk's waited_ms, for a caller who keeps virtual time."""


class SimulatedDisk(apsw.VFS):
    """Writes stay in a cache until they are flushed; the cache dies with the power.

    `crash` ends the process that uses it, `power_cut` the machine. Handles from before
    are dead after either.
    """

    def __init__(self, seed: int = 0) -> None:
        self.name = f"simulated-disk-{next(_numbers)}"
        self.faults: list[Fault] = []
        self.operations = 0
        """Writes and flushes so far."""
        self.stops_at: int | None = None
        """At this operation the process stops, in the middle of what it does."""
        self.waited_ms = 0
        self.life = 0
        self.chance = Random(seed)
        self._files: dict[str, DiskFile] = {}
        self._durable: dict[str, DiskFile] = {}
        super().__init__(self.name, "")

    def crash(self) -> None:
        """The process dies; what it wrote is in the cache and will be read."""
        self.life += 1
        self.stops_at = None
        for file in self._files.values():
            file.locks.clear()

    def power_cut(self, chance: Random) -> None:
        """Everything dies: of what was not flushed some sectors are there, in no order."""
        self.crash()
        is_luckless = chance.random() < 0.3
        kept = dict(self._durable)
        for name, file in self._files.items():
            if name not in kept and chance.random() < 0.5:
                kept[name] = file
        for name in self._durable.keys() - self._files.keys():
            if chance.random() < 0.5:  # its removal was not flushed, but happened
                del kept[name]
        for file in kept.values():
            file.power_cut(chance, 0.0 if is_luckless else chance.random())
        self._files, self._durable = kept, dict(kept)

    def close(self) -> None:
        self.unregister()

    def fault(self, on: Operation) -> int:
        """Counts an operation, and answers what goes wrong with it, or 0."""
        self.operations += 1
        if self.stops_at is not None and self.operations >= self.stops_at:
            self.life += 1
            return WRITE_FAILED
        for fault in self.faults:
            if fault.on == on:
                fault.after -= 1
                if fault.after < 0 and fault.times > 0:
                    fault.times -= 1
                    self.waited_ms += fault.delay_ms
                    return fault.error
        return 0

    def made_durable(self, file: DiskFile, has_directory: bool) -> None:
        """A flush makes a file's name durable; that of a new log, all names."""
        if has_directory:
            self._durable = dict(self._files)
        elif self._files.get(file.name) is file:
            self._durable[file.name] = file

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        path = str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        file = self._files.get(path)
        is_new_log = file is None and bool(flags[0] & LOGS)
        if file is None:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise apsw.CantOpenError(path)
            file = self._files[path] = DiskFile(path)
        flags[1] = flags[0]
        return cast(apsw.VFSFile, _Handle(self, file, is_new_log))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self._files.pop(filename, None)
        if syncdir:
            self._durable.pop(filename, None)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        return pathname in self._files

    def xSleep(self, microseconds: int) -> int:  # noqa: N802
        self.waited_ms += microseconds // 1000
        return microseconds

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class _Handle:
    """A file as SQLite has it open; it dies with the process."""

    def __init__(self, disk: SimulatedDisk, file: DiskFile, is_new_log: bool) -> None:
        self._disk = disk
        self._file = file
        self._life = disk.life
        self._level = 0
        self._is_new_log = is_new_log

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._alive(apsw.SQLITE_IOERR_READ)
        return bytes(self._file.seen[offset : offset + amount])

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._alive(WRITE_FAILED)
        code = self._disk.fault("write")
        written = bytes(data)
        if code:
            some = self._disk.chance.randrange(len(written))
            self._file.write(written[:some], offset)
            raise _error(code)
        self._file.write(written, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._alive(SYNC_FAILED)
        code = self._disk.fault("sync")
        if self._life != self._disk.life:
            raise _error(SYNC_FAILED)
        if code:
            self._file.fail_sync(self._disk.chance)
            raise _error(code)
        self._file.sync()
        self._disk.made_durable(self._file, self._is_new_log)
        self._is_new_log = False

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._alive(apsw.SQLITE_IOERR_TRUNCATE)
        self._file.truncate(newsize)

    def xFileSize(self) -> int:  # noqa: N802
        self._alive(apsw.SQLITE_IOERR_FSTAT)
        return len(self._file.seen)

    def xLock(self, level: int) -> None:  # noqa: N802
        is_dead = self._life != self._disk.life  # so that closing it writes nothing
        if is_dead or not self._file.can_lock(id(self), level):
            raise apsw.BusyError("locked by another handle")
        self._file.locks[id(self)] = self._level = max(level, self._level)

    def xUnlock(self, level: int) -> None:  # noqa: N802
        self._level = level
        if self._life == self._disk.life:
            self._file.locks[id(self)] = level

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        reserved = apsw.SQLITE_LOCK_RESERVED
        return any(level >= reserved for level in self._file.locks.values())

    def xClose(self) -> None:  # noqa: N802
        self._file.locks.pop(id(self), None)

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        """As SQLite takes every disk on Linux: a torn write harms no neighbour."""
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def _alive(self, code: int) -> None:
        if self._life != self._disk.life:
            raise _error(code)


def _error(code: int) -> Exception:
    error: Any = apsw.FullError() if code == NO_SPACE else apsw.IOError()
    error.extendedresult = code
    return cast(Exception, error)
