"""Enqueues that a full queue holds back, until there is room or time is up."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from headway.core import defaults
from headway.core.errors import QueueFull
from headway.server.call import Call
from headway.server.plans import Asked, Awaited, Plan
from headway.server.problems import of_error

FULL: Final = b"headway-full"
AT_ONCE: Final = b"refuse"
"""In this header: the caller wants to know at once, whatever the queue's rules say."""
MAY_WAIT: Final = (FULL, b"wait")
"""On such an answer: without the header it would have been held back..."""
MAY_SHED: Final = (FULL, b"shed")
"""...or accepted, and shed."""
PAUSE_S: Final = 0.1


def is_hasty(call: Call) -> bool:
    """Whether the caller wants to be refused at once."""
    return call.request.headers.get(FULL) == AT_ONCE


def held_back(call: Call, first: Asked) -> Asked:
    """As `first`, which enqueues; but a queue that says so keeps the caller waiting.

    Who comes first when there is room is a matter of luck.
    """
    return Asked(first.asks, _Held(call, first).then)


class _Held:
    """An enqueue that is tried until there is room, or time is up.

    Not a function that names itself: each of those is garbage that waits to be
    collected, and everybody waits meanwhile.
    """

    __slots__ = ("_call", "_first", "_until_s")

    def __init__(self, call: Call, first: Asked) -> None:
        self._call = call
        self._first = first
        self._until_s: float | None = None

    def then(self, answers: list[Any]) -> Plan:
        full = answers[0]
        if not isinstance(full, QueueFull) or not (full.may_wait or full.may_shed):
            return self._first.then(answers)
        call = self._call
        if is_hasty(call):
            response = of_error(full)
            mark = MAY_WAIT if full.may_wait else MAY_SHED
            response.headers = (*response.headers, mark)
            return response
        now_s = asyncio.get_running_loop().time()
        if self._until_s is None:
            self._until_s = now_s + defaults.FULL_WAIT_MS / 1_000
        shared = call.facilities
        is_crowded = shared.held_back >= defaults.FULL_WAITERS_MAX
        if is_crowded or shared.is_stopping or now_s >= self._until_s:
            return self._first.then(answers)
        return Awaited(self._pause)

    def _pause(self, over: Callable[[Plan], None]) -> "_Pause":
        again = Asked(self._first.asks, self.then)
        return _Pause(self._call, lambda: over(again))


class _Pause:
    """Between two looks for room."""

    def __init__(self, call: Call, over: Callable[[], None]) -> None:
        self._shared = call.facilities
        self._over = over
        self._shared.held_back += 1
        loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = loop.call_later(PAUSE_S, self._end)

    @property
    def is_waiting(self) -> bool:
        return self._timer is not None

    def abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._shared.held_back -= 1

    def _end(self) -> None:
        self._timer = None
        self._shared.held_back -= 1
        self._over()
