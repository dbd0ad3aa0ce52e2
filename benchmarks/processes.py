"""Processes that a benchmark starts: the CPU they used, and that none is left behind."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

TICKS_S = os.sysconf("SC_CLK_TCK")
ENDING_S = 10.0
"""How long a process may take to end by itself before it is killed."""


class NotHere(Exception):
    """What is to be measured can't be had on this machine."""


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, its living descendants and those it has waited for."""
    return sum(_used_ticks(each) for each in (pid, *descendants(pid))) / TICKS_S


def descendants(pid: int) -> list[int]:
    """Every process below this one, at whatever depth."""
    found: list[int] = []
    parents = [pid]
    while parents:
        children = Path(f"/proc/{parents.pop()}/task")
        for task in _listed(children):
            below = [int(child) for child in _read(task / "children").split()]
            found += below
            parents += below
    return found


@contextlib.contextmanager
def started(
    command: Sequence[str], log: Path, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own; the whole group is gone afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Asks the process to end, and kills what is left of its group after a while."""
    if process.poll() is None:
        process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ENDING_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for_line(
    process: subprocess.Popen[bytes], log: Path, word: str, within_s: float
) -> str:
    """The first line of the log with this word in it."""
    # The name alone: results are kept, and say nothing of a machine's folders.
    name = Path(str(process.args[0])).name  # type: ignore[index]
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        text = log.read_text(errors="replace")
        for line in text.splitlines(keepends=True):
            if word in line and line.endswith("\n"):
                return line
        if process.poll() is not None:
            raise NotHere(f"{name} ended: {last_line(text)}")
        time.sleep(0.02)
    raise NotHere(f"{name} was not ready in {within_s:g} s")


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"


def _used_ticks(pid: int) -> int:
    # The name stands in brackets and may hold anything; fields are counted after it.
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _read(file: Path) -> str:
    """Nothing when the process has ended meanwhile."""
    try:
        return file.read_text()
    except OSError:
        return ""
