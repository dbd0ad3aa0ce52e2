"""A copy of a store while its owner goes on writing. The copy is a store itself."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from headway.store.errors import BackupRefused
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.place import sync_directory
from headway.store.sqlite.reader import failure

Progress = Callable[[int, int], object]
"""Told the pages still to copy, and all pages."""

STEP_PAGES: Final = 1024


def back_up(source: Path, target: Path, progress: Progress | None = None) -> None:
    """Copies the state of one moment; the target appears whole or not at all.

    Meanwhile the source's log can't be cut off: it grows by what is written.
    """
    if not source.exists():
        raise BackupRefused(f"{source} does not exist")
    if target.exists():
        raise BackupRefused(f"{target} exists and is left as it is")
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".partial"
    )
    partial = Path(name)
    try:
        os.close(handle)
        _copy(source, partial, progress or _ignore)
        _sync(partial)
        os.link(partial, target)  # unlike a rename it never overwrites
    except FileExistsError:
        raise BackupRefused(f"{target} exists and is left as it is") from None
    finally:
        partial.unlink()
    sync_directory(target.parent)


def _copy(source: Path, partial: Path, progress: Progress) -> None:
    reading = open_for_reader(source)
    try:
        writing = apsw.Connection(str(partial))
        try:
            # it is flushed once, at the end; a failed copy is thrown away
            writing.pragma("journal_mode", "OFF")
            writing.pragma("synchronous", "OFF")
            # one state for the whole copy: a commit would begin it anew
            reading.execute("BEGIN; SELECT value FROM meta").get  # noqa: B018
            with writing.backup("main", reading, "main") as copying:
                while not copying.done:
                    copying.step(STEP_PAGES)
                    progress(copying.remaining, copying.page_count)
        finally:
            writing.close()
    except apsw.Error as error:
        raise failure(error) from error
    finally:
        reading.close()


def _ignore(_remaining: int, _total: int) -> None:
    """Nobody watches."""


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
