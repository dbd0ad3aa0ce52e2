"""Reads of jobs: what the tables have, and what is pending beside them."""

from contextlib import suppress

import apsw

from headway.store.port import HELD, START, Position, Row
from headway.store.sqlite import statements as sql
from headway.store.sqlite.merged import jobs_of, rows_of, turns_of
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending, unpack
from headway.store.sqlite.reader import Reader
from headway.store.sqlite.writes import sort_in


class Rows(Reader):
    """The owner's reads of jobs."""

    def __init__(
        self,
        connection: apsw.Connection | None = None,
        options: SqliteOptions | None = None,
    ) -> None:
        super().__init__(connection)
        self._options = options or SqliteOptions()
        self._pending = Pending()
        self._epoch = 0

    def jobs(self, seqs: list[int]) -> list[Row]:
        with self._turn:
            connection = self._opened()
            pending = self._pending
            wanted = set(seqs)
            found = [pending.puts[seq] for seq in wanted if seq in pending.puts]
            wanted.difference_update([row[0] for row in found])
            try:
                rows = jobs_of(connection, wanted)
            except apsw.Error as error:
                raise self._fail(error) from error
            found += filter(None, map(pending.now, rows))
            return found

    def rows(self, lane: int, turn: bytes, after: Position, limit: int) -> list[Row]:
        with self._turn:
            connection = self._opened()
            try:
                if lane == HELD:
                    self._sort_in(connection)
                return rows_of(connection, self._pending, (lane, turn), after, limit)
            except apsw.Error as error:
                raise self._fail(error) from error

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        if limit < 1 or each < 1:
            self._opened()
            return []
        if lane == HELD and after is None:
            # Of the first turn some have no row of their own there.
            held = self.rows(HELD, b"", START, each)
            return held + self.turns(HELD, b"", limit - bool(held), each)
        with self._turn:
            connection = self._opened()
            try:
                if lane == HELD:
                    self._sort_in(connection)
                return turns_of(connection, self._pending, lane, after, (limit, each))
            except apsw.Error as error:
                raise self._fail(error) from error

    def _sort_in(self, connection: apsw.Connection) -> None:
        """What is pending becomes rows, in a transaction of its own."""
        if not len(self._pending):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            left = Pending()
            if connection.execute(sql.EPOCH).get == self._epoch:
                left = sort_in(connection, self._pending, self._options)
            # Else it is another's, and whatever is made of this read can't be written.
            connection.execute("COMMIT")
        except BaseException:
            with suppress(apsw.Error):
                connection.execute("ROLLBACK")
            raise
        self._pending = left


def load(connection: apsw.Connection) -> Pending:
    """What earlier commits have left to be sorted in."""
    pending = Pending()
    for number, blob in connection.execute(sql.PENDING):
        pending.add(*unpack(blob))
        pending.number = number
        pending.bytes += len(blob)
    return pending
