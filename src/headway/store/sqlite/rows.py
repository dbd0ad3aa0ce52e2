"""Reads of jobs: what the tables have, and what is pending beside them."""

from array import array
from collections.abc import Iterable
from contextlib import suppress
from operator import itemgetter
from typing import Final

import apsw

from headway.store.port import HELD, START, Position, Row
from headway.store.sqlite import bundles
from headway.store.sqlite import statements as sql
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending, unpack
from headway.store.sqlite.reader import Reader
from headway.store.sqlite.writes import sort_in

PAGE_MAX: Final = 1_024
"""Rows that are read at one go where most of them stand elsewhere by now."""
_position: Final = itemgetter(3, 4, 0)


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
        if lane == HELD and after is None:
            # Of the first turn some have no row of their own there.
            held = self.rows(HELD, b"", START, each)
            return held + self.turns(HELD, b"", limit - bool(held), each)
        with self._turn:
            connection = self._opened()
            try:
                if lane == HELD:
                    self._sort_in(connection)
                return _turns(connection, self._pending, lane, after, (limit, each))
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


def _jobs(connection: apsw.Connection, seqs: Iterable[int]) -> list[Row]:
    wanted = array("q", seqs)
    if not wanted:
        return []
    rows: list[Row] = list(connection.execute(sql.JOBS, (apsw.carray(wanted),)))
    if len(rows) < len(wanted):
        found = {row[0] for row in rows}
        rows += bundles.find(connection, [seq for seq in wanted if seq not in found])
    return rows


def _turns(
    connection: apsw.Connection,
    pending: Pending,
    lane: int,
    after: bytes | None,
    most: tuple[int, int],
) -> list[Row]:
    """Turns that the tables name and turns that only what is pending does, as one."""
    limit, each = most
    rows: list[Row] = []
    while limit > 0:
        found = _named(connection, lane, after, limit, each)
        # Where there are more of either, only up to the last one all are known.
        end = max(found) if len(found) == limit else None
        bundled: list[bytes] = []
        if pending.has_bundles:
            bundled = bundles.names(connection, lane, after, end, limit)
        if len(bundled) == limit:
            end = bundled[-1]
        names = pending.names(lane, after, end, limit)
        if len(names) == limit:
            end = names[-1]
        # What the tables say of these is not all, or not true any more.
        others = pending.disturbed(found).union(bundled, names)
        plain: list[Row] = []
        for name in sorted(others.union(found)) if others else found:
            if end is not None and name > end:
                break
            if name in others:
                first = _rows(connection, pending, (lane, name), START, each)
            else:
                first = found[name]
                plain += first
            rows += first
            limit -= bool(first)
            if not limit:
                break
        pending.read(plain)
        if end is None:
            break
        after = end
    return rows


def _named(
    connection: apsw.Connection, lane: int, after: bytes | None, limit: int, each: int
) -> dict[bytes, list[Row]]:
    """The next turns as the tables have them, by name, with their first rows."""
    start = sql.BEFORE_ALL_TURNS if after is None else after
    if each == 1:
        heads = connection.execute(sql.HEADS, (lane, start, limit))
        return {row[2]: [row] for row in heads}
    found: dict[bytes, list[Row]] = {}
    for row in connection.execute(sql.TURNS, (lane, start, limit, each)):
        found.setdefault(row[2], []).append(row)
    for rows in found.values():
        rows.sort(key=_position)
    return found


def _rows(
    connection: apsw.Connection,
    pending: Pending,
    of: tuple[int, bytes],
    after: Position,
    limit: int,
) -> list[Row]:
    """The first of both: those of the tables, and those whose place is pending."""
    rows = _sorted_rows(connection, pending, of, after, limit)
    until = _position(rows[-1]) if len(rows) == limit > 0 else None
    beyond = pending.standing_in(*of, after, until, limit)
    if not beyond:
        return rows
    puts = pending.puts
    rows += [puts[seq] for *_, seq in beyond if seq in puts]
    moved = [seq for *_, seq in beyond if seq not in puts]
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
    page = limit
    while len(rows) < limit:
        found = _read(connection, pending, of, after, page)
        rows += pending.standing(found)
        if len(found) < page:
            break
        after = Position(*_position(found[-1]))
        # Many may have left the head of a long turn.
        page = min(page * 2, PAGE_MAX)
    return rows[:limit]


def _read(
    connection: apsw.Connection,
    pending: Pending,
    of: tuple[int, bytes],
    after: Position,
    limit: int,
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
        held = [seq for (seq,) in connection.execute(sql.HELD, (start, limit))]
        rows += _jobs(connection, held)
        rows.sort(key=_position)
        return rows[:limit]
    pending.read(rows)
    if not pending.has_bundles:
        return rows
    bundled = bundles.in_order(connection, pending, of, after, limit)
    if rows and bundled:
        rows += bundled
        rows.sort(key=_position)
        return rows[:limit]
    return rows or bundled[:limit]
