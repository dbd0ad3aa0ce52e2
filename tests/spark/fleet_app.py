"""An app for executors: what its handlers did is written to a file that each job names."""

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import headway
from headway.worker.outcomes import WaitFor

app = headway.App("http://127.0.0.1:1")
"""Nobody is there: fleets are told where the server is."""
here = headway.App("memory:")
PATIENCE_S = 120.0


def note(notes: str, text: str) -> None:
    """One line, whole, whoever else writes."""
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{text}\n".encode())
    os.close(file)


@app.job(queue="bulk")
def plain(notes: str, number: int) -> None:
    note(notes, str(number))


@app.job(queue="bulk")
async def awaited(notes: str, number: int) -> None:
    await asyncio.sleep(0)
    note(notes, str(number))


@app.job(queue="bulk")
def failing(notes: str, number: int) -> None:
    note(notes, str(number))
    raise ValueError(f"no {number}")


@app.job(queue="bulk", retry=lambda job, error, attempt: headway.Bury("as told"))
def buried(notes: str, number: int) -> None:
    raise KeyError(number)


@app.job(queue="bulk")
def asking(notes: str, number: int) -> WaitFor:
    return headway.wait_for(f"key-{number}", timeout="1h")


@asking.on_reply
def answered(reply: str, notes: str, number: int) -> None:
    note(notes, f"{number} {reply}")


@app.job(queue="bulk")
def deadly(notes: str, number: int, once: str | None = None) -> None:
    """Takes its process with it: once, until the file is there, or always."""
    note(notes, f"{number} deadly")
    if once is None or not Path(once).exists():
        if once is not None:
            Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)


@app.job(queue="bulk")
def gated(notes: str, number: int, gate: str) -> None:
    """Ends when the file is there."""
    note(notes, f"{number} started")
    until_s = time.monotonic() + PATIENCE_S
    while not Path(gate).exists() and time.monotonic() < until_s:
        threading.Event().wait(0.05)
    note(notes, f"{number} ended")
