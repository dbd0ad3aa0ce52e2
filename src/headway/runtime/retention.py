"""How long history is kept: by age and by size, and never silently past a reader.

Marks say which event was the next one, when, and after how many bytes of history. One is
made with each checkpoint; they are thinned out, so that there are never many.
"""

from typing import Final

import msgspec

from headway.core.defaults import DAY_MS

MARKS_MAX: Final = 512


class Retention(msgspec.Struct, frozen=True):
    """What is older or more than this is dropped, a step at a time."""

    age_ms: int = 14 * DAY_MS
    size_bytes: int = 1 << 30
    lag_bytes: int = 4 << 30
    """A reader may keep so much from being dropped; one that lags further is cut off."""


class Mark(msgspec.Struct, array_like=True):
    next_event: int
    at_ms: int
    bytes_before: int
    """Of all history that was ever written before that event."""


class Reader(msgspec.Struct, array_like=True):
    """Somebody who reads history and must not miss any of it."""

    position: int
    """The first event that it has not read."""
    is_cut_off: bool = False
    """What it has not read was dropped, since it lagged too far."""


decode_marks: Final = msgspec.msgpack.Decoder(tuple[int, list[Mark]]).decode
decode_reader: Final = msgspec.msgpack.Decoder(Reader).decode


class Keeper:
    """Decides what of history may go."""

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.marks: list[Mark] = []
        self.readers: dict[str, Reader] = {}
        self.bytes_written = 0

    def mark(self, next_event: int, now_ms: int) -> None:
        """Events before this one are written."""
        self.marks.append(Mark(next_event, now_ms, self.bytes_written))
        if len(self.marks) > MARKS_MAX:
            del self.marks[1 : MARKS_MAX // 2 : 2]

    def droppable(self, now_ms: int) -> int | None:
        """The event before which history may be dropped now, if there is any."""
        keep = self.retention
        old = [
            mark
            for mark in self.marks
            if now_ms - mark.at_ms > keep.age_ms
            or self.bytes_written - mark.bytes_before > keep.size_bytes
        ]
        if not old:
            return None
        before = old[-1].next_event
        for reader in self.readers.values():
            if reader.is_cut_off or reader.position >= before:
                continue
            if self._lag_bytes(reader) > keep.lag_bytes:
                reader.is_cut_off = True
            else:
                before = reader.position
        self.marks = [mark for mark in self.marks if mark.next_event >= before]
        return before

    def _lag_bytes(self, reader: Reader) -> int:
        """How much was written since the reader's position, at least."""
        for mark in self.marks:
            if mark.next_event > reader.position:
                return self.bytes_written - mark.bytes_before
        return 0
