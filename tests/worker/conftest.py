"""Queues for workers, on a server and in a file; and worker processes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.processes import descendants
from tests.server.conftest import serve, served
from tests.server.process import command
from tests.worker.places import PATIENCE_S, Place, ServedPlace, file_place
from tests.worker.processes import Notes, Start

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


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def app() -> str:
    """The app that worker processes run."""
    return "tests.worker.handlers:app"


@pytest.fixture
def start(place: Place, notes: Notes, app: str) -> Iterator[Start]:
    """Starts `headway worker` with these options."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*options: str) -> "subprocess.Popen[bytes]":
        arguments = command("worker", app, *options)
        variables = {"TEST_URL": place.url, "TEST_NOTES": str(notes.path)}
        started.append(subprocess.Popen(arguments, env={**os.environ, **variables}))
        return started[-1]

    yield run
    for process in started:
        # A fleet that is killed can't end its members.
        members = descendants(process.pid)
        process.kill()
        process.wait(PATIENCE_S)
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
