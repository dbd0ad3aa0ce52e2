"""SIGTERM and SIGINT, for as long as a worker runs."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stopped_by_signals(
    stop: Callable[[], None], *, is_last: bool = False
) -> Iterator[None]:
    """Signals call `stop` in the running loop, where they can be had: in the main thread.

    Afterwards they do what they did before; or nothing, where a process has nothing
    left to do but to end (`is_last`). There is no moment in between: by the loop's own
    handlers there would be one, in which a signal kills.
    """
    loop = asyncio.get_running_loop()

    def heard(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    before: dict[signal.Signals, Any] = {}
    for number in STOPPING:
        with suppress(ValueError):
            before[number] = signal.signal(number, heard)
    try:
        yield
    finally:
        for number, handler in before.items():
            # None was set by something that is not Python, and can't be set again.
            after = signal.SIG_DFL if handler is None else handler
            signal.signal(number, signal.SIG_IGN if is_last else after)
