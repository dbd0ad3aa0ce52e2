"""A real overload: a server, worker processes of known size, and jobs at drawn times."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.server.process import PATIENCE_S, Served, command

APP = """
import asyncio
import os

import headway

app = headway.App(os.environ["HEADWAY_URL"])


@app.job(queue="payment")
async def charge(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


@app.job(queue="mail")
async def send(ms: int) -> None:
    await asyncio.sleep(ms / 1000)


@app.job(queue="report")
async def render(ms: int) -> None:
    await asyncio.sleep(ms / 1000)
"""
ROOT = Path(__file__).resolve().parents[3]
WAVE_S = 0.05
"""Jobs are enqueued in waves of so long."""


class Stream(NamedTuple):
    queue: str
    kind: str
    slo: str
    per_second: float
    mean_ms: int
    surge: float
    """So much more comes in the middle third."""


STREAMS = (
    Stream("payment", "charge", "2s", 12.0, 150, 1.0),
    Stream("mail", "send", "4s", 20.0, 250, 2.5),
    Stream("report", "render", "8s", 5.0, 600, 1.5),
)


class Coming(NamedTuple):
    at_s: float
    queue: str
    body: dict[str, Any]


def drawn(seconds: float, seed: int = 6) -> list[Coming]:
    """The same jobs at the same times, for every run of a seed."""
    random = Random(seed)
    found = []
    for stream in STREAMS:
        at_s = 0.0
        while True:
            is_surge = seconds / 3 <= at_s < 2 * seconds / 3
            at_s += random.expovariate(
                stream.per_second * (stream.surge if is_surge else 1.0)
            )
            if at_s >= seconds:
                break
            body = {
                "kind": stream.kind,
                "slo": stream.slo,
                "tenant": f"shop-{min(int(random.expovariate(0.7)), 5)}",
                "payload": {
                    "ms": max(10, int(random.gauss(1.0, 0.3) * stream.mean_ms))
                },
            }
            found.append(Coming(at_s, stream.queue, body))
    return sorted(found, key=lambda one: one.at_s)


class Crew:
    """One worker process with so many slots."""

    def __init__(self, folder: Path, served: Served, slots: int) -> None:
        (folder / "overload_jobs.py").write_text(APP)
        self._process = subprocess.Popen(
            command("worker", "overload_jobs:app", "--concurrency", str(slots)),
            cwd=folder,
            env={
                **os.environ,
                "HEADWAY_URL": served.address,
                "PYTHONPATH": f"{ROOT / 'src'}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def leave(self) -> None:
        """Finishes what it has, and goes."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=PATIENCE_S)


class Shift(NamedTuple):
    """So many slots, from when to when; both as shares of the whole time."""

    slots: int
    begin: float = 0.0
    end: float | None = None


def play(served: Served, folder: Path, seconds: float, shifts: Sequence[Shift]) -> None:
    """Jobs come and workers with them; returns when everything is done."""
    for stream in STREAMS:
        rules = {"slo": stream.slo}
        answer = served.ask("PUT", f"/v1/queues/{stream.queue}", rules)
        assert answer.status in {200, 201}, answer
    crews: list[Crew] = []
    starts = sorted(shifts, key=lambda shift: shift.begin)
    first = [Crew(folder, served, one.slots) for one in starts if not one.begin]
    crews += first
    leaving = [
        (shift.end, crew)
        for shift, crew in zip(starts, first, strict=False)
        if shift.end is not None
    ]
    later = [shift for shift in starts if shift.begin]
    clock = threading.Event()
    coming = drawn(seconds)
    began_s = time.monotonic()
    place = 0
    try:
        while place < len(coming):
            now_s = time.monotonic() - began_s
            while later and later[0].begin * seconds <= now_s:
                shift = later.pop(0)
                crew = Crew(folder, served, shift.slots)
                crews.append(crew)
                if shift.end is not None:
                    leaving.append((shift.end, crew))
            for gone in [one for one in leaving if one[0] * seconds <= now_s]:
                leaving.remove(gone)
                threading.Thread(target=gone[1].leave).start()
            wave: dict[str, list[dict[str, Any]]] = {}
            while place < len(coming) and coming[place].at_s <= now_s:
                wave.setdefault(coming[place].queue, []).append(coming[place].body)
                place += 1
            for queue, bodies in wave.items():
                enqueued = served.ask("POST", f"/v1/queues/{queue}/jobs", bodies)
                assert enqueued.status == 201, enqueued
            clock.wait(WAVE_S)
        _until_idle(served, clock)
    finally:
        for crew in crews:
            crew.leave()


def _until_idle(served: Served, clock: threading.Event) -> None:
    deadline_s = time.monotonic() + 2 * PATIENCE_S
    while True:
        states = [
            served.ask("GET", f"/v1/queues/{stream.queue}").json["counts"]
            for stream in STREAMS
        ]
        if not any(one[name] for one in states for name in ("ready", "leased")):
            return
        assert time.monotonic() < deadline_s, states
        clock.wait(WAVE_S)
