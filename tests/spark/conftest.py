"""One Spark for all tests: they run in one process, marked by their group."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.spark.session import session
from tests.server.process import Served


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Small and quick to start, and otherwise as users have it."""
    made = session(
        "tests",
        "local[2,3]",
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
            # With few rows most of the time would go into plans and their compilation.
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            # By itself the room for code is small then, full after a minute, and all
            # that comes is interpreted.
            "spark.driver.extraJavaOptions": (
                "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
            ),
        },
    )
    yield made
    made.stop()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of the test's own."""
    server = Served(tmp_path / "data")
    yield server
    server.stop()


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """All rows as plain values, in an order of their own."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(rows, key=lambda row: json.dumps(row, default=str, sort_keys=True))
