"""Between the event loop and the owner's thread: asks go in, answers come back.

Answers of one commit wake the loop once, however many they are.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from headway.runtime.embedded import Link, give_back
from headway.runtime.errors import RuntimeFailure
from headway.runtime.owner import Ask
from headway.runtime.results import Held, taken_back


class Desk:
    """Puts asks to an owner and brings the answers back to the loop."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._loop = loop
        self._answered: deque[tuple[Asking, int, Any]] = deque()
        self._is_woken = False
        self._held: dict[Asking, None] = {}
        """Those that wait for jobs or results and have no answer yet."""

    def ask(self, asks: list[Ask], done: Callable[[list[Any]], None]) -> "Asking":
        """`done` gets the answers in the order of the asks, errors among them."""
        asking = Asking(self, asks, done)
        for place, ask in enumerate(asks):
            asking.submit(place, ask)
        return asking

    def submit(self, ask: Ask) -> Future[Any]:
        return self._link.submit(ask)

    def end_waits(self) -> None:
        """Whoever waits for a job is told that there is none, or how another stands."""
        for asking in list(self._held):
            asking.withdraw()

    def began(self, asking: "Asking") -> None:
        self._held[asking] = None

    def ended(self, asking: "Asking") -> None:
        self._held.pop(asking, None)

    def arrived(self, asking: "Asking", place: int, answer: Any) -> None:
        """In the owner's thread."""
        self._answered.append((asking, place, answer))
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # First: an answer that comes from here on wakes the loop again.
        self._is_woken = False
        answered = self._answered
        while answered:
            asking, place, answer = answered.popleft()
            asking.answered(place, answer)


class Asking:
    """Some asks of one request, until all are answered or nobody wants to know."""

    def __init__(
        self, desk: Desk, asks: list[Ask], done: Callable[[list[Any]], None]
    ) -> None:
        self._desk = desk
        self._done = done
        self._answers: list[Any] = [None] * len(asks)
        self._left = len(asks)
        self._held: tuple[Held, Future[Any]] | None = None
        self._is_abandoned = False

    def submit(self, place: int, ask: Ask) -> None:
        desk = self._desk
        try:
            future = desk.submit(ask)
        except RuntimeFailure as error:
            desk.arrived(self, place, error)
            return
        if isinstance(ask, Held):
            self._held = (ask, future)
            desk.began(self)
        future.add_done_callback(
            lambda done: desk.arrived(self, place, done.exception() or done.result())
        )

    def answered(self, place: int, answer: Any) -> None:
        self._answers[place] = answer
        self._left -= 1
        if self._left:
            return
        if self._held is not None:
            self._desk.ended(self)
            # The future knows us: together we would wait for the collector of cycles.
            self._held = None
        if not self._is_abandoned:
            self._done(self._answers)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for jobs or a result and has no answer yet."""
        return self._held is not None and self._left > 0

    def withdraw(self) -> None:
        """Its wait is over; what was granted is still handed out."""
        if self._held is not None and self.is_waiting:
            with suppress(RuntimeFailure):
                self._desk.submit(taken_back(self._held[0]))

    def abandon(self) -> None:
        """The caller is gone: jobs that were granted to it go back unused."""
        self._is_abandoned = True
        if self._held is not None and self.is_waiting:
            give_back(self._desk, *self._held)
