"""What a batch does to the tables, inside the transaction of its commit."""

from array import array
from typing import Final

import apsw

from headway.store.errors import Contradiction
from headway.store.port import HELD, Batch, Fact, Move, Row, Segment
from headway.store.sqlite import statements as sql
from headway.store.sqlite.statements import BODY_INLINE_BYTES

_AMONG_HELD: Final = (HELD, b"", 0, 0)


def write(connection: apsw.Connection, batch: Batch) -> None:
    """In the order in which things happen to a job: put, moved, ended."""
    if batch.puts:
        _put(connection, batch.puts)
    if batch.moves:
        _move(connection, batch.moves)
    if batch.ends:
        before = connection.total_changes()
        ends = apsw.carray(array("q", [seq for (seq,) in batch.ends]))
        connection.execute(sql.END, (ends,))
        _expect(connection, before, len(batch.ends), "ends")
        _let_go(connection, ends)
        if connection.execute(sql.ANY_BODY).get:
            connection.execute(sql.END_BODY, (ends,))
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
        _expect(connection, before, len(moves), "moves")
        return
    others = [move for move in moves if move[:4] != _AMONG_HELD]
    connection.executemany(sql.MOVE, others)
    _expect(connection, before, len(moves), "moves")
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


def _expect(connection: apsw.Connection, before: int, count: int, what: str) -> None:
    changed = connection.total_changes() - before
    if changed != count:
        raise Contradiction(f"{count} {what}, but {changed} of these jobs exist")
