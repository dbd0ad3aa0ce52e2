"""Threads for handlers that block: so many at most, and one can be given up.

Nobody can end a thread from outside. One whose handler runs too long is abandoned:
another takes its place, and it ends when its handler does, if ever.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Outcome = tuple[Any, BaseException | None]
"""What was returned, or what was raised."""


class Errand:
    """One call under way in a thread."""

    def __init__(
        self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.call = call
        self.context = contextvars.copy_context()
        self.loop = loop
        self.outcome: asyncio.Future[Outcome] = loop.create_future()
        self.is_done = False
        self.is_abandoned = False

    def run(self) -> Outcome:
        try:
            return self.context.run(self.call), None
        except BaseException as error:  # it harms its own job only
            return None, error

    def deliver(self, outcome: Outcome) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


class Threads:
    """A pool that grows with what it is asked to do, up to its size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._errands: SimpleQueue[Errand | None] = SimpleQueue()
        self._turn = threading.Lock()
        self._count = 0
        self._idle = 0

    def start(self, call: Callable[[], Any]) -> Errand:
        """Runs the call in a thread; its outcome comes to the running loop."""
        errand = Errand(call, asyncio.get_running_loop())
        with self._turn:
            if self._idle > 0:
                self._idle -= 1
            elif self._count < self._most:
                self._count += 1
                # A thread that hangs must not keep the process from ending.
                threading.Thread(
                    target=self._work, name="headway-handler", daemon=True
                ).start()
            else:
                # All are busy: whoever is free next takes it, and is not counted idle.
                self._idle -= 1
        self._errands.put(errand)
        return errand

    def abandon(self, errand: Errand) -> bool:
        """Gives the thread up; False if it has just finished."""
        with self._turn:
            if errand.is_done:
                return False
            errand.is_abandoned = True
            self._count -= 1
            if self._idle < 0:
                # Somebody waits for this thread.
                self._count += 1
                self._idle += 1
                threading.Thread(
                    target=self._work, name="headway-handler", daemon=True
                ).start()
            return True

    def close(self) -> None:
        """Threads end when they are free; nobody waits for them."""
        for _ in range(self._most):
            self._errands.put(None)

    def _work(self) -> None:
        while (errand := self._errands.get()) is not None:
            outcome = errand.run()
            with self._turn:
                errand.is_done = True
                if errand.is_abandoned:
                    return
                self._idle += 1
            try:
                errand.loop.call_soon_threadsafe(errand.deliver, outcome)
            except RuntimeError:
                return  # The loop is closed: nobody wants to know any more.
            del errand, outcome
