"""Takes the inbox of a database in: page by page, as soon as it is told of jobs there.

A hint may be lost or come twice; behind it the inbox is looked at every now and then.
Its connection is its own: it listens there, and the owner's commits do not wait for it.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Protocol

import psycopg

from headway.core.commands import Configure, Enqueue
from headway.core.config import QueueConfig
from headway.core.errors import QueueFull, RuleBroken
from headway.runtime.errors import OwnerBusy, OwnerStopped
from headway.runtime.inbound import Heard, Inbound, Refused
from headway.runtime.owner import Ask
from headway.store.errors import StoreError
from headway.store.postgres import statements as sql
from headway.store.postgres.connections import connect, wait_for
from headway.store.postgres.connections import select as read
from headway.store.postgres.reader import discard

PAGE: Final = 500
PAGE_BYTES: Final = 16 << 20
"""Entries that are read at one go; a single one may be as large."""
POLL_S: Final = 0.25
"""How often the inbox is looked at when no hint comes."""
WHOLE_EVERY: Final = 240
"""Every so many looks it is looked at from its beginning: what was refused and is now
allowed again lies there."""

_NEVER: Final = 2**63 - 1

Read = Callable[[str, bytes], Enqueue]
"""Reads what was left for a queue; a broken rule says what it is not."""


class Taker(Protocol):
    def submit(self, ask: Ask) -> Future[Any]: ...


class InboxFeed:
    """Brings what is left in the inbox to one owner, for as long as that one lives."""

    def __init__(
        self,
        address: str,
        partition: int,
        epoch: int,
        taker: Taker,
        *,
        read: Read,
        heard: Heard,
    ) -> None:
        self._address = address
        self._partition = partition
        self._epoch = epoch
        self._taker = taker
        self._read = read
        self._heard = heard
        self._made: set[str] = set()
        """Queues that are known to be there."""
        self._after: tuple[int, int] = (0, -1)
        """The last entry that was read, by its transaction and its own number."""
        self._next_xact = _NEVER
        """Where the next look begins."""
        self._looks = 0
        self._is_closing = False
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(
            target=self._feed, name="headway-inbox", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Called once, by whoever has made it."""
        self._is_closing = True
        os.eventfd_write(self._woken, 1)
        self._thread.join()
        os.close(self._woken)

    def _feed(self) -> None:
        while not self._is_closing:
            try:
                self._listen()
            except (StoreError, psycopg.Error):
                # The owner has a connection of its own, and may be well.
                self._wait([])
            except OwnerStopped:
                return

    def _listen(self) -> None:
        connection = connect(self._address)
        try:
            connection.execute(sql.LISTEN.format(int(self._partition)))
            while not self._is_closing:
                if not self._page(connection) and not is_told(connection):
                    self._wait([connection.fileno()])
        finally:
            discard(connection)

    def _page(self, connection: Any) -> bool:
        """Whether there is likely to be more at once."""
        values = (self._partition, *self._after, PAGE, PAGE_BYTES)
        found = read(connection, sql.INBOX, values)
        epoch, horizon, is_all = found[0][:3]
        if epoch != self._epoch:
            self._is_closing = True
            self._heard.replaced()
            return False
        entries = [row[3:] for row in found if row[3] is not None]
        waiting = self._take(entries)
        # What is not seen yet belongs to a transaction that was under way when it was
        # begun to look.
        self._next_xact = min(self._next_xact, horizon, *waiting)
        if not is_all:
            self._after = entries[-1][:2]
            return True
        self._looks += 1
        if self._looks % WHOLE_EVERY == 0:
            self._next_xact = 0
        self._after = (self._next_xact, -1)
        self._next_xact = _NEVER
        return bool(entries) and not waiting

    def _take(self, entries: list[Any]) -> list[int]:
        """Answers the transactions of those that have to wait."""
        asked: list[tuple[Inbound, str, Future[Any]]] = []
        waiting: list[int] = []
        for xact, number, queue, packed in entries:
            ask = self._inbound(xact, number, queue, packed)
            try:
                if ask.command is not None:
                    self._make(queue)
                asked.append((ask, queue, self._taker.submit(ask)))
            except OwnerBusy:
                waiting.append(xact)
        for ask, queue, future in asked:
            answer = future.result()
            if isinstance(answer, QueueFull):
                waiting.append(ask.xact)
            elif isinstance(answer, RuleBroken | Refused):
                self._heard.refused(queue, answer.code)
        return waiting

    def _make(self, queue: str) -> None:
        """A queue that is not there yet is made, as it is for every other caller."""
        if queue not in self._made:
            self._taker.submit(Configure(QueueConfig(name=queue), is_new_only=True))
            self._made.add(queue)
            self._heard.found(queue)

    def _inbound(self, xact: int, number: int, queue: str, packed: bytes) -> Inbound:
        try:
            return Inbound(xact, number, self._read(queue, packed))
        except RuleBroken as error:
            refusal = Refused(error.code, f"{error.code}: {error}"[:500])
            return Inbound(xact, number, None, refusal)

    def _wait(self, descriptors: list[int]) -> None:
        wait_for([self._woken, *descriptors], POLL_S)


def is_told(connection: Any) -> bool:
    """Whether a hint came with an answer: then nothing is left there to wait for."""
    return bool(list(connection.notifies(timeout=0)))
