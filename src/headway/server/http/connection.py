"""One connection: requests are read within bounds and answered in their order.

The parser is llhttp, in its strict mode: whatever it refuses is answered by 400 and a
closed connection, since what follows can't be trusted any more.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

from headway.server.http.limits import Limits
from headway.server.http.message import Request, Response
from headway.server.http.reader import Reader, Stage, Unreadable

SWEEP_S: Final = 1.0
"""How often deadlines are looked at."""
BUSY_S: Final = 86_400.0
"""Nobody is hurried while it is the server that takes its time."""


class Answering(Protocol):
    """A request that is being answered."""

    @property
    def is_waiting(self) -> bool:
        """It waits for jobs, and perhaps for long."""
        ...

    def abandon(self) -> None:
        """The client is gone: nobody waits for the answer any more."""
        ...


Handle = Callable[[Request, Callable[[Response], None]], Answering]
"""Begins to answer a request; the answer is given to the function, once."""
Refuse = Callable[[int, str], Response]
"""The answer to a request that could not even be read."""


class Connections:
    """All connections of a server, and what they have in common."""

    def __init__(self, handle: Handle, refuse: Refuse, limits: Limits) -> None:
        self.handle = handle
        self.refuse = refuse
        self.limits = limits
        self.open: set[Connection] = set()
        self.by_peer: dict[str, int] = {}
        self.is_closing = False
        self.refused = 0
        """Requests and connections turned away before a handler saw them."""

    def sweep(self, now_s: float) -> None:
        """Cuts off whoever takes too long."""
        for connection in list(self.open):
            connection.check(now_s)

    def close(self) -> None:
        """No further request is read; what is being answered is answered."""
        self.is_closing = True
        for connection in list(self.open):
            connection.finish()

    def abort(self) -> None:
        for connection in list(self.open):
            connection.abort()

    def admit(self, peer: str) -> bool:
        mine = self.by_peer.get(peer, 0)
        limits = self.limits
        if len(self.open) >= limits.connections or mine >= limits.connections_each:
            self.refused += 1
            return False
        self.by_peer[peer] = mine + 1
        return True

    def leave(self, connection: "Connection", peer: str) -> None:
        self.open.discard(connection)
        left = self.by_peer.get(peer, 1) - 1
        if left:
            self.by_peer[peer] = left
        else:
            self.by_peer.pop(peer, None)


class Connection(asyncio.Protocol):
    """Reads requests, one at a time, and writes answers in the same order."""

    def __init__(self, all_: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self._all = all_
        self._limits = all_.limits
        self._loop = loop
        self._reader: Reader | None = None
        self._step = (0, Stage.BETWEEN)
        self._transport: asyncio.Transport | None = None
        self._peer = ""
        self._waiting: deque[Request] = deque()
        self._answering: Answering | None = None
        self._is_busy = False
        """A request is being answered."""
        self._is_ending = False
        """Nothing more is read; it closes after the last answer."""
        self._is_reading = True
        self._is_full = False
        """The client reads too slowly."""
        self._deadline_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes, but all that they promise.
        transport = cast("asyncio.Transport", transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self._peer = str(name[0]) if isinstance(name, tuple) else "local"
        if self._all.is_closing or not self._all.admit(self._peer):
            transport.abort()
            self._transport = None
            return
        self._all.open.add(self)
        self._reader = Reader(self._limits, self._arrived, self._invite, self._peer)
        self._wait_for(self._limits.idle_s)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._reader = None
        self._waiting.clear()
        self._all.leave(self, self._peer)
        if self._answering is not None:
            self._answering.abandon()
            self._answering = None

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None or self._is_ending:
            return
        try:
            reader.feed(data)
        except Unreadable as error:
            self._refuse(error.status, error.text)
            return
        if reader.step != self._step and not self._is_full:
            self._step = reader.step
            self._wait_for(self._patience_s(reader))

    def eof_received(self) -> bool:
        """A client that has said all it has to say still gets its answers.

        But not jobs: most of those who hang up while they wait for one are gone.
        """
        self._is_ending = True
        answering = self._answering
        return self._is_busy and (answering is None or not answering.is_waiting)

    def pause_writing(self) -> None:
        self._is_full = True
        self._wait_for(self._limits.write_s)

    def resume_writing(self) -> None:
        self._is_full = False
        self._deadline_s = 0.0
        self._go_on()

    def check(self, now_s: float) -> None:
        """Closes the connection if its client has let a deadline pass."""
        if not 0.0 < self._deadline_s < now_s:
            return
        if self._is_full or self._is_busy or self._is_between:
            self.abort()
        else:
            self._refuse(408, "the request took too long to arrive")

    def finish(self) -> None:
        """Closes when the answer that is under way is sent."""
        self._is_ending = True
        if not self._is_busy and self._transport is not None:
            self._close(self._transport)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def _is_between(self) -> bool:
        """No request has begun since the last one ended."""
        return self._reader is None or self._reader.stage is Stage.BETWEEN

    def _patience_s(self, reader: Reader) -> float:
        match reader.stage:
            case Stage.HEAD:
                return self._limits.head_s
            case Stage.BODY:
                return self._limits.body_s
            case Stage.BETWEEN:
                return BUSY_S if self._is_busy else self._limits.idle_s

    def _arrived(self, request: Request, *, is_last: bool) -> None:
        if is_last:
            self._is_ending = True
        if self._is_busy or self._is_full or self._waiting:
            self._waiting.append(request)
            if len(self._waiting) >= self._limits.pipelined:
                self._read(is_on=False)
        else:
            self._begin(request)

    def _invite(self, text: bytes) -> None:
        """Tells a client to go on with its body, unless an answer has to come first."""
        if self._transport is not None and not self._is_busy:
            self._transport.write(text)

    def _begin(self, request: Request) -> None:
        self._is_busy = True
        has_body = request.method != b"HEAD"
        is_done = False

        def answer(response: Response) -> None:
            nonlocal is_done
            is_done = True
            self._answer(response, has_body=has_body)

        answering = self._all.handle(request, answer)
        if not is_done:
            self._answering = answering

    def _answer(self, response: Response, *, has_body: bool) -> None:
        self._answering = None
        self._is_busy = False
        transport = self._transport
        if transport is None:
            return
        if response.is_last:
            self._is_ending = True
            self._waiting.clear()
        is_closing = self._is_ending and not self._waiting
        transport.write(response.packed(is_closing=is_closing, has_body=has_body))
        if is_closing:
            self._close(transport)
        elif not self._is_full:
            self._go_on()

    def _go_on(self) -> None:
        """Takes up the next request that waits, or waits for one."""
        if self._waiting:
            if not self._is_busy:
                # Not from here: a long row of answers must not become a deep stack.
                self._loop.call_soon(self._next)
        elif self._is_between and not self._is_busy:
            self._wait_for(self._limits.idle_s)
        self._read(is_on=len(self._waiting) < self._limits.pipelined)

    def _next(self) -> None:
        if self._waiting and not self._is_busy and not self._is_full:
            self._begin(self._waiting.popleft())

    def _refuse(self, status: int, text: str) -> None:
        """Answers what can't be read, after what was read before, and closes."""
        self._all.refused += 1
        self._is_ending = True
        self._reader = None
        if self._transport is None:
            return
        if self._is_busy or self._waiting:
            # What comes behind an unfinished answer is not worth waiting for.
            self._transport.abort()
            return
        response = self._all.refuse(status, text)
        self._transport.write(response.packed(is_closing=True, has_body=True))
        self._close(self._transport)

    def _close(self, transport: asyncio.Transport) -> None:
        """What was written is still sent, if the client takes it in time."""
        transport.close()
        self._wait_for(self._limits.write_s)

    def _wait_for(self, seconds: float) -> None:
        self._deadline_s = self._loop.time() + seconds

    def _read(self, *, is_on: bool) -> None:
        if is_on != self._is_reading and self._transport is not None:
            self._is_reading = is_on
            if is_on:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()
