"""Requests, responses and what lies between, as far as HTTP knows them."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec

JSON: Final = b"application/json"
REASONS: Final = {status.value: status.phrase.encode() for status in HTTPStatus}
_HEADS: Final = {
    status: b"HTTP/1.1 %d %s\r\n" % (status, reason)
    for status, reason in REASONS.items()
}
_ALWAYS: Final = b"x-content-type-options: nosniff\r\n"


class Request(msgspec.Struct):
    """One request, read whole."""

    method: bytes
    target: bytes
    """The path and the query, as they were sent."""
    headers: dict[bytes, bytes]
    """By lower-case name; of a repeated header the values are joined by commas."""
    body: bytes = b""
    peer: str = ""
    """The address it came from."""
    is_kept: bool = False
    """Its HTTP/1.0 client wants to go on, and has to be told that it can."""
    found: Any = None
    """Its route, if somebody has looked for it already."""
    is_counted: bool = False
    """It counts against the rate of its token no more."""
    is_own: bool = False
    """A node asks it by itself, and for nobody."""

    @property
    def path(self) -> bytes:
        return self.target.partition(b"?")[0]

    def query(self) -> list[tuple[str, str]]:
        """Names and values in order; broken escapes become U+FFFD."""
        pairs: list[tuple[str, str]] = []
        for part in self.target.partition(b"?")[2].split(b"&"):
            if part:
                name, _, value = part.partition(b"=")
                pairs.append((_unquoted(name), _unquoted(value)))
        return pairs


class Response(msgspec.Struct):
    """What is sent back."""

    status: int
    body: bytes = b""
    kind: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    is_last: bool = False
    """The connection is closed after it."""

    def packed(
        self, *, is_closing: bool, has_body: bool = True, is_kept: bool = False
    ) -> bytes:
        """The bytes to send; a HEAD request gets everything but the body."""
        status = self.status
        parts = [_HEADS[status], _ALWAYS]
        is_bare = status in (204, 304)
        if not is_bare:
            parts.append(b"content-type: %s\r\n" % self.kind)
            parts.append(b"content-length: %d\r\n" % len(self.body))
        parts += [b"%s: %s\r\n" % header for header in self.headers]
        if is_closing:
            parts.append(b"connection: close\r\n")
        elif is_kept:
            parts.append(b"connection: keep-alive\r\n")
        parts.append(b"\r\n")
        if has_body and not is_bare:
            parts.append(self.body)
        return b"".join(parts)


def _unquoted(text: bytes) -> str:
    return unquote(text.replace(b"+", b" ").decode("latin-1"), errors="replace")


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
