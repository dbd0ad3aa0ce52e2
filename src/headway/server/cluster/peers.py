"""Calls from node to node: HTTP/1.1 over connections that are kept.

An error says what is known of the outcome: `NotSent` means that nobody can have acted on
the request, `Lost` that somebody may have.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httptools
import msgspec

from headway.core.errors import BadValue
from headway.server.http.message import JSON, REASONS, Request, Response

ANSWER_BYTES_MAX: Final = 256 << 20
HEADER_BYTES_MAX: Final = 32 << 10
HEADERS_MAX: Final = 100
CONNECTIONS_MAX: Final = 1_024
"""To one address: each long poll has one of its own."""
CONNECT_S: Final = 2.0
IDLE_S: Final = 20.0
"""Well before the other side hangs up: a request must not meet that."""
_OWN: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"keep-alive",
        b"origin",
        b"proxy-authorization",
        b"proxy-connection",
        b"sec-fetch-dest",
        b"sec-fetch-mode",
        b"sec-fetch-site",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers of one connection, and what the first node has looked at already."""
_RESERVED: Final = (
    b"headway-hop",
    b"headway-peer",
    b"headway-partition",
    b"headway-wait",
    b"headway-own",
)
_DROPPED: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"content-type",
        b"keep-alive",
        b"transfer-encoding",
        b"x-content-type-options",
    }
)
"""Headers of an answer that are written anew."""


class PeerFailure(Exception):
    """A node could not be asked."""


class NotSent(PeerFailure):
    """The request has certainly not been carried out."""


class Lost(PeerFailure):
    """The request may have been carried out; there is no answer."""


