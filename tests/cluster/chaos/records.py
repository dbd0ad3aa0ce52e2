"""Everything that clients asked and were told, with times, in one file."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

Outcome = Literal["ok", "fail", "unknown"]
"""It was done; it was surely not done; or nobody knows."""
_encode: Final = msgspec.json.Encoder().encode


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """A job as a worker was given it."""

    id: str
    token: str
    number: int


class Op(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One invocation. Times are seconds since the beginning, by one clock."""

    client: str
    verb: str
    node: str = ""
    queue: str = ""
    began_s: float
    ended_s: float = 0.0
    outcome: Outcome = "unknown"
    code: str = ""
    """What was answered, where that was no success."""
    numbers: list[int] = []
    """Of the jobs that were to be enqueued."""
    ids: list[str] = []
    """Of the jobs that were accepted, or of the job that was looked at."""
    jobs: list[Delivery] = []
    tokens: list[str] = []
    stale: list[str] = []
    state: str = ""
    """In which the job is said to be."""
    count: int = -1
    """Jobs that the queue is said to have."""


class Records:
    """Keeps them in memory, and in a file that outlives this process."""

    def __init__(self, path: Path) -> None:
        self.ops: list[Op] = []
        self._file = path.open("wb")
        self._turn = threading.Lock()
        self._zero_s = time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() - self._zero_s

    def add(self, op: Op) -> None:
        with self._turn:
            self.ops.append(op)
            self._file.write(_encode(op) + b"\n")

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> Iterator[Op]:
    """What a run has left."""
    decode = msgspec.json.Decoder(Op).decode
    with path.open("rb") as lines:
        for line in lines:
            yield decode(line)
