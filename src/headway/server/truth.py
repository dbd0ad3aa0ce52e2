"""Where a server's jobs are kept: in a file of its own, or in a database."""

from asyncio import AbstractEventLoop
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from headway.runtime.door import Door
from headway.runtime.embedded import Link
from headway.runtime.inbound import Heard
from headway.runtime.throttler import NONE, Throttling
from headway.store.port import Past
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.reader import Reader


class Truth(Protocol):
    """What the parts of a server need to get at it."""

    def enter(self, heard: Heard, loop: AbstractEventLoop) -> Link:
        """Becomes its owner, or finds the way to it; called by another thread than the
        loop's.
        """

    def open_past(self) -> Past:
        """History, beside the owner."""

    def search(self, index: Path) -> tuple[list[str], Mapping[str, str]]:
        """How the process that feeds the index is started: arguments, environment."""


class InFile:
    def __init__(
        self, path: Path, *, is_apart: bool = False, throttling: Throttling = NONE
    ) -> None:
        self._path = path
        self._throttling = throttling
        self._is_apart = is_apart

    def enter(self, heard: Heard, loop: AbstractEventLoop) -> Link:
        """The lock of a file keeps others away: nobody replaces its owner."""
        if self._is_apart:
            from headway.runtime.apart import Apart

            return Apart(self._path, self._throttling, loop)
        return Door(self._path, self._throttling, loop)

    def open_past(self) -> Past:
        return Reader(open_for_reader(self._path))

    def search(self, index: Path) -> tuple[list[str], Mapping[str, str]]:
        return [str(self._path), str(index)], {}


class InDatabase:
    """A partition of a PostgreSQL database, whose address may hold a password."""

    def __init__(
        self, address: str, partition: str, throttling: Throttling = NONE
    ) -> None:
        self._throttling = throttling
        self._address = address
        self._partition = partition

    def enter(self, heard: Heard, loop: AbstractEventLoop) -> Link:
        from headway.runtime.tenure import Tenure
        from headway.server.inbox import enqueue_of

        return Tenure(
            self._address,
            self._partition,
            read=enqueue_of,
            heard=heard,
            throttling=self._throttling,
        )

    def open_past(self) -> Past:
        from headway.store.postgres.reader import open_reader

        return open_reader(self._address, self._partition)

    def search(self, index: Path) -> tuple[list[str], Mapping[str, str]]:
        """Arguments can be read by everybody on the machine; the environment can't."""
        arguments = ["-", str(index), "--partition", self._partition]
        return arguments, {"HEADWAY_STORE": self._address}
