"""The frames of a write-ahead log, read from the file beside SQLite.

SQLite takes the first frame that is not as it should be for the log's end. That is what
a torn commit looks like; and so does a byte that the disk has lost, with acknowledged
commits behind it. Every commit is flushed before the next one is begun, and what was
torn is cut off before the log is used again: so behind its end there may be the last
commit, torn, and never two.
"""

import struct
from collections.abc import Iterator
from typing import Final

import apsw
import msgspec

from headway.store.sqlite.pragmas import PAGE_BYTES

HEADER_BYTES: Final = 32
FRAME_HEADER_BYTES: Final = 24
FRAME_BYTES: Final = PAGE_BYTES + FRAME_HEADER_BYTES
CHUNK_FRAMES: Final = 15
"""Of more than 128 KiB in one call SQLite writes a part, and calls the disk full."""
MAGIC: Final = 0x377F0682
"""With a last bit of 1 the checksums are of numbers with their high byte first."""

_frame_header = struct.Struct(">II8s")
"""Page, size of the file after a commit (0 within one), salts."""


class Survey(msgspec.Struct):
    """What the headers of a log and of its frames say; checksums of frames are not
    looked at.
    """

    header: bytes
    size_bytes: int
    commits: list[int]
    """Frames of this log that end a commit, by number; the first frame is 1."""


def survey(file: apsw.VFSFile) -> Survey:
    """Reads all of the log once."""
    size_bytes = file.xFileSize()
    header = file.xRead(min(size_bytes, HEADER_BYTES), 0)
    found = Survey(header, size_bytes, [])
    salts = header[16:24]
    is_sound = is_header_sound(header)
    for number, frame in _frames(file, size_bytes):
        _, pages, of_frame = _frame_header.unpack_from(frame)
        if of_frame != salts:
            if number == 1 and not is_sound:
                break  # nobody can tell whether these frames are of this log
        elif pages:
            found.commits.append(number)
    if not is_sound and _is_torn(header):
        found.commits.clear()
    return found


def is_header_sound(header: bytes) -> bool:
    """Whether SQLite takes the file for a log at all."""
    if len(header) < HEADER_BYTES:
        return False
    magic = int.from_bytes(header[:4], "big")
    if magic & ~1 != MAGIC:
        return False
    order = ">" if magic & 1 else "<"
    first = second = 0
    words = struct.unpack(f"{order}6I", header[:24])
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.pack(">II", first, second) == header[24:]


def damage(found: Survey, frames: int) -> str | None:
    """What a log that SQLite reads up to a frame has lost, if anything."""
    beyond = sum(1 for number in found.commits if number > frames)
    if beyond < 2:
        return None
    return (
        f"the log is damaged behind frame {frames}: of {beyond} commits there, all but "
        "the last were acknowledged"
    )


def _is_torn(header: bytes) -> bool:
    """Whether it may be the begin of a new header and the end of the one before it.

    Frames are of the old log then, all of which is in the file already.
    """
    if len(header) < HEADER_BYTES:
        return True
    number = int.from_bytes(header[12:16], "big")
    before = ((number - 1) & 0xFFFFFFFF).to_bytes(4, "big")
    return is_header_sound(header[:12] + before + header[16:])


def _frames(file: apsw.VFSFile, size_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Whole frames by number."""
    count = max(size_bytes - HEADER_BYTES, 0) // FRAME_BYTES
    for first in range(0, count, CHUNK_FRAMES):
        some = min(CHUNK_FRAMES, count - first)
        offset = HEADER_BYTES + first * FRAME_BYTES
        chunk = file.xRead(some * FRAME_BYTES, offset)
        for place in range(some):
            begin = place * FRAME_BYTES
            yield first + place + 1, chunk[begin : begin + FRAME_BYTES]
