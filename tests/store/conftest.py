"""Every store in turn."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.places import PLACES, Place
from tests.store.rows import Owner


@pytest.fixture(params=PLACES, ids=lambda kind: str(kind.__name__))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    opened: Place = request.param(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def owner(place: Place) -> Owner:
    return Owner(place.open())
