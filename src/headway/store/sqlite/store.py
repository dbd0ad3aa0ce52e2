"""The store of a partition in one SQLite file, written by one owner."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore
from typing import NoReturn

import apsw

from headway.store.errors import (
    Contradiction,
    Fenced,
    StoreError,
)
from headway.store.port import Batch
from headway.store.sqlite import log, place
from headway.store.sqlite import statements as sql
from headway.store.sqlite.connections import open_for_owner, open_for_reader
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending
from headway.store.sqlite.reader import Reader
from headway.store.sqlite.rows import Rows, load
from headway.store.sqlite.writes import make_room, pend, write


class SqliteStore(Rows):
    """Opens its file in take_over, under the owner's lock, and not before.

    After a failure the file is left as it is; what was committed is there when it is
    opened anew.
    """

    def __init__(self, path: Path | str, options: SqliteOptions | None = None) -> None:
        super().__init__(options=options)
        self.path = Path(path)
        self._lock: place.OwnerLock | None = None
        self._log: log.Log | None = None
        self._is_closed = False
        self._readers = BoundedSemaphore(self._options.readers_max)

    def take_over(self) -> int:
        """Takes the lock, brings the schema up to date and raises the epoch."""
        with self._turn:
            if self._failure is not None or self._is_closed:
                self._opened()
            if self._connection is None:
                self._open()
            return self._raise_epoch(self._opened())

    def commit(self, batch: Batch, epoch: int) -> None:
        with self._turn:
            connection = self._opened()
            try:
                connection.execute("BEGIN IMMEDIATE")
                newest = connection.execute(sql.EPOCH).get
                if newest != epoch:
                    self._pending = Pending()  # it is another's now
                    raise Fenced(epoch, newest)
                pending = make_room(connection, self._pending, self._options)
                ends = [seq for (seq,) in batch.ends]
                size, puts = 0, batch.puts
                if puts or batch.moves or ends:
                    size, puts = pend(connection, batch, ends, pending, self._options)
                write(connection, batch)
                connection.execute("COMMIT")
            except BaseException as error:
                self._abandon(connection, error)
            if size:
                pending.add(puts, batch.moves, ends)
                pending.number += 1
                pending.bytes += size
            self._pending = pending
            self._tend_log()

    @property
    def wal_bytes(self) -> int:
        """Size of the log, as of the last commit."""
        return 0 if self._log is None else self._log.size_bytes

    def sizes(self) -> tuple[int, int]:
        """Bytes of the file and of its log."""
        is_file = self._options.vfs is None and self.path.exists()
        return self.path.stat().st_size if is_file else 0, self.wal_bytes

    @property
    def is_wal_stuck(self) -> bool:
        """The log can't be cut off: some reader holds an old state open."""
        return self._log is not None and self._log.is_stuck

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A connection of its own for somebody else's reads: few at a time, and brief.

        The longer it reads at a stretch, the longer the log grows.
        """
        if not self._readers.acquire(blocking=False):
            raise StoreError(f"{self._options.readers_max} readers are open already")
        try:
            reader = Reader(open_for_reader(self.path, self._options))
            try:
                yield reader
            finally:
                reader.close()
        finally:
            self._readers.release()

    def close(self) -> None:
        """Leaves nothing to be sorted in, if nothing stands against it."""
        self._is_closed = True
        with self._turn:
            if self._connection is not None:
                with suppress(apsw.Error, StoreError):
                    self._sort_in(self._connection)
        super().close()
        with self._turn:
            self._let_go()

    def _open(self) -> None:
        options = self._options
        is_on_disk = options.vfs is None
        if is_on_disk and not options.is_network_allowed and place.MOUNTS.exists():
            place.refuse_network(self.path, place.MOUNTS.read_text())
        if is_on_disk and options.is_locked:
            self._lock = place.OwnerLock(self.path)
        try:
            connection = open_for_owner(self.path, options)
            if is_on_disk:
                place.sync_directory(self.path.parent)
        except BaseException:
            self._let_go()
            raise
        self._connection = connection
        self._log = log.Log(connection, options)

    def _raise_epoch(self, connection: apsw.Connection) -> int:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(sql.RAISE_EPOCH)
            epoch = int(connection.execute(sql.EPOCH).get)
            # From here on nobody else adds to it.
            pending = load(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            self._abandon(connection, error)
        self._epoch, self._pending = epoch, pending
        return epoch

    def _abandon(self, connection: apsw.Connection, error: BaseException) -> NoReturn:
        """Takes back what was begun, or stops; raises in any case."""
        match error:
            case (
                apsw.ConstraintError()
                | apsw.MismatchError()
                | apsw.TooBigError()
                | apsw.BindingsError()
            ):
                self._roll_back(connection)
                raise Contradiction(str(error)) from error
            case apsw.Error():
                raise self._fail(error) from error
        self._roll_back(connection)
        raise error

    def _roll_back(self, connection: apsw.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise self._fail(error) from error

    def _tend_log(self) -> None:
        """The commit is durable, whatever happens here: the next call will say so."""
        try:
            if self._log is not None:
                self._log.tend()
        except apsw.Error as error:
            self._fail(error)

    def _fail(self, error: apsw.Error) -> StoreError:
        failed = super()._fail(error)
        self._let_go()
        return failed

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None
