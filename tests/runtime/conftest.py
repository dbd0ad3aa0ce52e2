from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.shared import InPostgres
from tests.store.places import InMemory, InSqlite, Place


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hundreds of small commits each: too long where every one crosses a socket."""
    for item in items:
        if "test_nine_bugs" in item.nodeid and "[postgres" in item.nodeid:
            item.add_marker(pytest.mark.long)


@pytest.fixture(
    params=[InMemory, InSqlite, InPostgres], ids=["memory", "sqlite", "postgres"]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A new and empty place, in memory, in a file and in a database."""
    made = request.param(tmp_path)
    yield made
    made.close()
