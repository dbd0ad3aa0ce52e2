"""The write-ahead log: kept short by the owner, and made durable again at open."""

from typing import Final

import apsw

from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pragmas import PAGE_BYTES

FRAME_BYTES: Final = PAGE_BYTES + 24
CHUNK_BYTES: Final = 64 * 1024
"""Of more than 128 KiB in one call SQLite writes a part, and calls the disk full."""


class Log:
    """Copies the log into the file when it has grown; only the owner does that."""

    def __init__(self, connection: apsw.Connection, options: SqliteOptions) -> None:
        self.size_bytes = 0
        self.is_stuck = False
        self._connection = connection
        self._options = options
        self._next_bytes = options.wal_passive_bytes
        connection.set_wal_hook(self._note)

    def _note(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self.size_bytes = pages * FRAME_BYTES
        return apsw.SQLITE_OK

    def tend(self) -> None:
        """After a commit. A reader of an old state delays it, but never a commit."""
        size = self.size_bytes
        if size < self._options.wal_passive_bytes:
            if self._next_bytes != self._options.wal_passive_bytes:
                self._begin_anew()
            return
        if size < self._next_bytes:
            return
        self._next_bytes = size + self._options.wal_passive_bytes // 4
        if size < self._options.wal_truncate_bytes:
            self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
        elif self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE):
            self.size_bytes = 0
            self._begin_anew()
        else:
            self.is_stuck = True

    def _begin_anew(self) -> None:
        self.is_stuck = False
        self._next_bytes = self._options.wal_passive_bytes

    def _checkpoint(self, mode: int) -> bool:
        """Does not wait for readers: better a long log than a late commit."""
        self._connection.set_busy_timeout(0)
        try:
            self._connection.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            return False
        finally:
            self._connection.set_busy_timeout(self._options.busy_ms)
        return True


def rewrite(path: str, vfs: str | None) -> None:
    """Writes the log that an earlier owner left over itself, and flushes it.

    After a failed flush the kernel calls pages clean that never reached the disk. They
    are read as if they were there, and no later flush writes them: a power cut would
    take them, and every commit behind them, away. The caller must be the only writer.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_WAL
    try:
        file = apsw.VFSFile(vfs or "", path + "-wal", [flags, 0])
    except apsw.CantOpenError:
        return
    try:
        size = file.xFileSize()
        for offset in range(0, size, CHUNK_BYTES):
            chunk = file.xRead(min(CHUNK_BYTES, size - offset), offset)
            file.xWrite(chunk, offset)
        if size:
            file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
