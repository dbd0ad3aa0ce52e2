"""The task that is measured: `main` enqueues as many jobs as it is told, or works."""

import asyncio
import os
import sys

from procrastinate import App, PsycopgConnector

from benchmarks.peers.drain import First
from benchmarks.peers.peer import PAYLOAD

ENQUEUED_AT_ONCE = 1_000
concurrency = int(os.environ.get("BENCH_CONCURRENCY", "20"))
app = App(
    connector=PsycopgConnector(
        conninfo=os.environ["BENCH_DATABASE"], max_size=concurrency + 2
    )
)
first = First()


async def do_nothing(payload: str) -> None:
    first()


noop = app.task(name="noop", queue="bench")(do_nothing)


async def produce(jobs: int) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for begin in range(0, jobs, ENQUEUED_AT_ONCE):
            size = min(ENQUEUED_AT_ONCE, jobs - begin)
            calls = [{"payload": PAYLOAD}] * size
            await noop.batch_defer_async(*calls)


async def work() -> None:
    delete = os.environ["BENCH_DELETE"]
    async with app.open_async():
        await app.run_worker_async(
            queues=["bench"], concurrency=concurrency, delete_jobs=delete
        )


def main() -> None:
    asyncio.run(produce(int(sys.argv[1])) if len(sys.argv) > 1 else work())
