"""The app that `benchmarks.worker` drains: handlers that do nothing."""

import os

import headway
from benchmarks.peers.drain import First

app = headway.App(os.environ.get("BENCH_URL", "memory:"))
first = First()


@app.job(queue="awaited")
async def awaited(payload: str) -> None:
    first()


@app.job(queue="threads")
def threads(payload: str) -> None:
    first()
