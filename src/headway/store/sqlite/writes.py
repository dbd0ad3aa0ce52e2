"""What a batch writes, inside the transaction of its commit."""

from array import array
from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Final

import apsw

from headway.store.errors import Contradiction
from headway.store.port import Batch, Fact, Move, Row, Segment
from headway.store.sqlite import bundle_statements as bundle_sql
from headway.store.sqlite import bundles
from headway.store.sqlite import statements as sql
from headway.store.sqlite.bundles import AMONG_HELD
from headway.store.sqlite.bundling import split
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending, pack
from headway.store.sqlite.statements import BODY_INLINE_BYTES

_in_order: Final = itemgetter(1, 2, 3, 4, 0)
_seq: Final = itemgetter(0)
_seq_of_move: Final = itemgetter(5)


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
    connection: apsw.Connection,
    batch: Batch,
    ends: list[int],
    pending: Pending,
    options: SqliteOptions,
) -> tuple[int, list[Row]]:
    """Appends what happens to jobs as it is, if it can be true.

    Answers its bytes, and the new jobs among it: those that come to a place where
    bundles wait already are one at once, and not pending.
    """
    puts = batch.puts
    check(connection, pending, puts, batch.moves, ends)
    if pending.tails and len(puts) >= options.bundle_least:
        changed = [*map(_seq_of_move, batch.moves), *ends]
        ordered = sorted(puts, key=_seq)
        if not changed or max(changed) < ordered[0][0]:
            # Whatever else happens to them in this commit would be pending.
            bundled, rest = split(ordered, options.bundle_least, pending.tails)
            puts = rest + bundles.put(connection, bundled, pending)
    if not (puts or batch.moves or ends):
        return 0, puts
    blob = pack(puts, batch.moves, ends)
    return _append_pending(connection, pending.number + 1, blob), puts


def check(
    connection: apsw.Connection,
    pending: Pending,
    puts: Sequence[Row],
    moves: Sequence[Move],
    ends: Sequence[int],
    *,
    has_bundles: bool = True,
) -> None:
    """Raises Contradiction if this can't happen to the jobs that are there.

    Files of earlier versions, which can be checked too, have no bundles.
    """
    new, known = pending.outside(puts, moves, ends)
    last_job = sql.LAST_JOB if has_bundles else sql.LAST_ROW
    if new and min(new) <= (connection.execute(last_job).get or 0):
        _expect(_among(connection, new, has_bundles=has_bundles), 0, "new jobs")
    if known:
        found = _among(connection, known, has_bundles=has_bundles)
        _expect(found, len(known), "changes")


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
    return sort_in(connection, pending, options)


def sort_in(
    connection: apsw.Connection, pending: Pending, options: SqliteOptions
) -> Pending:
    """Makes rows of what is pending; answers what is pending then."""
    changes = bundles.changes(connection, pending)
    if pending.puts:
        ordered = sorted(pending.puts.values(), key=_seq)
        bundled, rest = split(ordered, options.bundle_least)
        rest += bundles.put(connection, bundled, pending)
        _put(connection, sorted(rest, key=_in_order))
    if pending.moves:
        _move(connection, changes)
    if pending.ends:
        _end(connection, changes.ends, pending)
    bundles.leave(connection, changes.left, pending)
    connection.execute(sql.SORTED_IN, (pending.number,))
    sorted_in = Pending()
    sorted_in.known, sorted_in.tails = pending.known, pending.tails
    sorted_in.has_bundles = bundles.are_there(connection)
    return sorted_in


def _end(connection: apsw.Connection, alone: list[int], pending: Pending) -> None:
    """Jobs that have rows of their own lose them; none that is over is held any more."""
    if alone:
        before = connection.total_changes()
        alone.sort()
        ends = apsw.carray(array("q", alone))
        connection.execute(sql.END, (ends,))
        _expect(connection.total_changes() - before, len(alone), "ends")
        if connection.execute(sql.ANY_BODY).get:
            connection.execute(sql.END_BODY, (ends,))
        pending.known.forget(alone)
    _let_go(connection, pending.ends)


def _put(connection: apsw.Connection, puts: list[Row]) -> None:
    big = [(row[0], row[6]) for row in puts if len(row[6]) > BODY_INLINE_BYTES]
    if big:
        connection.executemany(sql.PUT_BODY, big)
        apart = {seq for seq, _ in big}
        puts = [(*row[:6], None) if row[0] in apart else row for row in puts]  # type: ignore[misc]
    connection.executemany(sql.PUT, puts)


def _move(connection: apsw.Connection, changes: bundles.Changes) -> None:
    """Jobs of bundles are held where they are, and become rows to stand elsewhere."""
    if changes.held:
        connection.executemany(bundle_sql.HOLD_MEMBER, changes.held)
    moves = changes.moves
    holds = [(move[5], move[4]) for move in moves if move[:4] == AMONG_HELD]
    others = [move for move in moves if move[:4] != AMONG_HELD]
    before = connection.total_changes()
    connection.executemany(sql.HOLD, holds)
    connection.executemany(sql.MOVE, others)
    _expect(connection.total_changes() - before, len(moves), "moves")
    if changes.out:
        rows = bundles.find(connection, changes.out)
        _put(connection, [(row[0], *changes.out[row[0]][:5], row[6]) for row in rows])
    _let_go(connection, [*(move[5] for move in others), *changes.out])


def _let_go(connection: apsw.Connection, seqs: Collection[int]) -> None:
    """They are held no more, if they were."""
    if not seqs:
        return
    between = (min(seqs), max(seqs), len(seqs))
    held = {seq for (seq,) in connection.execute(sql.SOME_HELD, between)}
    if len(held) < len(seqs):
        # All that are held there: mostly much fewer than are asked for.
        seqs = [seq for seq in seqs if seq in held]
    if seqs:
        connection.execute(sql.LET_GO, (apsw.carray(array("q", seqs)),))


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


def _among(connection: apsw.Connection, seqs: set[int], *, has_bundles: bool) -> int:
    found = int(
        connection.execute(sql.JOBS_AMONG, (apsw.carray(array("q", seqs)),)).get
    )
    if found < len(seqs) and has_bundles:
        found += len(bundles.where(connection, seqs))
    return found


def _expect(found: int, count: int, what: str) -> None:
    if found != count:
        raise Contradiction(f"{count} {what}, but {found} of these jobs exist")
