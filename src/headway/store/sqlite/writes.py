"""What a batch writes, inside the transaction of its commit."""

from array import array
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import apsw

from headway.store.errors import Contradiction
from headway.store.port import HELD, Batch, Fact, Move, Row, Segment
from headway.store.sqlite import statements as sql
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending, pack
from headway.store.sqlite.statements import BODY_INLINE_BYTES

_AMONG_HELD: Final = (HELD, b"", 0, 0)
_in_order: Final = itemgetter(1, 2, 3, 4, 0)


def write(connection: apsw.Connection, batch: Batch) -> None:
    """All of a batch but what happens to jobs."""
    if batch.facts:
        _write_facts(connection, batch.facts)
    if batch.keys:
        connection.executemany(sql.PUT_KEY, batch.keys)
    if batch.keys_before_ms is not None:
        connection.execute(sql.FORGET_KEYS, (batch.keys_before_ms,))
    if batch.segment is not None:
        _append(connection, batch.segment)
    if batch.history_before is not None:
        connection.execute(sql.DROP_HISTORY, (batch.history_before,))
    if batch.results:
        connection.executemany(sql.PUT_RESULT, batch.results)
    if batch.results_over is not None:
        until_ms, most = batch.results_over
        connection.execute(sql.DROP_RESULTS, (until_ms, max(most, 0)))


def pend(
    connection: apsw.Connection, batch: Batch, ends: list[int], pending: Pending
) -> int:
    """Appends what happens to jobs as it is, if it can be true; answers its bytes."""
    check(connection, pending, batch.puts, batch.moves, ends)
    return _append_pending(
        connection, pending.number + 1, pack(batch.puts, batch.moves, ends)
    )


def check(
    connection: apsw.Connection,
    pending: Pending,
    puts: Sequence[Row],
    moves: Sequence[Move],
    ends: Sequence[int],
) -> None:
    """Raises Contradiction if this can't happen to the jobs that are there."""
    new, known = pending.outside(puts, moves, ends)
    if new and min(new) <= (connection.execute(sql.LAST_JOB).get or 0):
        _expect(_among(connection, new), 0, "new jobs")
    if known:
        _expect(_among(connection, known), len(known), "changes")


def make_room(
    connection: apsw.Connection, pending: Pending, options: SqliteOptions
) -> Pending:
    """Answers what is pending once what is too much of it was dealt with.

    Of jobs that come and go at once nearly all that was written does not matter any
    more: what does is written anew, and no row of theirs is ever made.
    """
    if len(pending) <= options.pending_rows:
        if pending.bytes <= options.pending_bytes:
            return pending
        blob = pending.packed()
        if len(blob) <= options.pending_bytes // 2:
            connection.execute(sql.SORTED_IN, (pending.number,))
            thinned = pending.copy()
            thinned.number = 1
            thinned.bytes = _append_pending(connection, 1, blob)
            return thinned
    return sort_in(connection, pending)


def sort_in(connection: apsw.Connection, pending: Pending) -> Pending:
    """Makes rows of what is pending; answers what is pending then."""
    if pending.puts:
        _put(connection, sorted(pending.puts.values(), key=_in_order))
    if pending.moves:
        _move(connection, list(pending.moves.values()))
    if pending.ends:
        before = connection.total_changes()
        ends = apsw.carray(array("q", sorted(pending.ends)))
        connection.execute(sql.END, (ends,))
        _expect(connection.total_changes() - before, len(pending.ends), "ends")
        _let_go(connection, ends)
        if connection.execute(sql.ANY_BODY).get:
            connection.execute(sql.END_BODY, (ends,))
    connection.execute(sql.SORTED_IN, (pending.number,))
    left = Pending()
    left.known = pending.known.difference(pending.ends)
    return left


def _put(connection: apsw.Connection, puts: list[Row]) -> None:
    big = [(row[0], row[6]) for row in puts if len(row[6]) > BODY_INLINE_BYTES]
    if big:
        connection.executemany(sql.PUT_BODY, big)
        apart = {seq for seq, _ in big}
        puts = [(*row[:6], None) if row[0] in apart else row for row in puts]  # type: ignore[misc]
    connection.executemany(sql.PUT, puts)


def _move(connection: apsw.Connection, moves: list[Move]) -> None:
    """Of several of one job the last counts."""
    latest = {move[5]: move for move in moves}
    if len(latest) < len(moves):
        moves = list(latest.values())
    holds = [(move[5], move[4]) for move in moves if move[:4] == _AMONG_HELD]
    before = connection.total_changes()
    connection.executemany(sql.HOLD, holds)
    if len(holds) == len(moves):
        _expect(connection.total_changes() - before, len(moves), "moves")
        return
    others = [move for move in moves if move[:4] != _AMONG_HELD]
    connection.executemany(sql.MOVE, others)
    _expect(connection.total_changes() - before, len(moves), "moves")
    _let_go(connection, apsw.carray(array("q", [move[5] for move in others])))


def _let_go(connection: apsw.Connection, seqs: object) -> None:
    if connection.execute(sql.ANY_HELD).get:
        connection.execute(sql.LET_GO, (seqs,))


def _write_facts(connection: apsw.Connection, facts: list[Fact]) -> None:
    """Of several about one key the last counts."""
    latest = {(kind, key): value for kind, key, value in facts}
    known = [(*name, value) for name, value in latest.items() if value is not None]
    forgotten = [name for name, value in latest.items() if value is None]
    connection.executemany(sql.PUT_FACT, known)
    connection.executemany(sql.FORGET_FACT, forgotten)


def _append(connection: apsw.Connection, segment: Segment) -> None:
    before = connection.total_changes()
    connection.execute(sql.APPEND, segment)
    if connection.total_changes() == before:
        raise Contradiction(f"history can't go on with number {segment.first}")


def _append_pending(connection: apsw.Connection, number: int, blob: bytes) -> int:
    connection.execute(sql.PEND, (number, blob))
    return len(blob)


def _among(connection: apsw.Connection, seqs: set[int]) -> int:
    return int(connection.execute(sql.JOBS_AMONG, (apsw.carray(array("q", seqs)),)).get)


def _expect(found: int, count: int, what: str) -> None:
    if found != count:
        raise Contradiction(f"{count} {what}, but {found} of these jobs exist")
