"""An owner on a clock that stands still until it is moved, and without a thread."""

import threading
from concurrent.futures import Future

from headway.runtime.clock import Clock
from headway.runtime.owner import Ask, Owner, Reply
from headway.store.memory import MemoryStore


class VirtualClock(Clock):
    """Shows what it was set to."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def move_to(self, at_ms: int) -> None:
        """Time never goes back."""
        self._now_ms = max(self._now_ms, at_ms)


class VirtualLink:
    """The real owner of a queue in memory; it decides in whoever asks."""

    def __init__(self, start_ms: int) -> None:
        self._clock = VirtualClock(start_ms)
        self._owner = Owner(MemoryStore(), throttled=frozenset())
        self._owner.take_over(self._clock)
        self._waiting: dict[Ask, Future[Reply]] = {}
        self._turn = threading.Lock()

    def submit(self, ask: Ask) -> Future[Reply]:
        future: Future[Reply] = Future()
        future.set_running_or_notify_cancel()
        self._step([ask], {ask: future})
        return future

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def next_ms(self) -> int | None:
        """When something happens if nobody asks for anything."""
        with self._turn:
            return self._owner.next_ms()

    def move_to(self, at_ms: int) -> None:
        """What falls due by then happens, each at its own time."""
        while (next_ms := self.next_ms()) is not None and next_ms <= at_ms:
            self._clock.move_to(next_ms)
            self._step([])
        self._clock.move_to(at_ms)

    def close(self) -> None:
        with self._turn:
            self._owner.close()

    def _step(
        self, asks: list[Ask], futures: dict[Ask, Future[Reply]] | None = None
    ) -> None:
        with self._turn:
            self._waiting |= futures or {}
            now_ms = self._clock.now_ms()
            answers = self._owner.step(asks, now_ms)
            while (next_ms := self._owner.next_ms()) is not None and next_ms <= now_ms:
                answers += self._owner.step([], now_ms)
            answered = [(self._waiting.pop(ask), answer) for ask, answer in answers]
        # Outside: whoever is answered may ask again at once.
        for future, answer in answered:
            future.set_result(answer)
