"""Where a store may lie, and who owns it: local file systems only, one process only."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from headway.store.errors import NotLocal, StoreFailed, StoreLocked

MOUNTS: Final = Path("/proc/self/mountinfo")
NETWORK_TYPES: Final = frozenset(
    [
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "fuse.ceph",
        "fuse.cephfs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.juicefs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.smbnetfs",
        "fuse.sshfs",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
    ]
)


def refuse_network(path: Path, mounts: str) -> None:
    """Locks and flushes of a network file system may say yes and do nothing."""
    kind = filesystem_type(path, mounts)
    if kind in NETWORK_TYPES:
        raise NotLocal(f"{path} is on {kind}, a network file system; use a local disk")


def filesystem_type(path: Path, mounts: str) -> str:
    """The type of the file system that holds a path; empty if it can't be known."""
    wanted = Path(os.path.realpath(path))
    length, found = -1, ""
    for line in mounts.splitlines():
        place, _, source = line.partition(" - ")
        fields = place.split(" ")
        if len(fields) < 5 or not source:
            continue
        point = Path(_unescaped(fields[4]))
        # of two mounts at one place the later hides the earlier
        if wanted.is_relative_to(point) and len(point.parts) >= length:
            length, found = len(point.parts), source.split(" ")[0]
    return found


def _unescaped(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n")):
        field = field.replace(code, character)
    return field.replace("\\134", "\\")


def sync_directory(directory: Path) -> None:
    """Makes the names of new files in it durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def owner_of(store: Path) -> str | None:
    """The process that owns a store now, by its number; None if nobody does."""
    path = store.with_name(store.name + ".owner")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(handle)
    return None


class OwnerLock:
    """A lock on a file beside the store; the kernel lets go of it when we die.

    The file is never removed: whoever waits for the lock has it open.
    """

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(store.name + ".owner")
        self._handle = self._locked(store)
        with suppress(OSError):  # who it is matters less than that it is locked
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, b"%d\n" % os.getpid(), 0)

    def _locked(self, store: Path) -> int:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreFailed(f"{self.path} can't be opened: {error}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip()
            os.close(handle)
            raise StoreLocked(
                f"{store} is owned by process {owner or 'unknown'}; "
                f"its lock is {self.path}"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def release(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
