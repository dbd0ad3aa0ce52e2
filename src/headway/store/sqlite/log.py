"""The write-ahead log: kept short by the owner, and made durable again at open."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import apsw

from headway.store.errors import Corrupt
from headway.store.sqlite import frames
from headway.store.sqlite.frames import FRAME_BYTES
from headway.store.sqlite.options import SqliteOptions

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


def renew(connection: apsw.Connection, path: str, vfs: str | None) -> None:
    """Makes the log that an earlier owner left durable, and cuts a torn commit off.

    After a failed flush the kernel calls pages clean that never reached the disk. They
    are read as if they were there, and no later flush writes them: a power cut would
    take them, and every commit behind them, away. So the log is written over itself.
    The connection has read the log already; its owner must be the only writer.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_WAL
    with _opened(path, vfs, flags) as file:
        if file is None:
            return
        found = frames.survey(file)
        if not found.size_bytes:
            return
        last = _last_frame(connection)
        if (damage := frames.damage(found, last)) is not None:
            raise Corrupt(damage)
        for offset in range(0, found.size_bytes, CHUNK_BYTES):
            some = min(CHUNK_BYTES, found.size_bytes - offset)
            file.xWrite(file.xRead(some, offset), offset)
        # Of a log whose header is torn nothing counts. SQLite goes on with the salts of
        # that header, by which what it leaves behind would pass for its own.
        end = frames.HEADER_BYTES + last * FRAME_BYTES if last else 0
        if end < found.size_bytes:
            file.xTruncate(end)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)


def damage(connection: apsw.Connection, path: str, vfs: str | None) -> str | None:
    """What the log has lost, if anything; nothing is changed.

    Nobody can tell while an owner works on it: it knows what it wrote, and does not
    read it again.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_WAL
    with _opened(path, vfs, flags) as file:
        if file is None:
            return None
        found = frames.survey(file)
        last = _last_frame(connection)
        # else the owner has begun it anew meanwhile, and the survey is of two logs
        is_same = file.xRead(len(found.header), 0) == found.header
        return frames.damage(found, last) if is_same else None


def _last_frame(connection: apsw.Connection) -> int:
    """The last frame that SQLite reads; 0 if there is none."""
    count, _ = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return max(count, 0)


@contextmanager
def _opened(path: str, vfs: str | None, flags: int) -> Iterator[apsw.VFSFile | None]:
    try:
        file = apsw.VFSFile(vfs or "", path + "-wal", [flags, 0])
    except apsw.CantOpenError:
        yield None
        return
    try:
        yield file
    finally:
        file.xClose()
