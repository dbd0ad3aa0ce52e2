"""An app whose jobs kill, starve or block the process that they run in."""

import ctypes
import os
import resource
import signal
import sys
import threading
from typing import Any

import headway
from tests.worker.handlers import note

app = headway.App(os.environ.get("TEST_URL", "memory:"))
NEIGHBOUR_S = 0.5
"""How long a neighbour runs: as a rule longer than it takes to be killed."""
_running = threading.Semaphore(0)


def end_process(how: str) -> None:
    match how:
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "stack":
            sys.setrecursionlimit(1 << 30)
            _descend(0)
        case "memory":
            eat(64 << 20)
        case "abort":
            os.abort()
    note(f"survived {how}")


def _descend(_: object) -> Any:
    """By way of C, so that it is the stack of the process that overflows."""
    return max([0], key=_descend)


def eat(more: int) -> None:
    """Takes memory until there is none: so much more than there is now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 nothing may be imported here
        size = int(file.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, most))
    eaten = []
    try:
        while True:
            eaten.append(bytearray(1 << 20))
    finally:
        del eaten
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@app.job(queue="apart", isolate="process")
def die_apart(how: str) -> None:
    end_process(how)


@app.job(queue="apart")
def beside(number: int) -> None:
    note(f"beside {number} {headway.current_job().attempt}")


@app.job(queue="shared")
def die_shared(how: str) -> None:
    """Kills its worker when somebody else runs in it, or nobody comes."""
    note(f"poison {os.getpid()} {headway.current_job().attempt}")
    _running.acquire(timeout=NEIGHBOUR_S)
    end_process(how)


@app.job(queue="shared")
def neighbour(number: int) -> None:
    _running.release()
    threading.Event().wait(NEIGHBOUR_S)
    note(f"neighbour {number} {headway.current_job().attempt}")


@app.job(queue="shared")
async def eats() -> None:
    eat(256 << 20)


@app.job(queue="shared")
async def blocks(seconds: float) -> None:
    threading.Event().wait(seconds)
    note(f"blocked {headway.current_job().attempt}")
