"""The way into a file's queue: as its owner, or through whoever owns it."""

import threading
import time
from asyncio import AbstractEventLoop
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from headway.runtime.errors import OwnerStopped
from headway.runtime.owner import Ask
from headway.runtime.service import Service
from headway.runtime.sharing import Guest, Host, LoopGuest
from headway.runtime.throttler import NONE, Throttling
from headway.store.errors import StoreError, StoreLocked
from headway.store.sqlite.store import SqliteStore

OPEN_S: Final = 10.0
"""How long an owner may take until it answers others."""
TRY_S: Final = 0.02


class Door:
    """Owns the file, or speaks to its owner; takes over when that one dies."""

    def __init__(
        self,
        path: Path,
        throttling: Throttling = NONE,
        loop: AbstractEventLoop | None = None,
    ) -> None:
        """The throttlers are asked for as long as it is the owner. With a loop, which
        must not wait for an answer then, that hears what another owner says.
        """
        self._path = path
        self._throttling = throttling
        self._loop = loop
        self._turn = threading.Lock()
        self._is_closed = False
        self._service: Service | None = None
        self._host: Host | None = None
        self._guest: Guest | None = None
        self._enter()

    @property
    def is_owner(self) -> bool:
        return self._service is not None

    def submit(self, ask: Ask) -> Future[Any]:
        with self._turn:
            if self._is_closed:
                raise OwnerStopped("the queue is closed")
            if self._is_shut():
                self._enter()
            link = self._service or self._guest
        assert link is not None
        return link.submit(ask)

    def close(self) -> None:
        with self._turn:
            self._is_closed = True
        # Not under the lock: an answer that comes now may be asking something itself.
        for part in (self._host, self._service, self._guest):
            if part is not None:
                part.close()

    def _is_shut(self) -> bool:
        """The owner is gone, or has stopped here: the file may be opened anew."""
        if self._service is not None:
            return self._service.is_stopped
        return self._guest is None or self._guest.is_lost

    def _enter(self) -> None:
        """As the owner if there is none; else through the one there is."""
        if self._host is not None:
            self._host.close()
        self._service = self._host = self._guest = None
        until_s = time.monotonic() + OPEN_S
        while True:
            try:
                self._own()
                return
            except StoreLocked as locked:
                with suppress(OSError):
                    self._guest = self._visit()
                    return
                if time.monotonic() > until_s:
                    raise OwnerStopped(
                        f"its owner does not answer: {locked}"
                    ) from locked
            # An owner that has the lock and does not listen yet, or not any more.
            time.sleep(TRY_S)

    def _own(self) -> None:
        service = Service(SqliteStore(self._path), self._throttling)
        try:
            self._host = Host(service, self._path)
        except OSError:
            service.close()
            raise
        self._service = service

    def _visit(self) -> Guest:
        """The way to whoever owns the file."""
        if self._loop is None:
            return Guest(self._path, self._lost)
        return LoopGuest(self._path, self._lost, self._loop)

    def _lost(self) -> None:
        """The owner is gone: somebody has to see to leases and schedules."""
        with self._turn:
            if self._is_shut() and not self._is_closed:
                # What stands against it is told to the next caller.
                with suppress(OwnerStopped, StoreError, OSError):
                    self._enter()
