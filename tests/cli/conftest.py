"""A real server in a process of its own, and `headway` as a user calls it."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.cli.main import headway as command

ROOT = Path(__file__).resolve().parents[2]
READY_S = 120.0

Call = Callable[..., Result]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    folder = tmp_path_factory.mktemp("server")
    process = subprocess.Popen(
        [
            sys.executable,
            *("-m", "headway.cli.main", "serve"),
            *("--data", str(folder), "--port", "0"),
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], READY_S)[0]
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def call(server: str) -> Call:
    """Runs a command; it must end well unless a status, or any, is named."""

    def called(
        *arguments: object, status: int | None = 0, given: str | None = None
    ) -> Result:
        environment = {"HEADWAY_SERVER": server, "HEADWAY_TOKEN": "", "COLUMNS": "200"}
        done = CliRunner().invoke(
            command, [str(one) for one in arguments], input=given, env=environment
        )
        assert status is None or done.exit_code == status, done.output
        return done

    return called
