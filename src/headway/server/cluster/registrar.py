"""Renews a node's lease and carries its changes to the tables, in a thread of its own.

A hint may be lost: behind it the tables are looked at with every renewal.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from headway.core.errors import RuleBroken
from headway.store.errors import StoreError
from headway.store.postgres.cluster import Me, Operator, Seen
from headway.store.postgres.connections import wait_for

BEATS: Final = 5
"""So often a lease is renewed within its length."""
SOON_S: Final = 0.05
"""How often it is looked while something is about to happen."""
T = TypeVar("T")


class Heard(Protocol):
    """Is told on the loop."""

    def beaten(self, seen: Seen, began_s: float) -> None:
        """The lease was renewed; when that was begun, by `boot_s`."""

    def missed(self, error: StoreError) -> None:
        """The lease could not be renewed; it is tried again."""

    def ousted(self) -> None:
        """Another process has the name: still, or by now."""


class Registrar:
    """Made and used on the loop."""

    def __init__(self, address: str, me: Me, heard: Heard) -> None:
        self._registry = Operator(address, me.lease_ms / 1_000)
        self._me = me
        self._heard = heard
        self._every_s = me.lease_ms / 1_000 / BEATS
        self._loop = asyncio.get_running_loop()
        self._asks: deque[Callable[[], None]] = deque()
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._version = 0
        self._has_begun = False
        self._is_hurried = False
        self._is_leaving = False
        self._is_closing = False
        self._next_s = 0.0
        self._heard_s = boot_s()
        """When the loop last took notice: one that is stuck renews nothing."""
        self._thread = threading.Thread(
            target=self._work, name="headway-lease", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def ask(
        self,
        work: Callable[[Operator, Me], T],
        then: Callable[[T | Exception], None] | None = None,
    ) -> None:
        """Does it in the thread, in the order of the asks; `then` is told on the loop."""

        def carry_out() -> None:
            answer: T | Exception
            try:
                answer = work(self._registry, self._me)
            except (StoreError, RuleBroken) as error:
                answer = error
            if then is not None:
                self._tell(then, answer)

        self._asks.append(carry_out)
        self._wake()

    async def asked(self, work: Callable[[Operator, Me], T]) -> T:
        """The answer; raises what stands against it."""
        answered: asyncio.Future[T] = self._loop.create_future()

        def told(answer: T | Exception) -> None:
            if answered.done():
                return
            if isinstance(answer, Exception):
                answered.set_exception(answer)
            else:
                answered.set_result(answer)

        self.ask(work, told)
        return await answered

    def look_soon(self) -> None:
        """Renews and looks at once."""
        self._next_s = 0.0
        self._wake()

    def hurry(self, *, is_on: bool) -> None:
        """Whether to look many times a second from now on."""
        if is_on and not self._is_hurried:
            self._wake()
        self._is_hurried = is_on

    def took_notice(self) -> None:
        self._heard_s = boot_s()

    def leave(self) -> None:
        """From now on the tables say that it is about to end."""
        self._is_leaving = True
        self.look_soon()

    async def close(self) -> None:
        """What was asked is carried out, if the database lets it."""
        self._is_closing = True
        self._wake()
        await asyncio.to_thread(self._thread.join)
        os.close(self._woken)

    def _work(self) -> None:
        while not self._is_closing:
            try:
                self._turn()
            except Exception as error:
                # A bug of ours must not end leases: it is told, and the next one tries.
                context = {"message": "lease", "exception": error}
                self._tell(self._loop.call_exception_handler, context)
                self._next_s = boot_s() + self._every_s
                wait_for([self._woken], self._every_s)
                self._clear()
        self._carry_out()
        self._registry.close()

    def _turn(self) -> None:
        """Renews, carries out what was asked, and waits for something to do."""
        while not self._is_closing:
            if boot_s() >= self._next_s:
                self._beat()
            self._carry_out()
            pause_s = SOON_S if self._is_hurried else self._every_s
            self._next_s = min(self._next_s, boot_s() + pause_s)
            if self._asks or self._is_closing:
                continue
            if self._registry.wait(self._woken, max(0.0, self._next_s - boot_s())):
                self._next_s = 0.0
            self._clear()

    def _beat(self) -> None:
        began_s = boot_s()
        self._next_s = began_s + self._every_s
        if began_s - self._heard_s > self._me.lease_ms / 1_000 and self._has_begun:
            # Nothing is renewed for a loop that is stuck, until it turns again.
            self._next_s = began_s + SOON_S
            self._tell(lambda _: self.took_notice(), None)
            return
        try:
            is_mine = self._registry.beat(
                self._me, is_first=not self._has_begun, is_leaving=self._is_leaving
            )
            if not is_mine:
                self._tell(lambda _: self._heard.ousted(), None)
                return
            self._has_begun = True
            seen = self._registry.look(self._version)
        except StoreError as error:
            # Soon again: what is left of the lease is not much.
            self._next_s = boot_s() + min(self._every_s, 4 * SOON_S)
            self._tell(self._heard.missed, error)
            return
        self._version = seen.version
        self._tell(lambda _: self._heard.beaten(seen, began_s), None)

    def _carry_out(self) -> None:
        while self._asks:
            self._asks.popleft()()

    def _tell(self, told: Callable[[Any], None], answer: Any) -> None:
        # A loop that is closed has nobody left who wants to know.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(told, answer)

    def _wake(self) -> None:
        os.eventfd_write(self._woken, 1)

    def _clear(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._woken)


def boot_s() -> float:
    """Seconds that go on while the machine sleeps, and that nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
