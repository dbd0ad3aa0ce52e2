"""Servers for tests, stopped when the test is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.process import Serve, Served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts `headway serve` with these options, on a folder of the test's own."""
    servers: list[Served] = []

    def started(*options: str) -> Served:
        servers.append(Served(tmp_path / "data", *options))
        return servers[-1]

    yield started
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One open server for all tests of a module."""
    server = Served(tmp_path_factory.mktemp("served") / "data")
    yield server
    server.stop()
