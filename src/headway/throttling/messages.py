"""What crosses the socket between an owner and the process of a throttler.

A frame is four bytes of length and a record in MessagePack. Nothing is ever made of
bytes but the records of this module.
"""

import struct
from typing import Final, Literal, TypeVar

import msgspec

from headway.throttling import ThrottledJob

HEAD: Final = struct.Struct(">I")
FRAME_MAX: Final = 64 << 20
QUEUE: Final = 0
KIND: Final = 1
TENANT: Final = 2
LABEL: Final = 3

Key = tuple[int, str, str]
"""What is counted: one of the four above, a name, and the value if that is a label's."""
T = TypeVar("T")


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The first of all: where modules are looked for beside the usual places."""

    path: list[str]


class Ready(msgspec.Struct, frozen=True, array_like=True):
    """The answer to Hello."""

    error: str = ""
    """Why there is no such throttler."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Jobs to be judged in their order, and what has changed since the last batch."""

    counts: list[tuple[Key, int]]
    jobs: list[ThrottledJob]


class Told(msgspec.Struct, frozen=True, array_like=True):
    """The verdict on one job, or the error in its place."""

    verdict: Literal["start", "later", "refuse", ""] = ""
    delay_ms: int = 0
    at_ms: int = 0
    """0 means: after the delay."""
    text: str = ""
    error: str = ""
    """The type of what was raised, and where: it says nothing of any job."""


def framed(message: msgspec.Struct) -> bytes:
    body = msgspec.msgpack.encode(message)
    return HEAD.pack(len(body)) + body


class Frames:
    """Bytes as they come, cut into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, more: bytes) -> None:
        self._bytes += more

    def next(self, kind: type[T]) -> T | None:
        """The next message, if it is whole; what is none of ours is an error."""
        if len(self._bytes) < HEAD.size:
            return None
        (size,) = HEAD.unpack_from(self._bytes)
        if size > FRAME_MAX:
            raise msgspec.DecodeError(f"a frame of {size} bytes")
        end = HEAD.size + size
        if len(self._bytes) < end:
            return None
        body = bytes(self._bytes[HEAD.size : end])
        del self._bytes[:end]
        return msgspec.msgpack.decode(body, type=kind)
