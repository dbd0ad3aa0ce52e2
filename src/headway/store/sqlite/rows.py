"""Reads of jobs: what the tables have, and what is pending beside them."""

from array import array
from contextlib import suppress
from operator import itemgetter
from typing import Final

import apsw

from headway.store.port import HELD, START, Position, Row
from headway.store.sqlite import statements as sql
from headway.store.sqlite.pending import Pending, unpack
from headway.store.sqlite.reader import Reader
from headway.store.sqlite.writes import sort_in

_order: Final = itemgetter(2, 3, 4, 0)
_position: Final = itemgetter(3, 4, 0)


class Rows(Reader):
    """The owner's reads of jobs."""

    def __init__(self, connection: apsw.Connection | None = None) -> None:
        super().__init__(connection)
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
                rows = _jobs(connection, wanted)
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
                return _rows(connection, self._pending, (lane, turn), after, limit)
            except apsw.Error as error:
                raise self._fail(error) from error

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        if limit < 1 or each < 1:
            self._opened()
            return []
        start = sql.BEFORE_ALL_TURNS if after is None else after
        if lane == HELD and after is None:
            # Of the first turn some have no row of their own there.
            held = self.rows(HELD, b"", START, each)
            return held + self.turns(HELD, b"", limit - bool(held), each)
        with self._turn:
            connection = self._opened()
            try:
                # Turns are found by their names in the order of the tables alone.
                self._sort_in(connection)
                if each == 1:
                    return list(connection.execute(sql.HEADS, (lane, start, limit)))
                values = (lane, start, limit, each)
                rows: list[Row] = list(connection.execute(sql.TURNS, values))
            except apsw.Error as error:
                raise self._fail(error) from error
        rows.sort(key=_order)
        return rows

    def _sort_in(self, connection: apsw.Connection) -> None:
        """What is pending becomes rows, in a transaction of its own."""
        if not len(self._pending):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            left = Pending()
            if connection.execute(sql.EPOCH).get == self._epoch:
                left = sort_in(connection, self._pending)
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


def _jobs(connection: apsw.Connection, seqs: set[int]) -> list[Row]:
    if not seqs:
        return []
    return list(connection.execute(sql.JOBS, (apsw.carray(array("q", seqs)),)))


def _rows(
    connection: apsw.Connection,
    pending: Pending,
    of: tuple[int, bytes],
    after: Position,
    limit: int,
) -> list[Row]:
    """The first of both: those of the tables, and those whose place is pending."""
    rows = _sorted_rows(connection, pending, of, after, limit)
    places = map(pending.place_of, pending.standing_in(*of))
    beyond = sorted(place for place in places if place > after)[: max(limit, 0)]
    if not beyond:
        return rows
    moved = {place.seq for place in beyond if place.seq not in pending.puts}
    rows += [pending.puts[seq] for *_, seq in beyond if seq not in moved]
    rows += filter(None, map(pending.now, _jobs(connection, moved)))
    rows.sort(key=_position)
    return rows[:limit]


def _sorted_rows(
    connection: apsw.Connection,
    pending: Pending,
    of: tuple[int, bytes],
    after: Position,
    limit: int,
) -> list[Row]:
    """Those of the tables that still stand where they say."""
    rows: list[Row] = []
    while len(rows) < limit:
        wanted = limit - len(rows)
        found = _read(connection, of, after, wanted)
        rows += [row for row in found if not pending.is_elsewhere(row[0])]
        if len(found) < wanted:
            break
        after = Position(*_position(found[-1]))
    return rows


def _read(
    connection: apsw.Connection, of: tuple[int, bytes], after: Position, limit: int
) -> list[Row]:
    """Those that share more keys with the last one come first."""
    rows: list[Row] = []
    for statement, keys in (
        (sql.ROWS_OF_SECOND, after),
        (sql.ROWS_OF_FIRST, after[:2]),
        (sql.ROWS, after[:1]),
    ):
        if len(rows) < limit:
            rows += connection.execute(statement, (*of, *keys, limit - len(rows)))
    if of == (HELD, b"") and after[:2] <= (0, 0):
        start = after.seq if after[:2] == (0, 0) else START.seq
        rows += connection.execute(sql.HELD_ROWS, (start, limit))
        rows.sort(key=_position)
        del rows[limit:]
    return rows
