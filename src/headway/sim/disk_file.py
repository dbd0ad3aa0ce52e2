"""One file of the simulated disk: what is read, what is on the disk, what is between."""

from random import Random
from typing import Final

import apsw

SECTOR_BYTES: Final = 512


class DiskFile:
    """`seen` is what a reader gets; `_flushed` is what a power cut leaves for sure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen = bytearray()
        self.locks: dict[int, int] = {}
        """Lock levels of SQLite by handle."""
        self._flushed = bytearray()
        self._pending: list[tuple[int, bytes | None]] = []
        """Writes by offset; None cuts the file off there."""

    def write(self, data: bytes, offset: int) -> None:
        _write(self.seen, data, offset)
        self._pending.append((offset, data))

    def truncate(self, size: int) -> None:
        _truncate(self.seen, size)
        self._pending.append((size, None))

    def sync(self) -> None:
        for offset, data in self._pending:
            if data is None:
                _truncate(self._flushed, offset)
            else:
                _write(self._flushed, data, offset)
        self._pending.clear()

    def fail_sync(self, chance: Random) -> None:
        """As Linux does it: what did not reach the disk is called clean all the same.

        It is still read, and no later flush writes it.
        """
        self._flush_some(chance, chance.random())

    def power_cut(self, chance: Random, share: float) -> None:
        """Of what was not flushed about this share is there."""
        self._flush_some(chance, share)
        self.seen = bytearray(self._flushed)

    def can_lock(self, handle: int, level: int) -> bool:
        others = [held for of, held in self.locks.items() if of != handle and held]
        if level == apsw.SQLITE_LOCK_SHARED:
            return all(held < apsw.SQLITE_LOCK_PENDING for held in others)
        if level == apsw.SQLITE_LOCK_RESERVED:
            return all(held < apsw.SQLITE_LOCK_RESERVED for held in others)
        return not others

    def _flush_some(self, chance: Random, share: float) -> None:
        """Sector by sector: any of its versions may be the one on the disk."""
        for offset, data in self._pending:
            if data is None:
                if chance.random() < share:
                    _truncate(self._flushed, offset)
                continue
            for begin, end in _sectors(offset, len(data)):
                if chance.random() < share:
                    part = data[begin - offset : end - offset]
                    _write(self._flushed, part, begin)
        self._pending.clear()


def _sectors(offset: int, length: int) -> list[tuple[int, int]]:
    """The parts of a write that reach the disk whole or not at all."""
    last = offset + length
    first_edge = offset - offset % SECTOR_BYTES
    return [
        (max(edge, offset), min(edge + SECTOR_BYTES, last))
        for edge in range(first_edge, last, SECTOR_BYTES)
    ]


def _write(content: bytearray, data: bytes, offset: int) -> None:
    gap = offset - len(content)
    if gap > 0:
        content.extend(bytes(gap))
    content[offset : offset + len(data)] = data


def _truncate(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))