class Address(msgspec.Struct, frozen=True):
    """A node's URL, read."""

    host: str
    port: int
    is_tls: bool

    @classmethod
    def parse(cls, url: str) -> "Address":
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise NotSent(f"{url[:200]!r} is no address") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise NotSent(f"{url[:200]!r} is no address")
        is_tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if is_tls else 80), is_tls)

    @property
    def name(self) -> bytes:
        """As a Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}".encode()


class Peers:
    """Asks other nodes."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: ssl.SSLContext | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        """`tls` says whom to trust at https addresses; else the system does."""
        self._loop = loop
        self._tls = tls
        self._connections_max = connections_max
        self._idle: dict[str, deque[Line]] = {}
        self._counts: dict[str, int] = {}
        """Connections by address, those under way and idle ones together."""

    async def call(
        self,
        url: str,
        request: Request,
        extra: Mapping[bytes, bytes],
        timeout_s: float,
    ) -> Response:
        """The whole answer. Whoever cancels this hangs up on the other side."""
        line = self._kept(url)
        if line is None:
            line = await self._connect(url)
        try:
            async with asyncio.timeout(timeout_s):
                response = await line.ask(packed(request, line.name, extra))
        except TimeoutError as error:
            line.close()
            raise Lost(f"{url} did not answer within {timeout_s:g} s") from error
        except BaseException:
            line.close()
            raise
        self._keep(url, line)
        return response

    def close(self) -> None:
        for lines in self._idle.values():
            for line in list(lines):
                line.close()
        self._idle.clear()

    def _kept(self, url: str) -> "Line | None":
        lines = self._idle.get(url)
        oldest_s = self._loop.time() - IDLE_S
        while lines:
            line = lines.pop()
            if line.is_open and line.used_s > oldest_s:
                return line
            line.close()
        return None

    def _keep(self, url: str, line: "Line") -> None:
        if line.is_open:
            line.used_s = self._loop.time()
            self._idle.setdefault(url, deque()).append(line)

    async def _connect(self, url: str) -> "Line":
        address = Address.parse(url)
        count = self._counts.get(url, 0)
        if count >= self._connections_max:
            raise NotSent(f"{count} connections to {url} are busy")
        self._counts[url] = count + 1
        tls = None
        if address.is_tls:
            tls = self._tls or ssl.create_default_context()
        line = Line(self._loop, address.name, lambda: self._gone(url))
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._loop.create_connection(
                    lambda: line, address.host, address.port, ssl=tls
                )
        except ssl.SSLCertVerificationError as error:
            line.close()
            text = f"{url} has a certificate that is not trusted"
            raise NotSent(f"{text}: {error.verify_message}") from error
        except (OSError, TimeoutError) as error:
            line.close()
            raise NotSent(f"{url} can't be reached") from error
        except BaseException:
            line.close()
            raise
        return line

    def _gone(self, url: str) -> None:
        left = self._counts.get(url, 1) - 1
        if left:
            self._counts[url] = left
        else:
            self._counts.pop(url, None)


class Line(asyncio.Protocol):
    """One connection to a node, with one request at a time.

    The parser calls its `on_` methods.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: bytes, gone: Callable[[], None]
    ) -> None:
        self.name = name
        self.used_s = 0.0
        self._loop = loop
        self._gone: Callable[[], None] | None = gone
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Response] | None = None
        self._is_closed = False
        self._reset()

    @property
    def is_open(self) -> bool:
        return not self._is_closed and self._transport is not None

    async def ask(self, data: bytes) -> Response:
        if self._transport is None or self._is_closed:
            raise NotSent("the connection was closed")
        self._answer = self._loop.create_future()
        self._transport.write(data)
        try:
            return await self._answer
        finally:
            self._answer = None

    def close(self) -> None:
        """What is under way is not waited for."""
        self._is_closed = True
        if self._transport is not None:
            self._transport.abort()
        gone, self._gone = self._gone, None
        if gone is not None:
            gone()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if self._is_closed:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail("the connection broke before the answer was there")

    def eof_received(self) -> bool:
        self._fail("the other node hung up before the answer was there")
        return False

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail("what another node answered can't be read")

    def _fail(self, text: str) -> None:
        answer = self._answer
        if answer is not None and not answer.done():
            answer.set_exception(Lost(text))
        self.close()

    def _reset(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._kind = JSON
        self._head_bytes = 0
        self._body = bytearray()

    def on_status(self, status: bytes) -> None:
        self._count(len(status))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        name = name.lower()
        if name == b"content-type":
            self._kind = value
        elif name not in _DROPPED:
            self._headers.append((name, value))
        if len(self._headers) > HEADERS_MAX:
            raise Lost("too many headers")

    def on_headers_complete(self) -> None:
        if self._parser.get_status_code() not in REASONS:
            raise Lost("no known status")

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) > ANSWER_BYTES_MAX:
            raise Lost("too long an answer")
        self._body += body

    def on_message_complete(self) -> None:
        parser = self._parser
        answer = self._answer
        status = parser.get_status_code()
        if status < 200 or answer is None or answer.done():
            raise Lost("an answer to nothing")
        if not parser.should_keep_alive():
            self.close()
        answer.set_result(
            Response(status, bytes(self._body), self._kind, tuple(self._headers))
        )
        self._reset()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEADER_BYTES_MAX:
            raise Lost("too long a head")


def trusted(file: Path | None) -> ssl.SSLContext | None:
    """Whom to trust at https addresses: what is in the file, and nobody else."""
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        text = f"holds no certificates: {error}"
        raise BadValue("peer_ca", file.name, text) from error


def packed(request: Request, host: bytes, extra: Mapping[bytes, bytes]) -> bytes:
    """The request as bytes, as another node may have it."""
    # The connection to the client leaves out the body of an answer to HEAD by itself.
    method = b"GET" if request.method == b"HEAD" else request.method
    parts = [b"%s %s HTTP/1.1\r\nhost: %s\r\n" % (method, request.target, host)]
    for name, value in request.headers.items():
        if name not in _OWN and name not in _RESERVED:
            parts.append(b"%s: %s\r\n" % (name, value))
    parts += [b"%s: %s\r\n" % header for header in extra.items()]
    parts.append(b"content-length: %d\r\n\r\n" % len(request.body))
    parts.append(request.body)
    return b"".join(parts)
