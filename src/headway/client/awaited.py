"""The client for asyncio: a few connections that are kept, on httptools."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from headway.client import calls
from headway.client.calls import Call
from headway.client.errors import Elsewhere, Unreachable
from headway.client.origin import ANSWER_S, TRIES, Origin, Origins, Turns
from headway.client.stream import Stream
from headway.core.errors import RuleBroken

P = ParamSpec("P")
T = TypeVar("T")
IDLE_MAX: Final = 64
UNDO_S: Final = 10.0
"""How long the answer to a call that was cancelled is waited for."""


def _asked(
    verb: Callable[P, Call[T]],
) -> Callable[Concatenate["AsyncClient", P], Awaitable[T]]:
    async def ask(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.ask(verb(*args, **kwargs))

    ask.__doc__ = verb.__doc__
    ask.__name__ = verb.__name__
    return ask


class AsyncClient:
    """A server, for one event loop. `tries` is how often a call is sent.

    `url` may name several servers of a cluster, with commas between: the client stays
    with one of them, and goes on to the next when that one does not answer.
    """

    def __init__(
        self, url: str, token: str | None = None, *, tries: int = TRIES
    ) -> None:
        self._origins = Origins(url, token)
        self._tries = tries
        self._idle: list[tuple[Origin, Stream]] = []
        self._undoing: set[asyncio.Task[None]] = set()

    enqueue = _asked(calls.enqueue)
    reply = _asked(calls.reply)
    result = _asked(calls.result)
    schedule = _asked(calls.schedule)
    configure = _asked(calls.configure)
    lease = _asked(calls.lease)
    ack = _asked(calls.ack)
    extend = _asked(calls.extend)
    release = _asked(calls.release)
    nack = _asked(calls.nack)
    wait = _asked(calls.wait)

    async def ask(self, call: Call[T]) -> T:
        """Sends the call until it is answered, or has been sent often enough.

        All calls may be repeated: what was done already is known by its key or token,
        and jobs of a lease that nobody heard of come back when it ends.
        """
        turns = Turns(self._tries, len(self._origins) - 1)
        while True:
            try:
                return await self._once(call)
            except Unreachable as error:
                await asyncio.sleep(turns.pause_s(error))

    async def close(self) -> None:
        """What was cancelled on the way is taken back first."""
        if self._undoing:
            await asyncio.wait(self._undoing)
        for _, stream in self._idle:
            stream.close()
        self._idle.clear()

    async def _once(self, call: Call[T]) -> T:
        origin, stream = await self._stream()
        try:
            return await self._exchange(call, origin, stream)
        except Elsewhere:
            self._origins.leave(origin)
            raise

    async def _exchange(self, call: Call[T], origin: Origin, stream: Stream) -> T:
        head = (
            f"{call.method} {call.path} HTTP/1.1\r\n{origin.common}\r\n"
            f"content-length: {len(call.body)}\r\n\r\n"
        )
        asked = stream.ask(head.encode(), call.body)
        try:
            await asyncio.wait({asked}, timeout=call.wait_s + ANSWER_S)
        except asyncio.CancelledError:
            self._abandon(call, origin, stream, asked)
            raise
        if not asked.done():
            stream.close()
            asked.cancel()
            raise Elsewhere(f"no answer from {origin.url} in time")
        try:
            status, body = asked.result()
        except OSError as error:
            stream.close()
            text = f"no answer from {origin.url} ({error})"
            raise Elsewhere(text) from error
        self._keep(origin, stream)
        return origin.read(call, status, body)

    async def _stream(self) -> tuple[Origin, Stream]:
        """A connection to a server that takes one: nothing has been sent yet."""
        while self._idle:
            origin, stream = self._idle.pop()
            if stream.is_open and origin is self._origins.current:
                return origin, stream
            stream.close()
        others = len(self._origins)
        while True:
            origin = self._origins.current
            try:
                return origin, await self._connect(origin)
            except Unreachable:
                self._origins.leave(origin)
                others -= 1
                if others <= 0:
                    raise

    async def _connect(self, origin: Origin) -> Stream:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._origins.connect_s):
                _, made = await loop.create_connection(
                    Stream, origin.host, origin.port, ssl=origin.context
                )
        except (OSError, TimeoutError) as error:
            text = f"no connection to {origin.url} ({str(error) or 'timed out'})"
            raise Unreachable(text) from error
        return made

    def _keep(self, origin: Origin, stream: Stream) -> None:
        if stream.is_open and len(self._idle) < IDLE_MAX:
            self._idle.append((origin, stream))
        else:
            stream.close()

    def _abandon(
        self, call: Call[Any], origin: Origin, stream: Stream, asked: Any
    ) -> None:
        """The caller is gone; an answer that is on its way may have to be undone."""
        if call.undo is None:
            if not asked.cancel():
                asked.exception()  # Looked at, it is not told as one that nobody saw.
            stream.close()
            return
        stream.hang_up()
        task = asyncio.ensure_future(self._undo(call, origin, stream, asked))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    async def _undo(
        self, call: Call[Any], origin: Origin, stream: Stream, asked: Any
    ) -> None:
        try:
            async with asyncio.timeout(UNDO_S):
                status, body = await asked
                undo = call.undo and call.undo(origin.read(call, status, body))
                if undo is not None:
                    await self._once(undo)
        except (OSError, TimeoutError, Unreachable, RuleBroken):
            return  # There was no answer, or its leases end by themselves.
        finally:
            stream.close()
