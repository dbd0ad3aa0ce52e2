"""Durable full cycles of the owner, without HTTP: enqueue, lease and ack, all flushed.

Every step carries what several callers have asked: a batch is enqueued, one is leased and
one is acked, and all three share a commit. `one caller` waits for each answer in turn.
The peer is bare SQLite that writes the same rows in the same commits.
"""

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from benchmarks.figure import Figure
from headway.core.commands import Ack, Configure, Enqueue, Lease
from headway.core.config import Concurrency, Limit, QueueConfig, Rate
from headway.core.spec import JobSpec
from headway.runtime import arenas
from headway.runtime.clock import Clock
from headway.runtime.collector import settle
from headway.runtime.owner import Ask, Owner
from headway.runtime.views import Handed
from headway.store.port import Store
from headway.store.sqlite.store import SqliteStore

BATCH = 100
PAYLOAD = b"x" * 200
REGIONS = ("east", "north", "west")
LIMITS: tuple[Limit, ...] = (
    Concurrency("slots", 1_000_000),
    Rate("pace", 10_000_000, 1_000),
    Concurrency("region", 1_000_000, per="region"),
)


def run() -> list[Figure]:
    arenas.use()  # as a server does
    is_full = os.environ.get("BENCH_FULL") == "1"
    backlog = 1_000_000 if is_full else 200_000
    plain, plain_cpu = _cycles(30_000, tenants=1)
    alone, _ = _cycles(15_000, tenants=1, has_one_caller=True)
    peer = bare(30_000, has_one_caller=False)
    peer_alone = bare(15_000, has_one_caller=True)
    loaded, loaded_cpu = _cycles(20_000, tenants=1_000, backlog=backlog, limits=LIMITS)
    many = f"1,000 tenants, {backlog:,} jobs in the backlog, three limits"
    return [
        Figure("owner, plain", plain, "jobs/s", 30_000, note="batches of 100"),
        Figure("owner, plain, CPU", plain_cpu, "us/job"),
        Figure("bare SQLite, the same rows", peer, "jobs/s"),
        Figure("owner / bare SQLite", plain / peer, "x"),
        Figure("owner, one caller", alone, "jobs/s", note="three flushes a batch"),
        Figure("bare SQLite, one caller, the same rows", peer_alone, "jobs/s"),
        Figure("owner / bare SQLite, one caller", alone / peer_alone, "x", 0.3),
        Figure("owner, loaded", loaded, "jobs/s", 20_000, note=many),
        Figure("owner, loaded, CPU", loaded_cpu, "us/job", note=many),
    ]


class Bench:
    """An owner of a store."""

    def __init__(self, store: Store, limits: tuple[Limit, ...] = ()) -> None:
        self.owner = Owner(store)
        self.clock: Clock = self.owner.take_over()
        self.ask(Configure(QueueConfig(name="q", limits=limits, lease_ms=3_600_000)))

    def ask(self, *asks: Ask) -> list[int]:
        """Answers the tokens of the jobs that were handed out."""
        answers = self.owner.step(asks, self.clock.now_ms())
        handed = [told for _, told in answers if isinstance(told, Handed)]
        return [job.token for told in handed for job in told.jobs]


def specs(tenants: int, *, has_labels: bool) -> Iterator[list[JobSpec]]:
    """Batches of jobs, tenant after tenant."""
    for number in itertools.count():
        yield [
            JobSpec(
                kind="mail",
                payload=PAYLOAD,
                tenant=f"tenant-{(number * BATCH + place) % tenants}"
                if tenants > 1
                else "",
                labels={"region": REGIONS[place % 3]} if has_labels else None,
            )
            for place in range(BATCH)
        ]


