"""What can be read of a store beside its jobs, through one connection."""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import apsw

from headway.store.errors import (
    Corrupt,
    HistoryGone,
    NotOpen,
    StoreError,
    StoreFailed,
    StoreFull,
)
from headway.store.port import Key, Result, Segment
from headway.store.segments import up_to
from headway.store.sqlite import statements as sql


class Reader:
    """Reads of one connection. A failed read stops it for good.

    Calls from several threads take turns; none sees another's unfinished commit.
    """

    def __init__(self, connection: apsw.Connection | None = None) -> None:
        self._connection = connection
        self._failure: StoreFailed | None = None
        self._turn = Lock()

    def facts(self, kind: str) -> list[tuple[bytes, bytes]]:
        return self._select(sql.FACTS, (kind,))

    def find_keys(self, wanted: list[tuple[str, str]]) -> list[Key]:
        with self._turn:
            connection = self._opened()
            try:
                return list(connection.executemany(sql.FIND_KEY, set(wanted)))
            except apsw.Error as error:
                raise self._fail(error) from error

    def results(self, seqs: list[int]) -> list[Result]:
        if not seqs:
            self._opened()
            return []
        return self._select(sql.RESULTS, (apsw.carray(array("q", seqs)),))

    def first_over_ms(self) -> int | None:
        found = self._select(sql.FIRST_OVER, ())
        return int(found[0][0]) if found else None

    def history(self, first: int, most_bytes: int) -> list[Segment]:
        first = max(first, 1)
        with self._turn:
            connection = self._opened()
            try:
                oldest = connection.execute(sql.OLDEST).get
                cursor = connection.execute(sql.HISTORY, (first,))
                segments = list(up_to(most_bytes, map(Segment._make, cursor)))
                cursor.close()  # or it would hold the log back
            except apsw.Error as error:
                raise self._fail(error) from error
        if oldest is not None and first < oldest:
            raise HistoryGone(first, oldest)
        if segments and segments[0].first + segments[0].count <= first:
            return []
        return segments

    def last_segment(self) -> Segment | None:
        found = self._select(sql.LAST_SEGMENT, ())
        return Segment._make(found[0]) if found else None

    def close(self) -> None:
        """Lets go of the file. Safe to call twice."""
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _select(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._turn:
            connection = self._opened()
            try:
                return list(connection.execute(statement, values))
            except apsw.Error as error:
                raise self._fail(error) from error

    def _opened(self) -> apsw.Connection:
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args)
        if self._connection is None:
            raise NotOpen("take_over comes first, and nothing comes after close")
        return self._connection

    def _fail(self, error: apsw.Error) -> StoreError:
        """Stops for good. Closing writes nothing more: the disk may be lying."""
        self._failure = failure(error)
        connection, self._connection = self._connection, None
        if connection is not None:
            discard(connection)
        return self._failure


def discard(connection: apsw.Connection) -> None:
    """Closes without a checkpoint; what goes wrong with that changes nothing any more."""
    with suppress(apsw.Error):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close(force=True)


def failure(error: apsw.Error) -> StoreFailed:
    """What an error of SQLite means for the truth."""
    text = f"{type(error).__name__}: {error}"
    match error:
        case apsw.FullError():
            # the record that ends a commit is the last to be written
            return StoreFull(text)
        case apsw.CorruptError() | apsw.NotADBError():
            return Corrupt(text)
    return StoreFailed(text)
