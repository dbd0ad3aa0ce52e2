"""Trends over restarts: one small file of the data folder, replaced about once a minute.

It is a convenience, and nothing depends on it: what can't be read is told to the log, and
trends begin anew. Times are those of the owner's clock.
"""

import os
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

import msgspec

from headway.server.trends import LANES_MAX, LaneTrack, Trends

FILE: Final = "trends"
HEAD: Final = f"headway trends 1 {sys.byteorder}\n".encode()
SUM_BYTES: Final = 4
CONTENT_MAX: Final = 16 << 20
"""Bytes of all rings are a third of it at most, before they are pressed."""
LEVEL: Final = 1


class Told(Protocol):
    """Hears of a file that could not be read or written."""

    def warned(self, event: str, **fields: object) -> None: ...


class KeptLane(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A lane's track, with its rings as they are in memory."""

    queue: str
    slo_ms: int
    used_ms: int
    late_ms: int
    broken_since_ms: int | None
    short: bytes
    long: bytes


class Kept(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Everything that is kept."""

    since_ms: int
    lanes: list[KeptLane]
    slots_short: bytes
    slots_long: bytes


class TrendsFile:
    """Reads the file at a start, and writes it now and then; both in other threads."""

    def __init__(self, folder: Path, told: Told) -> None:
        self._path = folder / FILE
        self._told = told
        self._lock = Lock()
        self._is_failing = False

    def read(self, at_ms: int) -> tuple[Trends, int]:
        """What was kept and still counts at that time, and since when; both may be none."""
        try:
            with self._path.open("rb") as file:
                content = file.read(CONTENT_MAX + 1)
            return _trends(_opened(content), at_ms)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, msgspec.MsgspecError, zlib.error) as error:
            self._told.warned("trends not read", why=str(error))
        return Trends(), 0

    def write(self, kept: Kept) -> None:
        """In place of the last one: whoever is killed leaves the one or the other."""
        packed = zlib.compress(msgspec.msgpack.encode(kept), LEVEL)
        content = HEAD + zlib.crc32(packed).to_bytes(SUM_BYTES) + packed
        fresh = self._path.with_name(f"{FILE}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with self._lock:
            try:
                with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.replace(self._path)
            except OSError as error:
                with suppress(OSError):
                    fresh.unlink(missing_ok=True)
                if not self._is_failing:
                    self._told.warned("trends not written", why=str(error))
                self._is_failing = True
            else:
                self._is_failing = False


def kept(trends: Trends, since_ms: int) -> Kept:
    """A copy of them, to be written while they go on."""
    return Kept(
        since_ms,
        [
            KeptLane(
                queue=key[0],
                slo_ms=key[1],
                used_ms=track.used_ms,
                late_ms=track.late_ms,
                broken_since_ms=track.broken_since_ms,
                short=track.short.dump(),
                long=track.long.dump(),
            )
            for key, track in trends.lanes.items()
        ],
        trends.slots_short.dump(),
        trends.slots_long.dump(),
    )


def _opened(content: bytes) -> Kept:
    if not content.startswith(HEAD):
        raise ValueError("it is no file of trends of this version and machine")
    begin = len(HEAD) + SUM_BYTES
    packed = content[begin:]
    if zlib.crc32(packed).to_bytes(SUM_BYTES) != content[len(HEAD) : begin]:
        raise ValueError("it is damaged: its checksum does not fit")
    plain = zlib.decompressobj().decompress(packed, CONTENT_MAX)
    return msgspec.msgpack.decode(plain, type=Kept)


def _trends(found: Kept, at_ms: int) -> tuple[Trends, int]:
    trends = Trends()
    for one in found.lanes[:LANES_MAX]:
        track = LaneTrack()
        track.short.load(one.short, at_ms)
        track.long.load(one.long, at_ms)
        if track.long.points():
            track.used_ms = min(one.used_ms, at_ms)
            track.late_ms = min(one.late_ms, at_ms)
            track.broken_since_ms = one.broken_since_ms
            trends.lanes[one.queue, one.slo_ms] = track
    trends.slots_short.load(found.slots_short, at_ms)
    trends.slots_long.load(found.slots_long, at_ms)
    points = trends.slots_long.points()
    return trends, max(found.since_ms, points[0][0]) if points else 0
