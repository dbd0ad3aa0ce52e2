"""Answers from the index: brief reads by a connection of its own, all of them bounded."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

import apsw

from headway.core.errors import UnknownJob
from headway.search import cursors, lookups, plans, schema
from headway.search import statements as sql
from headway.search.cursors import Cursor
from headway.search.errors import NotIndexed, SearchFailed, SearchTooSlow
from headway.search.query import By, Search, check, check_limit, check_name
from headway.search.rows import JobRow, decode_told
from headway.search.schema import STATES
from headway.search.views import (
    DeadGroup,
    FoundJob,
    Gap,
    IndexPlace,
    LaneCounts,
    Page,
    TenantCounts,
    Told,
    found,
)

LONGEST_MS: Final = 2_000
STEPS_PER_LOOK: Final = 5_000
"""Steps of SQLite's machine between looks at the clock."""
GAPS_MAX: Final = 100
REPLY_KEY_LENGTH_MAX: Final = 1_024


class Finder:
    """The read side of an index. Calls from several threads take turns."""

    def __init__(self, path: Path, longest_ms: int = LONGEST_MS) -> None:
        self._path = path
        self._longest_s = longest_ms / 1_000
        self._turn = Lock()
        self._connection: apsw.Connection | None = None
        self._inode = 0

    def search(self, search: Search) -> Page:
        """A page of the jobs that the filters allow.

        While jobs change, none comes twice; one that changes may move past the reader.
        """
        check(search)
        with self._reading() as connection:
            key = connection.execute(sql.CURSOR_KEY).get
            place = _place(connection)
            cursor = Cursor(0, place.next)
            if search.cursor is not None:
                cursor = cursors.unpack(search.cursor, search, key)
            low, high = _range(connection, search, cursor)
            statement, values = plans.plan(search, low, high)
            rows = [JobRow(*row) for row in connection.execute(statement, values)]
            gap = connection.execute(sql.LAST_GAP).get or 0
        is_more = len(rows) > search.limit
        del rows[search.limit :]
        following = None
        if is_more:
            last = plans.key_of(search, rows[-1].seq, rows[-1].changed)
            following = cursors.pack(Cursor(last, cursor.end), search, key)
        return Page([found(row, gap) for row in rows], following, place)

    def job(self, seq: int) -> FoundJob:
        """One job, whether it is over or not; raises UnknownJob if it is not there."""
        rows = self._select(lookups.JOB, (_bounded(seq),))
        if not rows:
            raise UnknownJob(f"job {seq} is not in the index")
        gap = self._select(sql.LAST_GAP, ())
        return found(JobRow(*rows[0]), gap[0][0] if gap else 0)

    def timeline(self, seq: int, after: int = 0, limit: int = 100) -> list[Told]:
        """What happened to a job after an event, in order, but for heartbeats."""
        check_limit(limit)
        values = (_bounded(seq), _bounded(after), limit)
        told = [
            Told(number, event)
            for (blob,) in self._select(lookups.TIMELINE, values)
            for number, event in decode_told(blob)
            if number > after
        ]
        return told[:limit]

    def counts(self, queue: str) -> list[LaneCounts]:
        """The jobs of a queue in the index, by lane and state."""
        check_name("queue", queue)
        lanes: dict[int, dict[Any, int]] = {}
        for slo_ms, state, n in self._select(lookups.LANES, (queue,)):
            lanes.setdefault(slo_ms, {})[STATES[state]] = n
        return [LaneCounts(slo_ms, states) for slo_ms, states in lanes.items()]

    def tenants(
        self, queue: str, after: str | None = None, limit: int = 100
    ) -> list[TenantCounts]:
        """The tenants of a queue after one, in the order of their names."""
        check_limit(limit)
        check_name("queue", queue)
        check_name("after", after or "")
        statement = lookups.TENANTS if after is None else lookups.TENANTS_AFTER
        # No tenant has more rows than there are states, so the first ones are whole.
        most = limit * len(STATES)
        tenants: dict[str, dict[Any, int]] = {}
        for tenant, state, n in self._select(statement, (queue, after or "", most)):
            tenants.setdefault(tenant, {})[STATES[state]] = n
        listed = [TenantCounts(tenant, states) for tenant, states in tenants.items()]
        return listed[:limit]

    def dead_groups(self, queue: str) -> list[DeadGroup]:
        """Dead letters by what they died of, the largest group first."""
        check_name("queue", queue)
        groups = [DeadGroup(*row) for row in self._select(lookups.GROUPS, (queue,))]
        return sorted(groups, key=lambda group: (-group.count, group.group))

    def waiting_for(self, queue: str, reply_key: str, limit: int = 100) -> list[int]:
        """Jobs that wait for this reply."""
        check_limit(limit)
        check_name("queue", queue)
        check_name("reply_key", reply_key, REPLY_KEY_LENGTH_MAX)
        return [
            seq for (seq,) in self._select(lookups.WAITING, (queue, reply_key, limit))
        ]

    def position(self) -> IndexPlace:
        with self._reading() as connection:
            return _place(connection)

    def gaps(self) -> list[Gap]:
        """What was missed, the newest first."""
        return [Gap(*row) for row in self._select(sql.GAPS, (GAPS_MAX,))]

    def close(self) -> None:
        with self._turn:
            self._let_go()

    def _select(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._reading() as connection:
            return list(connection.execute(statement, values))

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """One state of the index for all that is read, and not for long."""
        with self._turn:
            connection = self._opened()
            until_s = time.monotonic() + self._longest_s
            connection.set_progress_handler(
                lambda: time.monotonic() > until_s, STEPS_PER_LOOK
            )
            try:
                connection.execute("BEGIN")
                if not schema.is_current(connection):
                    raise NotIndexed(f"{self._path} is not an index of this version")
                yield connection
            except apsw.InterruptError as error:
                longest_ms = round(self._longest_s * 1_000)
                raise SearchTooSlow(
                    f"given up after {longest_ms} ms: name a queue, a label or a "
                    "shorter time"
                ) from error
            except apsw.Error as error:
                self._let_go()
                raise SearchFailed(f"{type(error).__name__}: {error}") from error
            finally:
                if self._connection is connection:
                    connection.set_progress_handler(None)
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")

    def _opened(self) -> apsw.Connection:
        """The index that is there now: it may be removed and made anew at any time."""
        try:
            inode = self._path.stat().st_ino
        except OSError as error:
            self._let_go()
            raise NotIndexed(f"there is no index at {self._path}") from error
        if self._connection is None or inode != self._inode:
            self._let_go()
            try:
                self._connection = schema.open_for_finder(self._path)
            except apsw.Error as error:
                raise NotIndexed(f"{self._path} can't be opened: {error}") from error
            self._inode = inode
        return self._connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(force=True)


def _place(connection: apsw.Connection) -> IndexPlace:
    next_event, at_ms, *_ = connection.execute(sql.PLACE).get
    return IndexPlace(next_event, at_ms)


def _range(
    connection: apsw.Connection, search: Search, cursor: Cursor
) -> tuple[int, int]:
    """Keys between which the rest of the search lies, as well as is known."""
    low, high = plans.BEFORE_ALL, plans.AFTER_ALL
    is_by_change = search.by is By.CHANGED
    if is_by_change:
        # What changes from now on would come again at the end.
        high = cursor.end
    if search.since_ms is not None:
        mark = connection.execute(lookups.MARK_BEFORE, (search.since_ms,)).get
        if mark is not None:
            low = mark[0] - 1 if is_by_change else mark[1]
    if search.until_ms is not None:
        mark = connection.execute(lookups.MARK_FROM, (search.until_ms,)).get
        if mark is not None:
            high = min(high, mark[0] if is_by_change else mark[1] + 1)
    if search.cursor is not None:
        if search.is_newest_first:
            high = min(high, cursor.last)
        else:
            low = max(low, cursor.last)
    return low, high


def _bounded(number: int) -> int:
    """What SQLite can't count to is nobody's number."""
    return max(0, min(number, plans.AFTER_ALL))
