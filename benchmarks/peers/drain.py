"""How a drain is timed: jobs wait already, and one worker empties their queue.

The clock starts in the worker, when it calls the first handler, so that nobody's start
counts; it ends when the queue says that nothing waits and nothing is under way.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from benchmarks.processes import NotHere, started, wait_for_line

BEGUN = "begun at"
READY_S = 60.0
WORK_S = 300.0
"""A run that takes longer is given up."""
LOOK_S = 0.01


@dataclass(frozen=True, slots=True)
class Drained:
    """What one worker did, and how it was set up."""

    jobs_per_s: float
    notes: str


class First:
    """Called by every handler: says once when it was called first."""

    def __init__(self) -> None:
        self._is_said = False

    def __call__(self) -> None:
        if not self._is_said:
            self._is_said = True
            print(f"{BEGUN} {time.monotonic()}", flush=True)


def best(results: Sequence[Drained]) -> Drained:
    """The best set-up; its note also says what the others did."""
    found = max(results, key=lambda result: result.jobs_per_s)
    if len(results) == 1:
        return found
    others = ", ".join(f"{result.jobs_per_s:,.0f}" for result in results)
    return Drained(found.jobs_per_s, f"{found.notes}; all set-ups: {others} jobs/s")


def drain(
    command: Sequence[str],
    log: Path,
    environment: dict[str, str],
    jobs: int,
    is_empty: Callable[[], bool],
) -> float:
    """Jobs a second, from the first handler to the last job done."""
    with _begun(command, log, environment) as (process, began_s):
        until_s = began_s + WORK_S
        while not is_empty():
            if process.poll() is not None:
                raise NotHere(f"a worker ended with {process.returncode}")
            if time.monotonic() > until_s:
                raise NotHere(f"a worker was not done in {WORK_S:g} s")
            time.sleep(LOOK_S)
        return jobs / (time.monotonic() - began_s)


@contextmanager
def _begun(
    command: Sequence[str], log: Path, environment: dict[str, str]
) -> Iterator[tuple[Popen[bytes], float]]:
    with started(command, log, environment) as process:
        line = wait_for_line(process, log, BEGUN, READY_S)
        yield process, float(line.rpartition(BEGUN)[2].split()[0])
