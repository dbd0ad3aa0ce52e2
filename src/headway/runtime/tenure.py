"""The way into a queue in a database: as its owner, for as long as nobody else is."""

import threading
from concurrent.futures import Future
from secrets import token_hex
from typing import Any, Final

from headway.runtime.errors import OwnerStopped
from headway.runtime.inbound import Heard
from headway.runtime.inbox import InboxFeed, Read
from headway.runtime.owner import Ask
from headway.runtime.service import Service
from headway.runtime.throttler import NONE, Throttling
from headway.store.errors import Fenced, StoreError
from headway.store.postgres.store import PostgresStore

AGAIN_S: Final = 0.05
AGAIN_MAX_S: Final = 2.0
"""After a failure it is tried again so soon; after several, so late."""


class Tenure:
    """Owns a partition, and takes it over again when the database was away.

    One that was replaced does not: two owners would else take it from each other for
    ever. Whoever comes last has it.
    """

    def __init__(
        self,
        address: str,
        partition: str,
        *,
        read: Read,
        heard: Heard,
        throttling: Throttling = NONE,
    ) -> None:
        """`read` makes commands of what applications leave in the inbox."""
        self._address = address
        self._partition = partition
        self._read = read
        self._heard = heard
        self._throttling = throttling
        self._name = token_hex(8)
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._is_replaced = False
        self._service: Service | None = None
        self._feed: InboxFeed | None = None
        self._why: Exception = OwnerStopped("the queue is closed")
        self._enter(is_again=False)
        self._thread = threading.Thread(
            target=self._stay, name="headway-tenure", daemon=True
        )
        self._thread.start()

    def submit(self, ask: Ask) -> Future[Any]:
        with self._turn:
            service = self._service
        if service is None:
            raise OwnerStopped(f"the partition is not owned: {self._why}")
        return service.submit(ask)

    def close(self) -> None:
        self._closing.set()
        self._leave()
        self._thread.join()

    def replaced(self) -> None:
        """The inbox has seen a newer owner, before a commit was refused."""
        self._is_replaced = True
        with self._turn:
            service = self._service
        if service is not None:
            service.close()

    def found(self, queue: str) -> None:
        self._heard.found(queue)

    def refused(self, queue: str, why: str) -> None:
        self._heard.refused(queue, why)

    def _enter(self, *, is_again: bool) -> None:
        store = PostgresStore(
            self._address, self._partition, self._name, is_again=is_again
        )
        service = Service(store, self._throttling)
        feed = InboxFeed(
            self._address,
            store.id,
            service.owner.epoch,
            service,
            read=self._read,
            heard=self,
        )
        with self._turn:
            self._service, self._feed = service, feed

    def _leave(self) -> None:
        with self._turn:
            service, self._service = self._service, None
            feed, self._feed = self._feed, None
        if service is not None and feed is not None:
            # First: what it has asked is answered while the owner lives.
            feed.close()
            service.close()

    def _stay(self) -> None:
        """Until it is closed or replaced."""
        while (service := self._service) is not None:
            why = service.wait()
            self._leave()
            self._why = why
            is_fenced = isinstance(why.__cause__, Fenced) or self._is_replaced
            if not self._closing.is_set() and (is_fenced or not self._return()):
                self._heard.replaced()
                return
            if self._closing.is_set():
                self._leave()

    def _return(self) -> bool:
        """Owns it again; False if somebody else does by now."""
        pause_s = AGAIN_S
        while not self._closing.wait(pause_s):
            try:
                self._enter(is_again=True)
                return True
            except Fenced as error:
                self._why = error
                return False
            except (StoreError, OwnerStopped) as error:
                self._why = error
            pause_s = min(2 * pause_s, AGAIN_MAX_S)
        return True
