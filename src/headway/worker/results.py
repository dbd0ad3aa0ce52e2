"""What an enqueued call came to: the id of its job, which can be asked for the result."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, Protocol, TypeVar, overload

import msgspec
from msgspec import UNSET

from headway.client.origin import TRIES, delays_s
from headway.client.port import AsyncPort, Port
from headway.core.durations import format_ms, parse_ms
from headway.core.states import LIVE
from headway.runtime.errors import RuntimeFailure
from headway.wire.jobs import FailedAttempt, ResultShown
from headway.worker.outcomes import Duration

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")
POLL_MS: Final = 20_000
"""How long a server is asked to hold its answer back."""
_OPEN: Final = {state.value for state in LIVE}


class Ports(Protocol):
    """Who leads to the queue."""

    def blocking(self) -> Port: ...
    def awaited(self) -> AsyncPort: ...


class NoValue(Exception):
    """A job that was asked for its result has none to give. `id` says which."""

    def __init__(self, id_: str, text: str) -> None:
        self.id = str(id_)
        super().__init__(f"job {self.id} {text}")


class JobDied(NoValue):
    """It is among the dead letters; `errors` say why."""

    def __init__(self, id_: str, errors: list[FailedAttempt]) -> None:
        self.errors = errors
        last = errors[-1] if errors else None
        why = (
            ""
            if last is None
            else f": {last.reason}: {last.text.partition(chr(10))[0]}"
        )
        super().__init__(id_, f"is dead{why}")


class JobCancelled(NoValue):
    """It was cancelled, or was a dead letter that was discarded."""


class ResultNotKept(NoValue):
    """It is done, but what its handler returned is too large, or can't be JSON."""


class ResultUnreadable(NoValue):
    """It is done, but its result is not what the handler's type hint says."""


class ResultTimeout(NoValue, TimeoutError):
    """It had not ended when the time was over. It goes on, and can be asked again."""


class Enqueued(str, Generic[R_co]):
    """The id of a job, which can be asked for what its handler returned.

    Pickled or copied it is the plain id.
    """

    __slots__ = ("_ports", "_read")
    _read: Callable[[bytes], Any]
    _ports: Callable[[], Ports]

    def __new__(
        cls, id_: str, read: Callable[[bytes], Any], ports: Callable[[], Ports]
    ) -> "Enqueued[R_co]":
        found = super().__new__(cls, id_)
        found._read = read
        found._ports = ports
        return found

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    @overload
    def result(
        self: "Enqueued[Coroutine[Any, Any, T]]", timeout: Duration | None = None
    ) -> T: ...
    @overload
    def result(self: "Enqueued[T]", timeout: Duration | None = None) -> T: ...
    def result(self, timeout: Duration | None = None) -> Any:
        """What the handler returned; waits for it, for so long if that is said.

        Raises JobDied, JobCancelled, ResultTimeout, ResultNotKept; and NoResult if none
        was asked for when the job was enqueued, or it is kept no more.
        """
        pace = _Pace(self, timeout)
        while True:
            try:
                found = self._ports().blocking().result(str(self), wait_ms=pace.begin())
                if found.state not in _OPEN:
                    return self._value(found)
                pause_s = pace.rest_s(found.state)
            except RuntimeFailure as error:
                pause_s = pace.lost_s(error)
            time.sleep(pause_s)

    @overload
    async def aresult(
        self: "Enqueued[Coroutine[Any, Any, T]]", timeout: Duration | None = None
    ) -> T: ...
    @overload
    async def aresult(self: "Enqueued[T]", timeout: Duration | None = None) -> T: ...
    async def aresult(self, timeout: Duration | None = None) -> Any:
        """The same for asyncio."""
        pace = _Pace(self, timeout)
        while True:
            try:
                port = self._ports().awaited()
                found = await port.result(str(self), wait_ms=pace.begin())
                if found.state not in _OPEN:
                    return self._value(found)
                pause_s = pace.rest_s(found.state)
            except RuntimeFailure as error:
                pause_s = pace.lost_s(error)
            await asyncio.sleep(pause_s)

    def _value(self, found: ResultShown) -> Any:
        if found.state == "dead":
            raise JobDied(self, found.errors)
        if found.state == "cancelled":
            raise JobCancelled(self, "was cancelled")
        if found.problem is not None:
            raise ResultNotKept(self, f"is done, but {found.problem}")
        if found.value is UNSET:
            raise ResultUnreadable(self, "is done by a reply that is no JSON")
        try:
            return self._read(bytes(found.value))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            text = f"is done, but its result does not fit: {error}"
            raise ResultUnreadable(self, text) from error


class _Pace:
    """How long to wait for a result, and how often to ask."""

    def __init__(self, id_: str, timeout: Duration | None) -> None:
        self._id = id_
        self._timeout_ms = None if timeout is None else parse_ms(timeout, "timeout")
        self._began_s = self._asked_s = time.monotonic()
        self._pauses = delays_s()
        self._lost = 0

    def begin(self) -> int:
        """For how long the answer is to be held back now."""
        self._asked_s = time.monotonic()
        return min(POLL_MS, self._left_ms())

    def rest_s(self, state: str) -> float:
        """The job has not ended: how long to rest before it is asked again."""
        self._lost = 0
        if self._left_ms() == 0:
            assert self._timeout_ms is not None
            text = f"was still {state} after {format_ms(self._timeout_ms)}"
            raise ResultTimeout(self._id, text)
        if time.monotonic() - self._asked_s >= POLL_MS / 2_000:
            return 0.0
        # It was not held back: the server is stopping, or has too many who wait.
        return min(next(self._pauses), self._left_ms() / 1_000)

    def lost_s(self, error: RuntimeFailure) -> float:
        """The owner of the file is gone: another may be there soon."""
        self._lost += 1
        if self._lost >= TRIES:
            raise error
        return next(self._pauses)

    def _left_ms(self) -> int:
        if self._timeout_ms is None:
            return POLL_MS
        passed_ms = int((time.monotonic() - self._began_s) * 1_000)
        return max(0, self._timeout_ms - passed_ms)
