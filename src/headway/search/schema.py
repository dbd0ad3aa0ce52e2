"""The tables of the index. An index of another version is not migrated, but made anew.

Two numbers order jobs: `seq`, which grows with the time of enqueue, and `changed`, the
number of a job's last event, which grows with the time of that. No two jobs have one in
common, so a place in either order is one number.
"""

import secrets
from pathlib import Path
from typing import Final

import apsw

from headway.core.states import JobState

APPLICATION_ID: Final = 0x48445358
"""Marks the file as an index of ours in its header."""
VERSION: Final = 1
KEY_BYTES: Final = 16

STATES: Final = tuple(JobState)
CODES: Final = {state: code for code, state in enumerate(STATES)}

WAL_PAGES: Final = 8_192
CACHE_KIB: Final = 64 * 1024

# The indexes, each for one way to search:
#   jobs_by_change   a queue's jobs of a state, by their last change
#   jobs_by_state    the same for all queues
#   jobs_of_queue    a queue's jobs of a state, in the order of enqueue
#   jobs_of_tenant, jobs_of_kind, jobs_of_worker, jobs_of_reason
#                    in the order of enqueue; the empty name is not indexed
#   jobs_in_group    dead letters that died of the same
# An event's row holds what happened to its job in one batch, by the number of the last.
SCHEMA: Final = """
CREATE TABLE place(
    id INTEGER PRIMARY KEY CHECK(id = 1),
    next INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    digest BLOB NOT NULL,
    cursor_key BLOB NOT NULL
) STRICT;
CREATE TABLE gaps(
    first INTEGER PRIMARY KEY, next INTEGER NOT NULL, at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE marks(
    at_ms INTEGER PRIMARY KEY, number INTEGER NOT NULL, seq INTEGER NOT NULL
) STRICT;
CREATE TABLE jobs(
    seq INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    slo_ms INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    cost INTEGER NOT NULL,
    enqueued_ms INTEGER NOT NULL,
    labels BLOB,
    generation INTEGER NOT NULL,
    state INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    run_at_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    lease_until_ms INTEGER NOT NULL,
    is_cancel_requested INTEGER NOT NULL,
    reply_key TEXT NOT NULL,
    worker TEXT NOT NULL,
    reason TEXT NOT NULL,
    error TEXT NOT NULL,
    group_id INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_by_change ON jobs(queue, state, changed);
CREATE INDEX jobs_by_state ON jobs(state, changed);
CREATE INDEX jobs_of_queue ON jobs(queue, state);
CREATE INDEX jobs_of_tenant ON jobs(queue, tenant) WHERE tenant <> '';
CREATE INDEX jobs_of_kind ON jobs(queue, kind) WHERE kind <> '';
CREATE INDEX jobs_of_worker ON jobs(worker) WHERE worker <> '';
CREATE INDEX jobs_of_reason ON jobs(reason) WHERE reason <> '';
CREATE INDEX jobs_in_group ON jobs(group_id, changed) WHERE group_id > 0;
CREATE TABLE labels(
    name TEXT NOT NULL, value TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY(name, value, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE events(
    seq INTEGER NOT NULL, number INTEGER NOT NULL, blob BLOB NOT NULL,
    PRIMARY KEY(seq, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE lanes(
    queue TEXT NOT NULL, slo_ms INTEGER NOT NULL, state INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY(queue, slo_ms, state)
) STRICT, WITHOUT ROWID;
CREATE TABLE counts(
    queue TEXT NOT NULL, tenant TEXT NOT NULL, state INTEGER NOT NULL,
    slo_ms INTEGER NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY(queue, tenant, state, slo_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE reply_keys(
    queue TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY(queue, key, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE groups(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL, reason TEXT NOT NULL, line TEXT NOT NULL,
    n INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX groups_by_name ON groups(queue, reason, line);
"""
NAMES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table'"
TABLES: Final = (
    "place",
    "gaps",
    "marks",
    "jobs",
    "labels",
    "events",
    "lanes",
    "counts",
    "reply_keys",
    "groups",
)


def open_for_indexer(path: Path) -> apsw.Connection:
    """The index, made anew if it is none of this version, or damaged."""
    try:
        return _opened(path)
    except (apsw.CorruptError, apsw.NotADBError):
        remove(path)
        return _opened(path)


def remove(path: Path) -> None:
    """An index that is damaged can't tell what it held; all of it can be had again."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def open_for_finder(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.pragma("query_only", "ON")
    return connection


def is_current(connection: apsw.Connection) -> bool:
    """Whether the file is an index that this version can read."""
    marked = connection.pragma("application_id")
    return bool(
        marked == APPLICATION_ID and connection.pragma("user_version") == VERSION
    )


def make(connection: apsw.Connection) -> None:
    """Empties the index, whatever it was. Others see all of that or nothing."""
    with connection:
        found = {name for (name,) in connection.execute(NAMES)}
        for name in found & set(TABLES):
            connection.execute(f"DROP TABLE {name}")
        connection.execute(SCHEMA)
        connection.execute(
            "INSERT INTO place VALUES(1, 1, 0, 0, 0, x'', ?)",
            (secrets.token_bytes(KEY_BYTES),),
        )
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", VERSION)


def _opened(path: Path) -> apsw.Connection:
    # One thread feeds it, and needs no lock for each value that it binds.
    flags = (
        apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOMUTEX
    )
    connection = apsw.Connection(str(path), flags=flags)
    try:
        connection.set_busy_timeout(5_000)
        connection.pragma("journal_mode", "WAL")
        # Whole after a power cut, if not up to date: what is missing comes again.
        connection.pragma("synchronous", "NORMAL")
        connection.pragma("wal_autocheckpoint", WAL_PAGES)
        connection.pragma("cache_size", -CACHE_KIB)
        connection.pragma("temp_store", "MEMORY")
        if not is_current(connection):
            make(connection)
    except BaseException:
        connection.close(force=True)
        raise
    return connection
