"""Worker processes of a test, what they wrote down, and jobs for them."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import headway
from headway.core.spec import JobSpec
from tests.worker.places import Place

Start = Callable[..., Popen[bytes]]
"""Starts `headway worker` with these options."""


class Notes:
    """What worker processes wrote down."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def pids(self) -> list[int]:
        """Of those that started to hang."""
        return [int(line.split()[1]) for line in self.lines()]


def enqueue(
    place: Place, queue: str, kind: str, calls: list[dict[str, Any]], **fields: Any
) -> None:
    """As anybody could, from anywhere."""
    specs = [
        JobSpec(kind=kind, payload=json.dumps(call).encode(), is_json=True, **fields)
        for call in calls
    ]
    with headway.App(place.url) as app:
        for first in range(0, len(specs), 1_000):
            app.ports.blocking().enqueue(queue, specs[first : first + 1_000])