def _cycles(
    jobs: int,
    *,
    tenants: int,
    backlog: int = 0,
    limits: tuple[Limit, ...] = (),
    has_one_caller: bool = False,
) -> tuple[float, float]:
    """Jobs a second, and microseconds of CPU for a job."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(SqliteStore(Path(folder) / "bench.db"), limits)
        batches = specs(tenants, has_labels=bool(limits))
        for _ in range(backlog // BATCH // 10):
            more = [spec for _ in range(10) for spec in next(batches)]
            bench.ask(Enqueue("q", more))
        work = list(itertools.islice(batches, jobs // BATCH))
        settle()  # as a server does
        cycle = _one_by_one if has_one_caller else together
        began_s, cpu_s = time.perf_counter(), time.process_time()
        cycle(bench, work)
        took_s, used_s = time.perf_counter() - began_s, time.process_time() - cpu_s
        bench.owner.close()
    return jobs / took_s, used_s / jobs * 1e6


def together(bench: Bench, work: list[list[JobSpec]]) -> None:
    tokens: list[int] = []
    for batch in work:
        asks: list[Ask] = [Enqueue("q", batch), Lease(max=BATCH)]
        if tokens:
            asks.append(Ack(tokens))
        tokens = bench.ask(*asks)
        while len(tokens) < BATCH:
            tokens += bench.ask(Lease(max=BATCH - len(tokens)))


def _one_by_one(bench: Bench, work: list[list[JobSpec]]) -> None:
    for batch in work:
        bench.ask(Enqueue("q", batch))
        bench.ask(Ack(bench.ask(Lease(max=BATCH))))


def bare(jobs: int, *, has_one_caller: bool) -> float:
    """The same rows in the same commits, by hand."""
    with tempfile.TemporaryDirectory() as folder:
        connection = apsw.Connection(str(Path(folder) / "bare.db"))
        for pragma in ("journal_mode=wal", "synchronous=full", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(
            "CREATE TABLE jobs(seq INTEGER PRIMARY KEY, lane INT, turn BLOB, first INT,"
            " second INT, change BLOB, body BLOB)"
        )
        connection.execute("CREATE INDEX place ON jobs(lane, turn, first, second)")
        connection.execute("CREATE TABLE held(seq INTEGER PRIMARY KEY, change BLOB)")
        connection.execute("CREATE TABLE history(first INTEGER PRIMARY KEY, blob BLOB)")
        began_s = time.perf_counter()
        commit = _bare_cycle if has_one_caller else _bare_commit
        for number in range(jobs // BATCH):
            commit(connection.execute, connection.executemany, number)
            if number % 50 == 49:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        took_s = time.perf_counter() - began_s
        connection.close()
    return jobs / took_s


def _bare_commit(
    execute: Callable[..., object], executemany: Callable[..., object], number: int
) -> None:
    body, change, history = b"x" * 290, b"y" * 60, b"h" * 150 * BATCH
    first = number * BATCH
    new = range(first, first + BATCH)
    execute("BEGIN IMMEDIATE")
    executemany(
        "INSERT INTO jobs VALUES(?, -1, x'', 100, ?, ?, ?)",
        [(seq, seq, change, body) for seq in new],
    )
    if number:
        executemany("DELETE FROM jobs WHERE seq = ?", [(seq - BATCH,) for seq in new])
    execute("INSERT INTO history VALUES(?, ?)", (first, history))
    execute("COMMIT")


def _bare_cycle(
    execute: Callable[..., object], executemany: Callable[..., object], number: int
) -> None:
    """Enqueued, leased and acked in a commit each."""
    body, change, history = b"x" * 290, b"y" * 60, b"h" * 50 * BATCH
    new = range(number * BATCH, (number + 1) * BATCH)
    seqs = [(seq,) for seq in new]
    put = "INSERT INTO jobs VALUES(?, 1, x'', 100, ?, NULL, ?)"
    commits: tuple[list[tuple[str, list[Any]]], ...] = (
        [(put, [(seq, seq, body) for seq in new])],
        [("INSERT INTO held VALUES(?, ?)", [(seq, change) for seq in new])],
        [(f"DELETE FROM {table} WHERE seq = ?", seqs) for table in ("jobs", "held")],
    )
    for place, statements in enumerate(commits):
        execute("BEGIN IMMEDIATE")
        for statement, rows in statements:
            executemany(statement, rows)
        execute("INSERT INTO history VALUES(?, ?)", (number * BATCH + place, history))
        execute("COMMIT")
