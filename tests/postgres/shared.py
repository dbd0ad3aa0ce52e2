"""One PostgreSQL for all tests of a process; each test has a partition of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest

from headway.store.port import Store
from tests.postgres.cluster import Cluster, NotHere, running

_stack = ExitStack()
_clusters: list[Cluster] = []
_reasons: list[str] = []
_numbers = count(1)


def cluster() -> Cluster:
    """Started by the first test that needs it; without one, the test is skipped."""
    if not _clusters and not _reasons:
        try:
            _clusters.append(_stack.enter_context(running()))
            _migrate()
        except (NotHere, OSError, ImportError) as error:
            _reasons.append(str(error))
    if _reasons:
        pytest.skip(f"there is no PostgreSQL here: {_reasons[0]}")
    return _clusters[0]


def new_partition() -> str:
    return f"test-{next(_numbers)}"


def stop() -> None:
    _clusters.clear()
    _stack.close()


class InPostgres:
    """A partition of the shared server."""

    def __init__(self, _directory: object = None) -> None:
        self.address = cluster().address
        self.partition = new_partition()
        self._opened: list[Store] = []

    def open(self) -> Store:
        from headway.store.postgres.store import PostgresStore

        # Tables of history that are full at once, so that there are several.
        store = PostgresStore(self.address, self.partition, part_events=8)
        self._opened.append(store)
        return store

    def open_beside(self) -> Store:
        return self.open()

    def close(self) -> None:
        for store in self._opened:
            store.close()


def _migrate() -> None:
    from headway.store.postgres.migrations import migrate

    migrate(_clusters[0].address)


@contextmanager
def database(name: str, *, is_empty: bool = False) -> Iterator[str]:
    """The address of a database of its own, with our tables or without, for a while."""
    import psycopg

    from headway.store.postgres.migrations import migrate

    server = cluster().address
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            address = server.rpartition("/")[0] + "/" + name
            if not is_empty:
                migrate(address)
            yield address
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
