"""The tables, as numbered steps forward. A step that was released never changes."""

from typing import Final

import apsw

from headway.store.errors import NotAStore, SchemaUnknown

APPLICATION_ID: Final = 0x48445759
"""Marks the file as ours in its header."""

MIGRATIONS: Final[tuple[str, ...]] = (
    # 1. A body of more than BODY_INLINE_BYTES lies in bodies, with NULL in jobs: a move
    #    rewrites the row, and should not rewrite a large body with it. The order needs
    #    no column for seq: it is the row id, which ends every index entry.
    #    keys has a row id, too: rows and the index by time grow at one end and are
    #    dropped at the other, so only the index by name is touched in random places.
    """
    CREATE TABLE meta(
        name TEXT PRIMARY KEY, value INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES('epoch', 0);
    CREATE TABLE jobs(
        seq INTEGER PRIMARY KEY,
        lane INTEGER NOT NULL,
        turn BLOB NOT NULL,
        first INTEGER NOT NULL,
        second INTEGER NOT NULL,
        change BLOB,
        body BLOB
    ) STRICT;
    CREATE INDEX jobs_in_order ON jobs(lane, turn, first, second);
    CREATE TABLE bodies(
        seq INTEGER PRIMARY KEY, body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE facts(
        kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
        PRIMARY KEY(kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE keys(
        id INTEGER PRIMARY KEY,
        queue TEXT NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX keys_by_name ON keys(queue, key);
    CREATE INDEX keys_by_time ON keys(at_ms);
    CREATE TABLE history(
        first INTEGER PRIMARY KEY,
        count INTEGER NOT NULL CHECK(count > 0),
        at_ms INTEGER NOT NULL,
        blob BLOB NOT NULL
    ) STRICT;
    """,
    # 2. Results that were asked for, by the job's seq: they come in about that order.
    """
    CREATE TABLE results(
        seq INTEGER PRIMARY KEY,
        until_ms INTEGER NOT NULL,
        blob BLOB NOT NULL
    ) STRICT;
    CREATE INDEX results_by_time ON results(until_ms);
    """,
    # 3. No table is new, but history tells of limits: versions that do not know such
    #    events must not open it.
    "",
    # 4. A job that is leased leaves its row and its place in the order as they are:
    #    what has become of it is written here, and while it is, the job is held,
    #    whatever its row says. So a lease appends a few bytes, and touches none of the
    #    pages that the job was written to long ago.
    """
    CREATE TABLE held(
        seq INTEGER PRIMARY KEY, change BLOB
    ) STRICT;
    """,
    # 5. What commits have done to jobs, as they did it: the tables of jobs hear of it
    #    later, and what is here counts before what they say.
    """
    CREATE TABLE pending(
        number INTEGER PRIMARY KEY, blob BLOB NOT NULL
    ) STRICT;
    """,
    # 6. Jobs that wait one behind the other, many as one row, which is known by the seq
    #    of its first job; second and last are the second key and the seq of its last.
    #    No two of them overlap. Jobs that have left one before it ends are in gone.
    """
    CREATE TABLE bundles(
        seq INTEGER PRIMARY KEY,
        lane INTEGER NOT NULL,
        turn BLOB NOT NULL,
        first INTEGER NOT NULL,
        second INTEGER NOT NULL,
        last INTEGER NOT NULL,
        count INTEGER NOT NULL,
        blob BLOB NOT NULL
    ) STRICT;
    CREATE INDEX bundles_in_order ON bundles(lane, turn, first, second);
    CREATE TABLE gone(
        bundle INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(bundle, seq)
    ) STRICT, WITHOUT ROWID;
    """,
)
RESULTS_SINCE: Final = 2
"""The version that brought results."""
HELD_SINCE: Final = 4
"""The version that writes apart what has become of leased jobs."""
PENDING_SINCE: Final = 5
"""The version in whose tables not all jobs are where they stand."""
BUNDLES_SINCE: Final = 6
"""The version in which a row may be many jobs."""


def version_of(connection: apsw.Connection) -> int:
    """The number of steps a file has taken; raises if it is not a store of ours."""
    try:
        version = int(connection.pragma("user_version"))
        marked = connection.pragma("application_id")
        count = connection.execute("SELECT count(*) FROM sqlite_schema").get
    except apsw.NotADBError as error:
        raise NotAStore(f"{connection.filename} is not a SQLite database") from error
    if marked == 0 and version == 0 and count == 0:
        return 0
    if marked != APPLICATION_ID:
        raise NotAStore(f"{connection.filename} is a SQLite database of something else")
    return version


def migrate(
    connection: apsw.Connection, migrations: tuple[str, ...] = MIGRATIONS
) -> None:
    """Takes the steps that a file has not taken, each of them whole or not at all."""
    version = known_version(connection, migrations)
    for number, step in enumerate(migrations[version:], version + 1):
        with connection:
            connection.execute(step)
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", number)


def known_version(
    connection: apsw.Connection, migrations: tuple[str, ...] = MIGRATIONS
) -> int:
    version = version_of(connection)
    if not 0 <= version <= len(migrations):
        raise SchemaUnknown(
            f"{connection.filename} has schema {version}; "
            f"this version knows schemas up to {len(migrations)}"
        )
    return version
