"""Chunks of writes as files: each is whole and on stable storage, or not there.

A write has a folder of its own. The list of chunks that were published is a file beside
them, named by its digest: the record of the publication names it, and so nothing else.
"""

import os
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec

from headway.core.spec import JobSpec
from headway.store.sqlite.place import sync_directory
from headway.wire.writes import Winner

_HEAD: Final = struct.Struct(">I")
_DRAFT: Final = "."
_LIST: Final = "list."
_CHUNK: Final = re.compile(r"(\d+)\.([A-Za-z0-9][A-Za-z0-9_-]*)\.(\d+)")
_encode: Final = msgspec.msgpack.Encoder().encode
_specs: Final = msgspec.msgpack.Decoder(list[JobSpec]).decode


class Broken(Exception):
    """A file is not what was published."""


class Place(NamedTuple):
    """Which chunk of a write: of which partition, attempt, and which of them."""

    partition: int
    attempt: str
    number: int

    @property
    def file(self) -> str:
        return f"{self.partition}.{self.attempt}.{self.number}"


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a chunk without its jobs."""

    file: str
    queue: str
    jobs: int
    least_slo_ms: int | None
    digest: str


_chunk: Final = msgspec.msgpack.Decoder(Chunk).decode
_chunks: Final = msgspec.msgpack.Decoder(list[Chunk]).decode


class Staged(msgspec.Struct):
    """A write of which chunks are there."""

    chunks: dict[str, Chunk]
    bytes: int = 0
    touched_s: float = 0.0
    is_known_new: bool = False
    """The owner has said that nothing was published under its name."""


class Staging:
    """The folders of all writes. Whoever calls sees to it that each has one caller."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writes: dict[str, Staged] = {}
        self._turn = Lock()
        for name in self._names():
            found = self._read(name)
            if found is not None:
                self._writes[name] = found

    @property
    def bytes(self) -> int:
        """Of all writes together."""
        with self._turn:
            return sum(one.bytes for one in self._writes.values())

    def names(self) -> list[str]:
        with self._turn:
            return list(self._writes)

    def find(self, name: str) -> Staged | None:
        with self._turn:
            return self._writes.get(name)

    def put(self, name: str, place: Place, queue: str, specs: list[JobSpec]) -> Chunk:
        """Writes a chunk; it counts when `keep` has given it its name."""
        body = _encode(specs)
        slos_ms = [spec.slo_ms for spec in specs if spec.slo_ms is not None]
        least_slo_ms = min(slos_ms, default=None)
        chunk = Chunk(place.file, queue, len(specs), least_slo_ms, _digest(body))
        head = _encode(chunk)
        draft = self._draft(name, place.file, chunk.digest)
        draft.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(draft, _HEAD.pack(len(head)) + head + body)
        return chunk

    def keep(self, name: str, chunk: Chunk, now_s: float) -> Staged:
        """The chunk is part of its write from now on."""
        draft = self._draft(name, chunk.file, chunk.digest)
        size = draft.stat().st_size
        draft.replace(self._folder / name / chunk.file)
        with self._turn:
            staged = self._writes.setdefault(name, Staged({}))
            staged.chunks[chunk.file] = chunk
            staged.bytes += size
            staged.touched_s = now_s
        return staged

    def forget(self, name: str, chunk: Chunk) -> None:
        """The chunk is not wanted after all."""
        self._draft(name, chunk.file, chunk.digest).unlink(missing_ok=True)

    def seal(self, name: str, chunks: list[Chunk]) -> str:
        """Makes names and list durable; answers the digest of the list."""
        folder = self._folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        body = _encode(chunks)
        digest = _digest(body)
        draft = self._draft(name, "list", digest)
        _write(draft, body)
        draft.replace(folder / (_LIST + digest))
        sync_directory(folder)
        sync_directory(self._folder)
        sync_directory(self._folder.parent)
        return digest

    def sealed(self, name: str, digest: str) -> list[Chunk]:
        """The chunks that were published, in their order."""
        try:
            body = (self._folder / name / (_LIST + digest)).read_bytes()
        except OSError as error:
            raise Broken(f"the list of write {name!r} can't be read") from error
        if _digest(body) != digest:
            raise Broken(f"the list of write {name!r} was changed")
        return _chunks(body)

    def load(self, name: str, chunk: Chunk) -> list[JobSpec]:
        try:
            blob = (self._folder / name / chunk.file).read_bytes()
        except OSError as error:
            raise Broken(f"chunk {chunk.file} of write {name!r} is gone") from error
        length = int.from_bytes(blob[: _HEAD.size], "big")
        body = blob[_HEAD.size + length :]
        if _digest(body) != chunk.digest:
            raise Broken(f"chunk {chunk.file} of write {name!r} was changed")
        return _specs(body)

    def drop_others(self, name: str, chunks: list[Chunk]) -> None:
        """Attempts that lost are not kept any longer."""
        wanted = {chunk.file for chunk in chunks}
        folder = self._folder / name
        for place in folder.iterdir():
            is_chunk = _CHUNK.fullmatch(place.name) is not None
            if place.name not in wanted and (is_chunk or place.name[0] == _DRAFT):
                place.unlink(missing_ok=True)
        with self._turn:
            staged = self._writes.setdefault(name, Staged({}))
            staged.chunks = {chunk.file: chunk for chunk in chunks}
            staged.bytes = sum(one.stat().st_size for one in folder.iterdir())

    def remove(self, name: str) -> bool:
        """All of it is gone; False if there was nothing."""
        with self._turn:
            is_there = self._writes.pop(name, None) is not None
        shutil.rmtree(self._folder / name, ignore_errors=True)
        return is_there

    def _names(self) -> Iterator[str]:
        with suppress(FileNotFoundError):
            for place in self._folder.iterdir():
                if place.is_dir():
                    yield place.name

    def _read(self, name: str) -> Staged | None:
        staged = Staged({})
        folder = self._folder / name
        for place in folder.iterdir():
            if place.name[0] == _DRAFT:
                place.unlink(missing_ok=True)
                continue
            about = place.stat()
            staged.bytes += about.st_size
            staged.touched_s = max(staged.touched_s, about.st_mtime)
            if _CHUNK.fullmatch(place.name):
                # One that can't be read is as good as none: its writer sends it again.
                with suppress(OSError, struct.error, msgspec.MsgspecError):
                    staged.chunks[place.name] = _read_head(place)
        staged.touched_s = max(staged.touched_s, folder.stat().st_mtime)
        return staged

    def _draft(self, name: str, file: str, digest: str) -> Path:
        return self._folder / name / f"{_DRAFT}{file}.{digest}"


def chosen(staged: Staged, winners: list[Winner]) -> Iterator[Chunk | Place]:
    """The chunks of these attempts in order; a place where one is missing."""
    for winner in sorted(winners, key=lambda one: one.partition):
        for number in range(winner.chunks):
            place = Place(winner.partition, winner.attempt, number)
            yield staged.chunks.get(place.file) or place


def _read_head(place: Path) -> Chunk:
    with place.open("rb") as file:
        (length,) = _HEAD.unpack(file.read(_HEAD.size))
        return _chunk(file.read(length))


def _write(path: Path, content: bytes) -> None:
    """On stable storage when it returns, but for its name."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    handle = os.open(path, flags, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _digest(body: Any) -> str:
    return blake2b(body, digest_size=16).hexdigest()
