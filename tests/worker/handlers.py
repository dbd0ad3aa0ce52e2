"""An app for worker processes: what they did is written to a file."""

import logging
import os
import signal
import threading
import time
from pathlib import Path

import headway

app = headway.App(os.environ.get("TEST_URL", "memory:"))
PATIENCE_S = 60.0


def note(text: str) -> None:
    """One line, whole, whoever else writes."""
    path = os.environ["TEST_NOTES"]
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{text}\n".encode())
    os.close(file)


@app.job(queue="short")
def short(number: int) -> None:
    note(str(number))


@app.job(queue="talk", retry=headway.GiveUp())
def talk(text: str) -> None:
    logging.getLogger("shop").info("said %s", text, extra={"length": len(text)})
    if text == "bad":
        raise ValueError("as it was told")


@app.job(queue="hang")
def hang() -> None:
    note(f"started {os.getpid()} {headway.current_job().attempt}")
    threading.Event().wait()


@app.job(queue="gated")
def gated(gate: str) -> None:
    """Ends when the file is there."""
    note("started")
    until_s = time.monotonic() + PATIENCE_S
    while not Path(gate).exists() and time.monotonic() < until_s:
        threading.Event().wait(0.02)
    note("ended")


@app.job(queue="apart", isolate="process", retry=headway.GiveUp())
def die(how: str) -> None:
    if how == "exit":
        os._exit(7)
    if how == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ValueError("raised apart")
    note(f"apart {os.getpid()} {headway.current_job().kind}")


@app.job(queue="apart", isolate="process", result="1h")
def measured(number: int) -> dict[str, int]:
    return {"number": number if number >= 0 else object()}  # type: ignore[dict-item]


@app.job(queue="apart", isolate="process", timeout="3s", retry=headway.GiveUp())
def stuck() -> None:
    note(f"stuck {os.getpid()}")
    threading.Event().wait()
