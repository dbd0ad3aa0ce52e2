"""An owner at work: a thread that takes commands from all sides and answers them.

Commands that arrive while a commit is under way are decided together and written in
the next one. Nobody waits for a timer: a batch is whatever there is.
"""

import threading
import time
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from headway.core.commands import Ack, Enqueue, Extend, Lease, Release, TakeIn, Tick
from headway.runtime.errors import OwnerBusy, OwnerStopped
from headway.runtime.inbound import Inbound
from headway.runtime.judging import Judging
from headway.runtime.owner import Ask, Owner, Reply
from headway.runtime.throttler import NONE, Throttling
from headway.store.port import Store

ROWS_MAX: Final = 2_000
"""About how many rows one commit may write."""
ARRIVED_MAX: Final = 10_000
"""Commands that may wait to be decided; more are refused at once."""
COMMITS_KEPT: Final = 128
"""Commits by which the cost of a commit is judged."""
LONGEST_WAIT_S: Final = 3_600.0


class Service:
    """Serves one partition in a thread of its own, until it is closed or must stop."""

    def __init__(self, store: Store, throttling: Throttling = NONE) -> None:
        """Takes the store over, or raises what stands against it."""
        self._owner = Owner(store, throttled=frozenset(throttling.places))
        self._clock = self._owner.take_over()
        self._arrived: deque[tuple[Ask, Future[Reply]]] = deque()
        self._futures: dict[Ask, Future[Reply]] = {}
        self._changed = threading.Condition()
        self._is_closing = False
        self._stopped: OwnerStopped | None = None
        self._commits_ms: deque[float] = deque(maxlen=COMMITS_KEPT)
        self._judging: Judging | None = None
        if throttling.places:
            self._judging = Judging(self._owner, throttling, self._stir)
        self._thread = threading.Thread(
            target=self._serve, name="headway-owner", daemon=True
        )
        self._thread.start()

    @property
    def owner(self) -> Owner:
        return self._owner

    @property
    def is_stopped(self) -> bool:
        """It answers nothing any more; its store may be opened anew."""
        if self._stopped is None:
            return False
        self._thread.join()
        return True

    def wait(self) -> OwnerStopped:
        """Until it has stopped; answers why."""
        self._thread.join()
        assert self._stopped is not None
        return self._stopped

    def now_ms(self) -> int:
        """The partition's time."""
        return self._clock.now_ms()

    def submit(self, ask: Ask) -> Future[Reply]:
        """The answer comes when it is durable. A broken rule is an answer, too."""
        future: Future[Reply] = Future()
        with self._changed:
            if self._stopped is not None or self._is_closing:
                raise self._stopped or OwnerStopped("the owner is closing")
            if len(self._arrived) >= ARRIVED_MAX:
                raise OwnerBusy(f"{ARRIVED_MAX} commands wait already")
            self._arrived.append((ask, future))
            if len(self._arrived) == 1:
                self._changed.notify()
        return future

    def close(self) -> None:
        """What has arrived is answered; callers that wait for jobs are told to go."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        try:
            while self._wait():
                asks = self._take()
                started = time.perf_counter()
                answers = self._owner.step(asks, self._clock.now_ms())
                self._commits_ms.append((time.perf_counter() - started) * 1_000)
                for ask, answer in answers:
                    self._futures.pop(ask).set_result(answer)
                self._owner.commit_ms = round(max(self._commits_ms))
                if self._judging is not None:
                    self._judging.look(self._clock.now_ms())
            self._stop(OwnerStopped("the owner was closed"))
        except OwnerStopped as stopped:
            self._stop(stopped)
        except BaseException as error:
            # Nobody may wait for an owner that is gone.
            self._stop(OwnerStopped(f"{type(error).__name__}: {error}"))
            raise
        finally:
            if self._judging is not None:
                self._judging.close()
            self._owner.close()

    def _wait(self) -> bool:
        """Until there is something to decide; False when there never will be."""
        with self._changed:
            while not self._arrived:
                if self._is_closing:
                    return False
                next_ms = self._next_ms()
                if next_ms is None:
                    self._changed.wait()
                    continue
                wait_s = (next_ms - self._clock.now_ms()) / 1_000
                if wait_s <= 0:
                    return True
                self._changed.wait(min(wait_s, LONGEST_WAIT_S))
            return True

    def _take(self) -> list[Ask]:
        """What has arrived, as far as one commit can hold it."""
        asks: list[Ask] = []
        rows = 0
        with self._changed:
            while self._arrived and rows < ROWS_MAX:
                ask, future = self._arrived.popleft()
                if not future.set_running_or_notify_cancel():
                    continue
                self._futures[ask] = future
                asks.append(ask)
                rows += _rows(ask)
        if self._judging is not None:
            for judge in self._judging.heard():
                # Nobody waits for the answer, but every ask has one.
                self._futures[judge] = Future()
                asks.append(judge)
        return asks

    def _next_ms(self) -> int | None:
        next_ms = self._owner.next_ms()
        if self._judging is None:
            return next_ms
        again_ms = self._judging.next_ms()
        if next_ms is None or again_ms is None:
            return again_ms if next_ms is None else next_ms
        return min(next_ms, again_ms)

    def _stir(self) -> None:
        """There is something to be taken. Too many commands are reason enough."""
        with suppress(OwnerBusy, OwnerStopped):
            self.submit(Tick())

    def _stop(self, stopped: OwnerStopped) -> None:
        with self._changed:
            self._stopped = stopped
            waiting = [*self._futures.values(), *(f for _, f in self._arrived)]
            self._futures.clear()
            self._arrived.clear()
        for future in waiting:
            future.set_exception(stopped)


def _rows(ask: Ask) -> int:
    """About how many jobs the command writes."""
    match ask:
        case Enqueue(specs=specs) | TakeIn(specs=specs):
            return len(specs)
        case Ack(tokens=tokens) | Release(tokens=tokens) | Extend(tokens=tokens):
            return len(tokens)
        case Inbound(command=Enqueue(specs=specs)):
            return len(specs)
        case Lease():
            return ask.max
        case _:
            return 1
