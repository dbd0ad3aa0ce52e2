"""Connections to a store's file, with their settings; errors are ours from here on."""

from pathlib import Path
from typing import Final

import apsw

from headway.store.errors import StoreFailed, StoreLocked
from headway.store.sqlite import log, pragmas, schema
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.reader import discard, failure

READ_ONLY: Final = apsw.SQLITE_OPEN_READONLY
READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

USES_KEPT: Final = 512
"""Compiled statements are kept by their last uses, as many as this.

Every row of a batch is one: by less, writing a hundred rows would throw out all other
statements of a commit, to be compiled again at the next one.
"""


def open_for_owner(path: Path, options: SqliteOptions) -> apsw.Connection:
    """A connection that may write, with its settings, its schema and a durable log."""
    connection = _connect(path, READ_WRITE, options)
    try:
        if options.is_locked:
            log.renew(connection, str(path), options.vfs)
        pragmas.set_for_owner(connection, options)
        schema.migrate(connection)
    except BaseException as error:
        discard(connection)
        raise _explained(error, path) from error
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    return connection


def open_for_reader(
    path: Path, options: SqliteOptions | None = None
) -> apsw.Connection:
    """A connection to a file that exists; it changes nothing there."""
    return _connect(path, READ_ONLY, options or SqliteOptions())


def _connect(path: Path, flags: int, options: SqliteOptions) -> apsw.Connection:
    """A file that turns out to be none of ours is left as it is, its log too."""
    try:
        connection = apsw.Connection(
            str(path), flags=flags, vfs=options.vfs, statementcachesize=USES_KEPT
        )
    except apsw.Error as error:
        raise _explained(error, path) from error
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # Or a statement with a bound LIMIT is compiled anew for every other value.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        pragmas.set_before_reading(connection, options)
        schema.known_version(connection)
        if flags == READ_ONLY:
            pragmas.set_for_reader(connection)
    except BaseException as error:
        discard(connection)
        raise _explained(error, path) from error
    return connection


def _explained(error: BaseException, path: Path) -> BaseException:
    match error:
        case apsw.BusyError():
            return StoreLocked(f"{path} is in use by another connection")
        case apsw.CantOpenError():
            return StoreFailed(f"{path} can't be opened: {error}")
        case apsw.Error():
            return failure(error)
    return error
