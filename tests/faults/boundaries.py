"""Runs the small workload again and again under strace, which ends it at a system call.

strace counts for each process by itself, and always to the same number. A process that
is to be ended at its Nth call first makes as many idle calls as are too many.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from headway.store.sqlite.store import SqliteStore
from tests.faults.workload import OPTIONS, run_and_tell

_nothing = os.open(os.devnull, os.O_RDWR)
IDLE: Final[dict[str, Callable[[], object]]] = {
    "pwrite64": lambda: os.pwrite(_nothing, b"", 0),
    "fdatasync": lambda: os.fdatasync(_nothing),
    "fsync": lambda: os.fsync(_nothing),
    "ftruncate": lambda: os.ftruncate(_nothing, 0),
    "unlink": Path(os.devnull, "none").unlink,
}
"""System calls by name, without an effect."""


def work(call: str, idle: int, directory: Path, options: str) -> None:
    """What it tells is in a file: that outlives it, other than what it holds back."""
    for _ in range(idle):
        with suppress(OSError):
            IDLE[call]()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    told = os.open(directory / "told", flags, 0o600)

    def tell(line: str) -> None:
        os.write(told, f"{line}\n".encode())

    run_and_tell(SqliteStore(directory / "jobs.db", OPTIONS[options]), tell)


def main(call: str, numbers: range, at: Path, options: str) -> None:
    """A process of its own for each number, in a folder of that name."""
    for number in numbers:
        folder = at / str(number)
        folder.mkdir()
        process = os.fork()
        if process == 0:
            status = 1
            try:
                work(call, numbers.stop - number, folder, options)
                status = 0
            finally:
                os._exit(status)
        _, ended = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(ended)
        os.write(1, f"{number} {code}\n".encode())


if __name__ == "__main__":
    numbers = range(*map(int, sys.argv[2:5]))
    main(sys.argv[1], numbers, Path(sys.argv[5]), sys.argv[6])
