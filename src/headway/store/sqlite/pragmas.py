"""Settings of a connection. Each is read back: SQLite ignores what it can't do."""

from typing import Final

import apsw

from headway.store.errors import StoreFailed
from headway.store.sqlite.options import SqliteOptions

Pragma = tuple[str, str | int, str | int]
"""Name, what is set, what must be read back."""

PAGE_BYTES: Final = 4096

FIRST: Final[tuple[Pragma, ...]] = (
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
    ("temp_store", "MEMORY", 2),
)
WRITING: Final[tuple[Pragma, ...]] = (
    ("page_size", PAGE_BYTES, PAGE_BYTES),  # holds for a file that is still empty
    ("journal_mode", "WAL", "wal"),
    # NORMAL loses acknowledged commits in a power cut: measured, all 200 of 200
    ("synchronous", "FULL", 2),
    ("wal_autocheckpoint", 0, 0),
)
READING: Final[tuple[Pragma, ...]] = (("query_only", "ON", 1),)


def set_before_reading(connection: apsw.Connection, options: SqliteOptions) -> None:
    """What must hold before the first page is read; exclusive comes before WAL."""
    connection.set_busy_timeout(options.busy_ms)
    _set_all(connection, FIRST)
    connection.pragma("mmap_size", 0)
    if connection.pragma("mmap_size"):  # nothing, where a VFS has no such thing
        raise StoreFailed("the file is read through mmap although that was refused")
    if options.is_exclusive:
        _set(connection, "locking_mode", "EXCLUSIVE", "exclusive")


def set_for_owner(connection: apsw.Connection, options: SqliteOptions) -> None:
    _set_cache(connection, options.cache_bytes)
    _set_all(connection, WRITING)


def set_for_reader(connection: apsw.Connection) -> None:
    _set_all(connection, READING)


def _set_cache(connection: apsw.Connection, cache_bytes: int) -> None:
    kibibytes = cache_bytes // 1024
    _set(connection, "cache_size", -kibibytes, -kibibytes)


def _set_all(connection: apsw.Connection, pragmas: tuple[Pragma, ...]) -> None:
    for name, value, expected in pragmas:
        _set(connection, name, value, expected)


def _set(
    connection: apsw.Connection, name: str, value: str | int, expected: str | int
) -> None:
    connection.pragma(name, value)
    found = connection.pragma(name)
    if found != expected:
        raise StoreFailed(f"PRAGMA {name} is {found!r} although {value!r} was set")
