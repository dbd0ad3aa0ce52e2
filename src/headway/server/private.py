"""Files that only their owner may read, replaced as a whole, one writer at a time."""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from headway.core.errors import BadValue
from headway.store.sqlite.place import sync_directory

BYTES_MAX: Final = 16 << 20
LOCK_S: Final = 10.0
"""How long another writer may take."""
TRY_S: Final = 0.02
Seen = tuple[int, int, int, int]
"""By what a change of the file is known."""


class PrivateFile:
    """One file of a server's folder; `what` is in it."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self._what = what

    def look(self) -> tuple[bytes | None, Seen | None]:
        """Content and what the file looked like; none of either without a file."""
        try:
            with self.path.open("rb") as file:
                seen = _seen(os.fstat(file.fileno()))
                content = file.read(BYTES_MAX + 1)
        except FileNotFoundError:
            return None, None
        if len(content) > BYTES_MAX:
            raise self.unreadable("it is too large")
        return content, seen

    def seen(self) -> Seen | None:
        with suppress(FileNotFoundError):
            return _seen(self.path.stat())
        return None

    def unreadable(self, why: object) -> BadValue:
        rule = f"can't be read as {self._what}: {why}"
        return BadValue(self._what, self.path.name, rule)

    def replace(self, content: bytes) -> None:
        """Durable when it returns."""
        fresh = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}")
        try:
            write_private(fresh, content)
            fresh.replace(self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
        sync_directory(self.path.parent)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time; the kernel lets go of the lock when its holder dies."""
        path = self.path.with_name(self.path.name + ".lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until_s = time.monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until_s:
                        rule = f"somebody else is writing the {self._what}"
                        raise BadValue(self._what, path.name, rule) from None
                time.sleep(TRY_S)
            yield
        finally:
            os.close(handle)


def write_private(path: Path, content: bytes) -> None:
    """A new file that only its owner may read, durable but for its name."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _seen(stat: os.stat_result) -> Seen:
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_size
