"""Requests out of bytes, on llhttp in its strict mode, bounded while they are read."""

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

import httptools

from headway.server.http.limits import Limits
from headway.server.http.message import Request

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_SINGLE: Final = frozenset(
    {b"host", b"authorization", b"content-type", b"content-length", b"origin"}
)
"""Headers of which there is one, or the request means two things."""


class Stage(Enum):
    """How far a request has come."""

    BETWEEN = 0
    HEAD = 1
    BODY = 2


class Unreadable(Exception):
    """What came is no request, or too much of one; nothing after it can be trusted."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Arrived(Protocol):
    """Is told of every request; after the last one nothing more is read."""

    def __call__(self, request: Request, *, is_last: bool) -> None: ...


class Reader:
    """Reads the requests of one connection. The parser calls its `on_` methods."""

    def __init__(
        self,
        limits: Limits,
        arrived: Arrived,
        write: Callable[[bytes], None],
        peer: str,
    ) -> None:
        self._limits = limits
        self._arrived = arrived
        self._write = write
        self._peer = peer
        self._parser = httptools.HttpRequestParser(self)
        self._requests = 0
        self.stage = Stage.BETWEEN
        self._reset()

    @property
    def step(self) -> tuple[int, Stage]:
        """Changes whenever there is something new to wait for."""
        return self._requests, self.stage

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            text = "this server speaks HTTP/1.1 and nothing else"
            raise Unreadable(400, text) from error
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, Unreadable):
                raise error.__context__ from None
            raise
        except httptools.HttpParserError as error:
            text = f"not HTTP/1.1 as it should be: {error}"
            raise Unreadable(400, text) from error

    def on_message_begin(self) -> None:
        self.stage = Stage.HEAD
        self._requests += 1

    def on_url(self, url: bytes) -> None:
        self._target += url
        if len(self._target) > self._limits.target_bytes:
            raise Unreadable(414, "the target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        self._header_count += 1
        limits = self._limits
        is_many = self._header_count > limits.headers
        if is_many or self._head_bytes > limits.header_bytes:
            raise Unreadable(431, "the headers are too large")
        name = name.lower()
        if name in self._headers:
            if name in _SINGLE:
                raise Unreadable(400, f"{name.decode('latin-1')} is given twice")
            value = self._headers[name] + b", " + value
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        headers = self._headers
        if b"host" not in headers and self._parser.get_http_version() == "1.1":
            raise Unreadable(400, "there is no Host header")
        length = headers.get(b"content-length")
        if length is not None and int(length) > self._limits.body_bytes:
            raise self._too_large()
        coding = headers.get(b"transfer-encoding")
        if coding is not None and coding.strip().lower() != b"chunked":
            raise Unreadable(400, "no transfer coding but chunked is understood")
        if b"content-encoding" in headers:
            raise Unreadable(415, "a compressed body is not understood")
        if headers.get(b"expect", b"").lower() == b"100-continue":
            self._write(_CONTINUE)
        self.stage = Stage.BODY

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._limits.body_bytes:
            raise self._too_large()
        self._body.append(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        body = self._body
        request = Request(
            parser.get_method(),
            self._target,
            self._headers,
            body[0] if len(body) == 1 else b"".join(body),
            self._peer,
        )
        self._reset()
        self.stage = Stage.BETWEEN
        self._arrived(request, is_last=not parser.should_keep_alive())

    def _reset(self) -> None:
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_count = 0
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._size = 0

    def _too_large(self) -> Unreadable:
        return Unreadable(413, f"more than {self._limits.body_bytes} bytes of body")
