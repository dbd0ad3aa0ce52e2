"""All of a store as of one moment, read in streams: for checks, not for owners."""

import heapq
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import apsw

from headway.store.port import Key, Result, Row, Segment
from headway.store.sqlite import bundles
from headway.store.sqlite import statements as sql
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import Pending
from headway.store.sqlite.reader import failure
from headway.store.sqlite.rows import load
from headway.store.sqlite.schema import (
    BUNDLES_SINCE,
    HELD_SINCE,
    PENDING_SINCE,
    RESULTS_SINCE,
    known_version,
)

ROWS: Final = f"SELECT {sql.ANY_ROW} FROM {sql.ALL_JOBS} ORDER BY jobs.seq"  # noqa: S608
ROWS_BEFORE_HELD: Final = f"SELECT {sql.ROW} FROM jobs ORDER BY seq"  # noqa: S608
SEGMENTS: Final = "SELECT first, count, at_ms, blob FROM history ORDER BY first"
FACT_KINDS: Final = "SELECT DISTINCT kind FROM facts"
KEYS: Final = "SELECT queue, key, seq, fingerprint, at_ms FROM keys ORDER BY id"
RESULTS: Final = "SELECT seq, until_ms, blob FROM results ORDER BY seq"
EARLY: Final = """SELECT seq FROM results WHERE EXISTS(
    SELECT 1 FROM jobs WHERE jobs.seq = results.seq) ORDER BY seq"""
JOBS_COUNT: Final = "SELECT count(*) FROM jobs"
MEMBERS_COUNT: Final = """SELECT (SELECT coalesce(sum(count), 0) FROM bundles)
    - (SELECT count(*) FROM gone)"""
EVENTS_COUNT: Final = "SELECT sum(count) FROM history"

_seq: Final = itemgetter(0)


class Snapshot:
    """While it is open the owner's log can't be cut off: it grows by what is written.

    A file whose maker was killed before it had tables is empty.
    """

    def __init__(self, path: Path, options: SqliteOptions | None = None) -> None:
        self._connection = open_for_reader(path, options)
        self._connection.execute("BEGIN")
        self._version = known_version(self._connection)
        self._is_empty = self._version == 0
        self.epoch = 0 if self._is_empty else self._number(sql.EPOCH)
        self._pending = Pending()
        if self._version >= PENDING_SINCE:
            self._pending = self._load()

    def rows(self) -> Iterator[Row]:
        """Every job, by seq."""
        has_held = self._version >= HELD_SINCE
        rows: Iterator[Row] = self._stream(ROWS if has_held else ROWS_BEFORE_HELD)
        together = heapq.merge(rows, self._bundled(), key=_seq)
        sorted_in = filter(None, map(self._pending.now, together))
        new = sorted(self._pending.puts.values(), key=_seq)
        return heapq.merge(sorted_in, new, key=_seq)

    def segments(self) -> Iterator[Segment]:
        """All of history that is left."""
        return map(Segment._make, self._stream(SEGMENTS))

    def facts(self, kind: str) -> Iterator[tuple[bytes, bytes]]:
        return self._stream(sql.FACTS, kind)

    def fact_kinds(self) -> list[str]:
        return [kind for (kind,) in self._stream(FACT_KINDS)]

    def idempotency_keys(self) -> Iterator[Key]:
        """All of them, in the order in which they came."""
        return self._stream(KEYS)

    def results(self) -> Iterator[Result]:
        """Every result, by seq."""
        return self._stream(RESULTS) if self._version >= RESULTS_SINCE else iter(())

    def early_results(self) -> Iterator[tuple[int]]:
        """Seqs of jobs that have left one and are still there."""
        if self._version < RESULTS_SINCE:
            return iter(())
        ends, puts = self._pending.ends, self._pending.puts
        early: Iterator[tuple[int]] = self._stream(EARLY)
        left = {row[0] for row in self.results()}
        bundled = (row[:1] for row in self._bundled() if row[0] in left)
        sorted_in = (x for x in heapq.merge(early, bundled) if x[0] not in ends)
        new = ((seq,) for seq in sorted(left) if seq in puts)
        return heapq.merge(sorted_in, new)

    def jobs_count(self) -> int:
        if self._is_empty:
            return 0
        pending = self._pending
        count = self._number(JOBS_COUNT) + len(pending.puts) - len(pending.ends)
        if self._version >= BUNDLES_SINCE:
            count += self._number(MEMBERS_COUNT)
        return count

    def events_count(self) -> int:
        return 0 if self._is_empty else self._number(EVENTS_COUNT)

    def close(self) -> None:
        self._connection.close(force=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _bundled(self) -> Iterator[Row]:
        if self._version < BUNDLES_SINCE:
            return
        try:
            yield from bundles.stream(self._connection)
        except apsw.Error as error:
            raise failure(error) from error

    def _load(self) -> Pending:
        try:
            return load(self._connection)
        except apsw.Error as error:
            raise failure(error) from error

    def _number(self, statement: str) -> int:
        try:
            return int(self._connection.execute(statement).get or 0)
        except apsw.Error as error:
            raise failure(error) from error

    def _stream(self, statement: str, *values: str) -> Iterator[Any]:
        if self._is_empty:
            return
        try:
            yield from self._connection.execute(statement, values)
        except apsw.Error as error:
            raise failure(error) from error
