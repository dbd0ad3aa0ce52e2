"""Links that can be cut or held: bytes go through a relay of this process.

All relays share one event loop in a thread of its own. A link that is cut hangs up and
takes nobody; one that is held keeps what was sent, and delivers it when it is healed, as
a network does whose packets were late.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Any, Final, Literal, cast

import uvloop

State = Literal["open", "cut", "held"]
WAIT_S: Final = 30.0


class Relays:
    """The loop, and all links that it has."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._links: list[Link] = []

    def link(self, port: int) -> "Link":
        """A way to a port of this machine, whether or not anybody listens there yet."""
        link = Link(self._loop, port)
        self._call(link.listen())
        self._links.append(link)
        return link

    def close(self) -> None:
        for link in self._links:
            self._call(link.shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)


class Link:
    """One listener, and the connections that were made through it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, to: int) -> None:
        self.loop = loop
        self.to = to
        self.port = 0
        self.state: State = "open"
        self.ends: set[End] = set()
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        made = await self.loop.create_server(lambda: End(self), "127.0.0.1", 0)
        self._server = made
        self.port = made.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        assert self._server is not None
        self._server.close()
        for end in list(self.ends):
            end.abort()

    def cut(self) -> None:
        self.loop.call_soon_threadsafe(self._turn, "cut")

    def hold(self) -> None:
        self.loop.call_soon_threadsafe(self._turn, "held")

    def heal(self) -> None:
        self.loop.call_soon_threadsafe(self._turn, "open")

    def _turn(self, state: State) -> None:
        self.state = state
        for end in list(self.ends):
            end.turned(state)


class End(asyncio.Protocol):
    """One side of a connection; `other` is where its bytes go."""

    def __init__(self, link: Link, other: "End | None" = None) -> None:
        self._link = link
        self._other = other
        self._is_near = other is None
        self._is_dialled = False
        self._transport: asyncio.Transport | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._kept = bytearray()
        """What came before it could be passed on; reading stops a moment later."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._link.ends.add(self)
        self.turned(self._link.state)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._link.ends.discard(self)
        if self._other is not None:
            self._other.close()

    def data_received(self, data: bytes) -> None:
        if self._other is None or self._link.state == "held":
            self._kept += data
        else:
            self._other.write(data)

    def eof_received(self) -> bool:
        if self._other is not None:
            self._other.finish()
        return True

    def turned(self, state: State) -> None:
        if state == "cut":
            self.abort()
        elif state == "held":
            if self._other is not None:
                self._read(is_on=False)
        elif self._is_near and not self._is_dialled:
            self._is_dialled = True
            self._dialling = self._link.loop.create_task(self._dial())
        elif self._other is not None:
            self._resume()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def finish(self) -> None:
        if self._transport is not None and self._transport.can_write_eof():
            with suppress(OSError, RuntimeError):
                self._transport.write_eof()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def _dial(self) -> None:
        try:
            _, far = await self._link.loop.create_connection(
                lambda: End(self._link, self), "127.0.0.1", self._link.to
            )
        except OSError:
            self.abort()
            return
        self._other = far
        if self._transport is None:
            far.abort()
        elif self._link.state == "open":
            self._resume()

    def _resume(self) -> None:
        if self._kept and self._other is not None:
            self._other.write(bytes(self._kept))
            self._kept.clear()
        self._read(is_on=True)

    def _read(self, *, is_on: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if is_on:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
