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
    until_s: float | None = None

    def then(answers: list[Any]) -> Plan:
        nonlocal until_s
        full = answers[0]
        if not isinstance(full, QueueFull) or not (full.may_wait or full.may_shed):
            return first.then(answers)
        if is_hasty(call):
            response = of_error(full)
            mark = MAY_WAIT if full.may_wait else MAY_SHED
            response.headers = (*response.headers, mark)
            return response
        now_s = asyncio.get_running_loop().time()
        if until_s is None:
            until_s = now_s + defaults.FULL_WAIT_MS / 1_000
        shared = call.facilities
        is_crowded = shared.held_back >= defaults.FULL_WAITERS_MAX
        if is_crowded or shared.is_stopping or now_s >= until_s:
            return first.then(answers)
        return Awaited(lambda over: _Pause(call, lambda: over(Asked(first.asks, then))))

    return Asked(first.asks, then)


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
