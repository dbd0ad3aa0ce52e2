from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.places import PLACES, Place


@pytest.fixture(params=PLACES, ids=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A new and empty place, once in memory and once in a file."""
    made = request.param(tmp_path)
    yield made
    made.close()
