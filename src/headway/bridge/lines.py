"""JSON lines as a source: a file, or whatever is written to standard input."""

import os
import select
from typing import Final

from headway.bridge.port import Gone, Marks, Message

LINE_BYTES_MAX: Final = 2 << 20
READ_BYTES: Final = 1 << 16
POLL_BYTES: Final = 8 << 20


class Lines:
    """Reads a descriptor; the offset of a message is the number of its line, from 0.

    Nothing is committed: a reply that is given again changes nothing.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self._rest = bytearray()
        self._number = 0
        self._is_long = False
        """The line that is being read is longer than any may be."""
        self._is_ended = False

    @property
    def is_over(self) -> bool:
        return self._is_ended and not self._rest and not self._is_long

    def open(self, gone: Gone) -> None:
        """There is nobody to share it with."""

    def poll(self, most: int, wait_s: float) -> list[Message]:
        found: list[Message] = []
        size = 0
        while len(found) < most and size < POLL_BYTES:
            line = self._line(0.0 if found else wait_s)
            if line is None:
                break
            if line.fault or (line.value or b"").strip():
                found.append(line)
                size += line.size
        return found

    def commit(self, marks: Marks) -> None:
        """A descriptor keeps no marks."""

    def close(self) -> None:
        """The descriptor is the caller's."""

    def _line(self, wait_s: float) -> Message | None:
        while True:
            end = self._rest.find(b"\n")
            if end < 0 and self._is_ended:
                end = len(self._rest)
            if end >= 0 and (self._rest or self._is_long):
                value = bytes(self._rest[:end])
                del self._rest[: end + 1]
                return self._message(value)
            if self._is_ended:
                return None
            if len(self._rest) > LINE_BYTES_MAX:
                self._is_long = True
                self._rest.clear()
            if not select.select([self._descriptor], [], [], wait_s)[0]:
                return None
            part = os.read(self._descriptor, READ_BYTES)
            self._is_ended = not part
            self._rest += part

    def _message(self, value: bytes) -> Message:
        is_long, self._is_long = self._is_long or len(value) > LINE_BYTES_MAX, False
        fault = "the line is longer than 2 MiB" if is_long else ""
        number = self._number
        self._number += 1
        return Message(self._name, 0, number, b"" if is_long else value, fault=fault)
