"""Requests out of bytes, on llhttp in its strict mode, bounded while they are read."""

from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

import httptools

from headway.server.http.limits import Limits
from headway.server.http.message import Request

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_SCHEMES: Final = (b"http://", b"https://")
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
        invite: Callable[[], None],
        peer: str,
    ) -> None:
        self._limits = limits
        self._arrived = arrived
        self._invite = invite
        """The client waits for a word before it sends its body."""
        self._peer = peer
        self._parser = httptools.HttpRequestParser(self)
        self.requests = 0
        """How many have begun."""
        self._is_over = False
        self._version = ""
        self.stage = Stage.BETWEEN
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_count = 0
        self._head_bytes = 0
        self._body: bytes | bytearray = b""
        self._size = 0
        self._raw = 0
        """Bytes of this request, but for the piece that it began in."""

    def feed(self, data: bytes | memoryview) -> None:
        """Reads on; what comes behind the last request is not looked at."""
        before = self.requests
        rest = data
        while rest and not self._is_over:
            rest = self._parse(rest)
        if self.requests == before and self.stage is not Stage.BETWEEN:
            self._raw += len(data)
            self._check_raw()

    def _parse(self, data: bytes | memoryview) -> bytes | memoryview:
        """Gives back what is left to be read."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            # Nobody has to follow an invitation to another protocol: the request was
            # read as it is, and what follows is read by a parser that has not stopped.
            self._parser = httptools.HttpRequestParser(self)
            return data[error.args[0] :]
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, Unreadable):
                raise error.__context__ from None
            raise
        except httptools.HttpParserError as error:
            if not self._is_over:
                text = f"not HTTP/1.1 as it should be: {error}"
                raise Unreadable(400, text) from error
        return b""

    def _check_raw(self) -> None:
        """Bounds what the parser keeps to itself: a header that does not end."""
        limits = self._limits
        most = limits.target_bytes + limits.header_bytes
        if self.stage is Stage.HEAD and self._raw > most:
            raise self._headers_too_large()
        if self.stage is Stage.BODY and self._raw > most + 2 * self._size:
            raise Unreadable(400, "there is more around the chunks than in them")

    def on_message_begin(self) -> None:
        self.stage = Stage.HEAD
        self.requests += 1

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
            raise self._headers_too_large()
        if self.stage is Stage.BODY:
            return  # a trailer: what comes behind the body changes nothing before it
        name = name.lower()
        if name in self._headers:
            if name in _SINGLE:
                raise Unreadable(400, f"{name.decode('latin-1')} is given twice")
            value = self._headers[name] + b", " + value
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        headers = self._headers
        self._version = version = self._parser.get_http_version()
        if version not in _VERSIONS:
            raise Unreadable(400, "this server speaks HTTP/1.1 and nothing else")
        if b"host" not in headers and version == "1.1":
            raise Unreadable(400, "there is no Host header")
        if self._target[:1] != b"/" or b"#" in self._target:
            self._check_target()
        length = headers.get(b"content-length")
        if length is not None and int(length) > self._limits.body_bytes:
            raise self._too_large()
        coding = headers.get(b"transfer-encoding")
        if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
            raise Unreadable(400, "no transfer coding but chunked is understood")
        coding = headers.get(b"content-encoding")
        if coding is not None and coding.lower() != b"identity":
            raise Unreadable(415, "a compressed body is not understood")
        self.stage = Stage.BODY
        expected = headers.get(b"expect", b"").lower()
        # An older client would take the word for its answer.
        if expected == b"100-continue" and version == "1.1":
            self._invite()

    def _check_target(self) -> None:
        """Afterwards the target is a path with its query, or an asterisk."""
        method = self._parser.get_method()
        target = self._target
        if method == b"CONNECT":
            raise Unreadable(400, "this server is no proxy")
        if b"#" in target:
            raise Unreadable(400, "a target has no fragment")
        if target == b"*" and method == b"OPTIONS":
            return
        scheme = next((one for one in _SCHEMES if target.startswith(one)), None)
        if scheme is None:
            raise Unreadable(400, "the target is no path")
        host, slash, path = target[len(scheme) :].partition(b"/")
        if b"?" in host:
            host, mark, query = host.partition(b"?")
            path = mark + query + slash + path
        if host.lower() != self._headers.get(b"host", host).lower():
            raise Unreadable(400, "the target and Host name different servers")
        self._target = b"/" + path

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._limits.body_bytes:
            raise self._too_large()
        # Not a list of pieces: each of a million tiny chunks would cost an object.
        if self._size == len(body):
            self._body = body
        elif isinstance(self._body, bytearray):
            self._body += body
        else:
            self._body = bytearray(self._body) + body

    def on_message_complete(self) -> None:
        parser = self._parser
        self._is_over = not parser.should_keep_alive()
        request = Request(
            parser.get_method(),
            self._target,
            self._headers,
            bytes(self._body),
            self._peer,
            self._version == "1.0" and not self._is_over,
        )
        self._reset()
        self.stage = Stage.BETWEEN
        self._arrived(request, is_last=self._is_over)

    def _reset(self) -> None:
        self._target = b""
        self._headers = {}
        self._header_count = 0
        self._head_bytes = 0
        self._body = b""
        self._size = 0
        self._raw = 0

    def _too_large(self) -> Unreadable:
        return Unreadable(413, f"more than {self._limits.body_bytes} bytes of body")

    def _headers_too_large(self) -> Unreadable:
        return Unreadable(431, "the headers are too large")
