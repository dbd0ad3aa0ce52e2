"""Connections to a database, and what is wrong with it when there is none."""

import select as select_module
from typing import Any, Final, LiteralString

import psycopg

from headway.store.errors import NotDurable, StoreError, StoreFailed, StoreFull

CONNECT_S: Final = 10
DEFAULTS: Final[dict[str, str | int]] = {
    "connect_timeout": CONNECT_S,
    # A server that is cut off and says nothing is noticed within about ten seconds.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "headway",
    "client_encoding": "utf8",
}
"""Unless the address says otherwise."""
SETTINGS: Final = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
WANTED: Final[dict[str, frozenset[str]]] = {
    "fsync": frozenset({"on"}),
    "full_page_writes": frozenset({"on"}),
    "synchronous_commit": frozenset({"on", "local", "remote_write", "remote_apply"}),
    "default_transaction_isolation": frozenset({"read committed"}),
}
"""What a commit is flushed by, and under what the epoch is read as it is now."""


def connect(address: str, patience_s: float | None = None) -> Any:
    """Every statement is a transaction; none is prepared, as poolers may need it.

    A server that says nothing for longer than the patience counts as gone.
    """
    own: dict[str, str | int] = {}
    if patience_s is not None:
        own["connect_timeout"] = max(2, round(patience_s))
        own["tcp_user_timeout"] = max(500, round(1_000 * patience_s))
    try:
        given = psycopg.conninfo.conninfo_to_dict(address)
        return psycopg.connect(
            **(DEFAULTS | own | given), autocommit=True, prepare_threshold=None
        )
    except psycopg.Error as error:
        raise StoreFailed(f"the database can't be reached: {_line(error)}") from error


def wait_for(descriptors: list[int], seconds: float) -> None:
    """Until one of them can be read, or time is up; their numbers may be large."""
    poll = select_module.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select_module.POLLIN)
    poll.poll(max(0.0, 1_000 * seconds))


def shown(address: str) -> str:
    """Where it is, for people: without a password or anything else that is secret."""
    try:
        given = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        return "postgresql://(unreadable)"
    host, port = given.get("host") or "", given.get("port")
    place = f"{host}:{port}" if port and not str(host).startswith("/") else host
    return f"postgresql://{place}/{given.get('dbname') or ''}"


def refuse_careless(connection: Any) -> None:
    """A database that may lose what it has confirmed is not used."""
    found = dict(connection.execute(SETTINGS, (list(WANTED),)).fetchall())
    for name, good in WANTED.items():
        if found.get(name) not in good:
            raise NotDurable(
                f"the database has {name} = {found.get(name)}; "
                f"it must be {' or '.join(sorted(good))}"
            )


def select(
    connection: Any, statement: LiteralString, values: tuple[object, ...]
) -> list[Any]:
    cursor = connection.cursor(binary=True)
    found: list[Any] = cursor.execute(statement, values).fetchall()
    return found


def failure(error: Exception) -> StoreError:
    """What an error of the database means for the truth."""
    text = f"{type(error).__name__}: {_line(error)}"
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull(text)
    return StoreFailed(text)


def _line(error: Exception) -> str:
    """Its first line: others may quote what was sent."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else ""
