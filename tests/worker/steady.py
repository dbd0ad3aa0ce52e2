"""An app for workers that are killed, and for handlers that outlive their leases."""

import asyncio
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import headway
from tests.worker.handlers import PATIENCE_S, note

app = headway.App(os.environ.get("TEST_URL", "memory:"))


@app.job(queue="kills")
def quick(number: int) -> None:
    note(f"done {number}")


@app.job(queue="kills")
def held(gate: str) -> None:
    """In the middle of it until the file is there."""
    note(f"held {os.getpid()}")
    until_s = time.monotonic() + PATIENCE_S * 10
    while not Path(gate).exists() and time.monotonic() < until_s:
        threading.Event().wait(0.02)


@app.job(queue="long")
def blocking(seconds: float) -> None:
    threading.Event().wait(seconds)


@app.job(queue="long")
async def awaiting(seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


@app.job(queue="long", isolate="process")
def apart(seconds: float) -> None:
    threading.Event().wait(seconds)


@app.job(queue="loop")
async def holding(seconds: float) -> None:
    """The event loop stands still, and the interpreter is busy now and then."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        busy_s = time.monotonic() + 0.2
        while time.monotonic() < busy_s:
            pass
        threading.Event().wait(0.2)


@app.job(queue="ask")
async def ask(number: int, timeout: str = "10m") -> object:
    return headway.wait_for(f"key-{number}", timeout=timeout)


@ask.on_reply
async def answered(reply: int, number: int, timeout: str = "10m") -> None:
    note(f"answered {number} {reply}")


@app.job(queue="ask")
async def other(number: int) -> None:
    note(f"other {number}")


@app.job(queue="free")
async def free(number: int) -> None:
    note(f"free {number}")
