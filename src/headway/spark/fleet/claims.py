"""Claims: jobs that a driver has leased, written down before any of them is run.

A folder holds the last claim of one queue. A claim with jobs is open: whoever starts
next finishes it before it claims anything itself.
"""

import fcntl
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from headway.core.errors import BadValue
from headway.spark.errors import ClaimsBusy, ClaimUnread
from headway.store.sqlite.place import sync_directory
from headway.wire.values import QueueName
from headway.wire.work import Leased

FORMAT: Final = 1
NAME: Final = "claim.json"


class Claim(msgspec.Struct, kw_only=True):
    """A number, and the jobs that it stands for: they do not change any more."""

    number: int = 0
    """0 is before the first."""
    queue: str
    worker: str = ""
    """Under what name they were leased."""
    jobs: list[Leased] = []
    """As they were leased, with their tokens; none once it is closed."""
    format: int = FORMAT


class Claims:
    """The claims of a queue, in a folder of its own under `root`.

    `root` is a folder, or an address of an object store as pyarrow knows them.
    """

    def __init__(self, root: str, queue: str) -> None:
        try:
            self._queue = msgspec.convert(queue, QueueName)
        except msgspec.ValidationError as error:
            raise BadValue("queue", queue, "is no name of a queue") from error
        is_address = "://" in root
        self._file: _Local | _Stored = (
            _Stored(f"{root.rstrip('/')}/{queue}/{NAME}")
            if is_address
            else _Local(Path(root) / queue / NAME)
        )

    def __enter__(self) -> Self:
        self._file.lock()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.unlock()

    def last(self) -> Claim:
        """The last one; open if it has jobs."""
        content = self._file.read()
        if content is None:
            return Claim(queue=self._queue)
        try:
            found = msgspec.json.decode(content, type=Claim)
        except msgspec.DecodeError as error:
            raise ClaimUnread(f"{self._file.name} can't be read: {error}") from error
        if found.format > FORMAT:
            raise ClaimUnread(f"{self._file.name} is of a newer version of Headway")
        return found

    def open(self, claim: Claim) -> None:
        """Durable when it returns."""
        self._file.replace(msgspec.json.encode(claim))

    def close(self, claim: Claim) -> None:
        """None of its jobs is anybody's concern any more."""
        closed = Claim(number=claim.number, queue=claim.queue)
        self._file.replace(msgspec.json.encode(closed))


class _Local:
    """A file that only its owner reads: it holds payloads, and tokens of leases."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._handle: int | None = None

    def lock(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self._path.with_name("lock")
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            place = self._path.parent
            raise ClaimsBusy(f"another driver works on {place}") from error
        self._handle = handle

    def unlock(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def read(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return None

    def replace(self, content: bytes) -> None:
        fresh = self._path.with_name(f"{NAME}.{secrets.token_hex(8)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        sync_directory(self._path.parent)


class _Stored:
    """An object: it is replaced as a whole, and nobody can lock it."""

    def __init__(self, address: str) -> None:
        from pyarrow import fs

        self.name = address
        self._files: Any
        self._files, self._path = fs.FileSystem.from_uri(address)

    def lock(self) -> None:
        """That there is one driver is its user's to see to."""

    def unlock(self) -> None:
        """There is no lock."""

    def read(self) -> bytes | None:
        try:
            with self._files.open_input_stream(self._path) as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None

    def replace(self, content: bytes) -> None:
        self._files.create_dir(self._path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(self._path) as file:
            file.write(content)
