"""Queues for workers: on a server, and in a file of this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import serve, served
from tests.worker.places import Place, ServedPlace, file_place

__all__ = ["place", "serve", "served"]


@pytest.fixture(params=["server", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A fresh queue, and a look at it."""
    if request.param == "server":
        with ServedPlace(tmp_path / "data") as found:
            yield found
    else:
        with file_place(tmp_path / "jobs.db") as found:
            yield found
