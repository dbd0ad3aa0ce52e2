"""Tables and what is pending beside them, read as one order."""

from array import array
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

import apsw

from headway.store.port import HELD, START, Position, Row
from headway.store.sqlite import bundles
from headway.store.sqlite import statements as sql
from headway.store.sqlite.pending import Pending

PAGE_MAX: Final = 1_024
"""Rows that are read at one go where most of them stand elsewhere by now."""
_position: Final = itemgetter(3, 4, 0)


def jobs_of(connection: apsw.Connection, seqs: Iterable[int]) -> list[Row]:
    """Those of the jobs that the tables have, as they say."""
    wanted = array("q", seqs)
    if not wanted:
        return []
    rows: list[Row] = list(connection.execute(sql.JOBS, (apsw.carray(wanted),)))
    if len(rows) < len(wanted):
        found = {row[0] for row in rows}
        rows += bundles.find(connection, [seq for seq in wanted if seq not in found])
    return rows


def turns_of(
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
        if not others:
            # It is all there is, or as many as are wanted.
            for heads in found.values():
                plain += heads
            pending.read(plain)
            return rows + plain
        for name in sorted(others.union(found)):
            if end is not None and name > end:
                break
            if name in others:
                first = rows_of(connection, pending, (lane, name), START, each)
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
    found: dict[bytes, list[Row]] = {}
    if each == 1:
        heads: Iterable[Any] = connection.execute(sql.HEADS, (lane, start, limit))
        for head in heads:
            found[head[2]] = [head]
        return found
    for row in connection.execute(sql.TURNS, (lane, start, limit, each)):
        found.setdefault(row[2], []).append(row)
    for rows in found.values():
        rows.sort(key=_position)
    return found


def rows_of(
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
    rows += filter(None, map(pending.now, jobs_of(connection, moved)))
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
        rows += jobs_of(connection, held)
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
