"""One connection: requests are read within bounds and answered in their order.

The parser is llhttp, in its strict mode: whatever it refuses is answered by 400 and a
closed connection, since what follows can't be trusted any more.
"""

import asyncio
from collections import deque
from typing import Final, cast

from headway.server.http.limits import Limits
from headway.server.http.message import Answering, Handle, Refuse, Request, Response
from headway.server.http.reader import CONTINUE, Reader, Stage, Unreadable

PIECE: Final = 16 << 10
"""Bytes that are parsed at a time: more requests than these hold never wait at once."""
LINGER_BYTES: Final = 1 << 20
"""What a client that was refused may still send, to no effect."""


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

    def accept(self, loop: asyncio.AbstractEventLoop) -> asyncio.Protocol:
        """For a connection that has just been made."""
        return cast("asyncio.Protocol", Connection(self, loop))

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


class Connection:
    """Reads requests, one at a time, and writes answers in the same order.

    A protocol to asyncio, though none by its class: so it can be compiled.
    """

    def __init__(self, all_: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self._all = all_
        self._limits = all_.limits
        self._loop = loop
        self._reader: Reader | None = None
        """None before the first and after the last request."""
        self._transport: asyncio.Transport | None = None
        self._peer = ""
        self._waiting: deque[Request] = deque()
        self._unread = b""
        """What came behind as many requests as may wait."""
        self._refusal: Response | None = None
        """Comes behind the answers to what could be read."""
        self._answering: Answering | None = None
        self._is_busy = False
        """A request is being answered."""
        self._is_ending = False
        """It closes after the last answer."""
        self._is_closed = False
        """The last byte was written, though perhaps not sent."""
        self._is_invited = False
        """The client waits to hear that it may send its body."""
        self._is_reading = True
        self._is_full = False
        """The client reads too slowly."""
        self._has_eof = False
        self._surplus = 0
        """Bytes that came after the last request."""
        self._awaited: object = None
        """What the deadline is for."""
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
        self._rearm()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._transport = None
        self._reader = None
        self._unread = b""
        self._waiting.clear()
        self._all.leave(self, self._peer)
        self._abandon()

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            self._drop(len(data))
        elif self._unread:
            self._unread += data
        else:
            self._feed(data)

    def eof_received(self) -> bool:
        """A client that has said all it has to say still gets its answers.

        But not jobs: most of those who hang up while they wait for one are gone.
        """
        self._has_eof = True
        self._is_ending = True
        if not self._is_between and not self._unread:
            self._refuse(400, "the request ends too early")
        answering = self._answering
        is_gone = answering is not None and answering.is_waiting
        if not is_gone and self._has_work:
            return True
        self._is_closed = True
        self._abandon()
        self._rearm()
        return False

    def pause_writing(self) -> None:
        self._is_full = True
        self._rearm()

    def resume_writing(self) -> None:
        self._is_full = False
        self._go_on()

    def check(self, now_s: float) -> None:
        """Closes the connection if its client has let a deadline pass."""
        if not 0.0 < self._deadline_s < now_s:
            return
        if self._is_closed or self._is_full or self._is_between:
            self.abort()
        else:
            self._refuse(408, "the request took too long to arrive")

    def finish(self) -> None:
        """Closes when the answers that are under way are sent."""
        self._is_ending = True
        self._reader = None
        self._unread = b""
        self._go_on()

    def abort(self) -> None:
        if self._transport is not None:
            self._is_closed = True
            self._transport.abort()
            self._abandon()

    @property
    def _is_between(self) -> bool:
        """No request has begun since the last one ended."""
        return self._reader is None or self._reader.stage is Stage.BETWEEN

    @property
    def _has_work(self) -> bool:
        """There is something to be answered yet."""
        is_open = bool(self._waiting or self._unread or self._refusal is not None)
        return (is_open or self._is_busy) and not self._is_closed

    @property
    def _has_room(self) -> bool:
        """Another request may be read, or the client be heard to hang up."""
        is_done = self._reader is None and self._surplus > 0
        return len(self._waiting) < self._limits.pipelined and not is_done

    def _feed(self, data: bytes) -> None:
        """Reads requests until so many wait that the rest has to."""
        view: bytes | memoryview = data
        if len(data) > PIECE:
            view = memoryview(data)
        for start in range(0, len(data), PIECE):
            reader = self._reader
            if reader is None:
                self._drop(len(data) - start)
                return
            if self._waiting and not self._has_room:
                self._unread = data[start:]
                break
            try:
                reader.feed(view[start : start + PIECE])
            except Unreadable as error:
                self._refuse(error.status, error.text)
                self._drop(len(data) - start)
                return
        if self._waiting:
            self._read(is_on=self._has_room)
        self._rearm()

    def _arrived(self, request: Request, *, is_last: bool) -> None:
        self._is_invited = False
        if is_last:
            self._is_ending = True
            self._reader = None
        if self._is_busy or self._is_full or self._waiting:
            self._waiting.append(request)
        else:
            self._begin(request)

    def _invite(self) -> None:
        """Tells a client to go on with its body, unless an answer has to come first."""
        self._is_invited = True
        if not self._is_full and not self._has_work:
            self._write_invitation()

    def _write_invitation(self) -> None:
        self._is_invited = False
        if self._transport is not None:
            self._transport.write(CONTINUE)

    def _begin(self, request: Request) -> None:
        self._is_busy = True
        has_body = request.method != b"HEAD"
        is_kept = request.is_kept
        is_done = False

        def answer(response: Response) -> None:
            nonlocal is_done
            is_done = True
            self._answer(response, has_body=has_body, is_kept=is_kept)

        answering = self._all.handle(request, answer)
        if not is_done:
            self._answering = answering

    def _answer(self, response: Response, *, has_body: bool, is_kept: bool) -> None:
        self._answering = None
        self._is_busy = False
        if self._transport is None or self._is_closed:
            return
        if response.is_last:
            self._is_ending = True
            self._reader = None
            self._refusal = None
            self._unread = b""
            self._waiting.clear()
        is_closing = self._is_ending and not self._has_work
        self._transport.write(
            response.packed(is_closing=is_closing, has_body=has_body, is_kept=is_kept)
        )
        self._go_on()

    def _go_on(self) -> None:
        """Decides what comes next: another answer, another request, or the end."""
        transport = self._transport
        if transport is None or self._is_closed or self._is_busy:
            pass
        elif self._is_ending and not self._has_work:
            self._close(transport)
        elif self._is_full:
            pass
        elif self._waiting or self._unread:
            # Not from here: a long row of answers must not become a deep stack.
            self._loop.call_soon(self._next)
        elif self._refusal is not None:
            transport.write(self._refusal.packed(is_closing=True))
            self._close(transport)
        elif self._is_invited:
            self._write_invitation()
        self._rearm()

    def _next(self) -> None:
        if self._is_closed or self._is_full:
            return
        if self._unread and self._has_room:
            data, self._unread = self._unread, b""
            self._feed(data)
        if self._waiting and not self._is_busy:
            self._begin(self._waiting.popleft())
        elif not self._has_work:
            self._go_on()
        self._read(is_on=self._has_room)

    def _refuse(self, status: int, text: str) -> None:
        """Answers what can't be read, after what was read before, and closes."""
        self._all.refused += 1
        self._is_ending = True
        self._is_invited = False
        self._reader = None
        self._unread = b""
        self._surplus = 1
        self._refusal = self._all.refuse(status, text)
        self._go_on()

    def _drop(self, size: int) -> None:
        """Whatever comes after the last request is not even looked at."""
        self._surplus += size
        if not self._is_closed:
            self._read(is_on=False)
        elif self._surplus > LINGER_BYTES:
            self.abort()

    def _close(self, transport: asyncio.Transport) -> None:
        """What was written is still sent, if the client takes it in time.

        A socket that is closed while there is something to read takes back what it has
        sent: so whoever still talks is listened to for a moment.
        """
        self._is_closed = True
        self._refusal = None
        if self._surplus and not self._has_eof and transport.can_write_eof():
            transport.write_eof()
            self._read(is_on=True)
        else:
            transport.close()

    def _abandon(self) -> None:
        """Whoever works on an answer hears at once that nobody will read it.

        The transport tells of its end a moment later: jobs that were granted between
        the two would be handed to nobody.
        """
        if self._answering is not None:
            self._answering.abandon()
            self._answering = None

    def _rearm(self) -> None:
        """Sets a deadline for what the client has to do next, and keeps it till then.

        Nobody is hurried while it is the server that takes its time.
        """
        limits = self._limits
        awaited: object
        if self._is_closed:
            is_slow = self._is_full or not self._surplus
            awaited = ("close", is_slow)
            seconds = limits.write_s if is_slow else limits.linger_s
        elif self._is_full:
            awaited, seconds = "read", limits.write_s
        elif self._reader is None or not self._is_reading:
            awaited, seconds = None, 0.0
        else:
            reader = self._reader
            if reader.stage is not Stage.BETWEEN:
                is_head = reader.stage is Stage.HEAD
                awaited = (reader.requests, is_head)
                seconds = limits.head_s if is_head else limits.body_s
            elif self._is_busy:
                awaited, seconds = None, 0.0
            else:
                awaited, seconds = reader.requests, limits.idle_s
        if awaited != self._awaited:
            self._awaited = awaited
            self._deadline_s = self._loop.time() + seconds if seconds else 0.0

    def _read(self, *, is_on: bool) -> None:
        transport = self._transport
        if is_on == self._is_reading or transport is None or transport.is_closing():
            return
        self._is_reading = is_on
        if is_on:
            transport.resume_reading()
        else:
            transport.pause_reading()
