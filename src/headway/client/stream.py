"""One connection to a server for asyncio: a request, its answer, the next request."""

import asyncio
from typing import Final, cast

import httptools

ANSWER_BYTES_MAX: Final = 256 << 20
"""A hundred jobs of the largest payload fit, and no worker asks for more at once."""


class Stream(asyncio.Protocol):
    """Speaks HTTP/1.1; whoever holds it has it to himself."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, head: bytes, body: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Status and body of the answer, or ConnectionError if there is none.

        The request is on its way when this returns: whoever is cancelled later can
        hang up behind it.
        """
        answer = asyncio.get_running_loop().create_future()
        if self._transport is None or self._transport.is_closing():
            answer.set_exception(ConnectionError("the connection is closed"))
            return answer
        self._answer = answer
        self._parser = httptools.HttpResponseParser(self)
        self._parts.clear()
        self._size = 0
        self._transport.write(head + body)
        return answer

    def hang_up(self) -> None:
        """Says that nothing more comes: a server that holds an answer back drops it."""
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes, but all that they promise.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail("the server hung up")

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self._answer is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"the answer is no HTTP: {error}")
            self.close()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > ANSWER_BYTES_MAX:
            self._fail("the answer is too large")
            self.close()
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        parser, answer = self._parser, self._answer
        assert parser is not None
        self._answer = None
        if not parser.should_keep_alive() and self._transport is not None:
            self._transport.close()
        if answer is not None and not answer.done():
            answer.set_result((parser.get_status_code(), b"".join(self._parts)))

    def _fail(self, text: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(ConnectionError(text))
