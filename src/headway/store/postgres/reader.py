"""What can be read of a partition, through one connection; nothing here writes."""

from contextlib import suppress
from threading import Lock
from typing import Any, Final, LiteralString

import psycopg

from headway.store.errors import HistoryGone, NotOpen, StoreError, StoreFailed
from headway.store.port import Key, Position, Result, Row, Segment
from headway.store.postgres import migrations
from headway.store.postgres import statements as sql
from headway.store.postgres.connections import connect, failure, select
from headway.store.postgres.names import decoded, encoded, pair_name, short_turn

HISTORY_GONE: Final = "HW003"


class Reader:
    """Reads of one connection. A failed read stops it for good.

    Calls from several threads take turns; none sees another's unfinished commit.
    """

    def __init__(self, connection: Any = None, partition: int = 0) -> None:
        self._connection = connection
        self._partition = partition
        self._failure: StoreError | None = None
        self._turn = Lock()

    def facts(self, kind: str) -> list[tuple[bytes, bytes]]:
        return self._select(sql.FACTS, (self._partition, kind))

    def jobs(self, seqs: list[int]) -> list[Row]:
        if not seqs:
            self._opened()
            return []
        return self._select(sql.JOBS, (self._partition, seqs))

    def rows(self, lane: int, turn: bytes, after: Position, limit: int) -> list[Row]:
        place = short_turn(turn)
        values = (self._partition, lane, place, *after, max(limit, 0))
        return self._select(sql.ROWS, values)

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        if limit < 1 or each < 1:
            self._opened()
            return []
        start = b"" if after is None else short_turn(after) + b"\0"
        return self._select(sql.TURNS, (self._partition, lane, start, limit, each))

    def find_keys(self, wanted: list[tuple[str, str]]) -> list[Key]:
        if not wanted:
            self._opened()
            return []
        names = [pair_name(encoded(queue), encoded(key)) for queue, key in set(wanted)]
        found = self._select(sql.FIND_KEYS, (self._partition, names))
        return [(decoded(queue), decoded(key), *rest) for queue, key, *rest in found]

    def results(self, seqs: list[int]) -> list[Result]:
        if not seqs:
            self._opened()
            return []
        return self._select(sql.RESULTS, (self._partition, seqs))

    def first_over_ms(self) -> int | None:
        found = self._select(sql.FIRST_OVER, (self._partition,))
        return int(found[0][0]) if found else None

    def history(self, first: int, most_bytes: int) -> list[Segment]:
        first = max(first, 1)
        found = self._select(sql.HISTORY, (self._partition, first, most_bytes))
        return [Segment._make(row) for row in found]

    def last_segment(self) -> Segment | None:
        found = self._select(sql.LAST_SEGMENT, (self._partition,))
        return Segment._make(found[0]) if found else None

    def close(self) -> None:
        """Lets go of the connection. Safe to call twice."""
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                discard(connection)

    def _select(
        self, statement: LiteralString, values: tuple[object, ...]
    ) -> list[Any]:
        with self._turn:
            connection = self._opened()
            try:
                return select(connection, statement, values)
            except psycopg.Error as error:
                if error.sqlstate == HISTORY_GONE:
                    first, oldest = values[1], error.diag.message_detail
                    raise HistoryGone(int(str(first)), int(oldest)) from error
                raise self._fail(error) from error

    def _opened(self) -> Any:
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args)
        if self._connection is None:
            raise NotOpen("take_over comes first, and nothing comes after close")
        return self._connection

    def _fail(self, error: Exception) -> StoreError:
        """Stops for good: only a new connection tells what is there."""
        self._failure = failure(error)
        connection, self._connection = self._connection, None
        if connection is not None:
            discard(connection)
        return self._failure


def open_reader(address: str, partition: str) -> Reader:
    """For somebody who reads beside the owner, and never writes."""
    connection = connect(address)
    try:
        migrations.check(connection)
        found = connection.execute(sql.FIND, (partition,)).fetchone()
    except psycopg.Error as error:
        discard(connection)
        raise failure(error) from error
    except StoreError:
        discard(connection)
        raise
    if found is None:
        discard(connection)
        raise StoreFailed(f"the database has no partition {partition!r} yet")
    return Reader(connection, found[0])


def discard(connection: Any) -> None:
    """What goes wrong with that changes nothing any more."""
    with suppress(psycopg.Error):
        connection.close()
