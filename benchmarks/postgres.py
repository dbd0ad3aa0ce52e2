"""The server with its jobs in PostgreSQL, and peers on the same PostgreSQL, in one run.

Each has a fresh database of the same programs and settings, flushed at every commit.
docs/benchmarks.md says how, with which settings, and what is fair.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import nan
from pathlib import Path
from typing import NamedTuple, TypeVar

import headway
from benchmarks import owner
from benchmarks.client import program
from benchmarks.client.program import Client
from benchmarks.figure import Figure
from benchmarks.http import ADDRESS, READY_S, SERVE
from benchmarks.peers import pgqueuer, procrastinate
from benchmarks.peers.drain import drain
from benchmarks.peers.peer import PAYLOAD
from benchmarks.processes import NotHere, cpu_s, started, wait_for_line
from benchmarks.worker import HEADWAY as WORKER
from benchmarks.worker import Look

OWNER = "PostgreSQL, owner in process"
CYCLES = "PostgreSQL, full cycles"
DRAIN = f"PostgreSQL, {WORKER}"
PGQUEUER_FLOOR, PROCRASTINATE_FLOOR = 2, 10
CONCURRENCY = 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long each part is measured, and with how much; the best round counts."""

    rounds: int = 2
    owner_jobs: int = 30_000
    cycles_s: float = 10
    warmup_s: float = 1
    drained: int = 20_000
    pgqueuer_jobs: int = 20_000
    procrastinate_jobs: int = 2_000


FULL = Sizes(rounds=3, cycles_s=30, drained=100_000, pgqueuer_jobs=50_000)


class Cycles(NamedTuple):
    """One run of full cycles."""

    jobs_per_s: float
    server_us: float
    database_us: float
    errors: int


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    cycles: list[Cycles] = []
    drains: list[float] = []
    owners: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder:
        # As root, the server runs as a user of its own, which must get in.
        place = Path(folder)
        place.chmod(0o755)
        client = program.build(place)
        # Before and after the peers, so that no hour of the machine favours one.
        owners.append(_owned(place, sizes.owner_jobs))
        cycles.append(_cycles(place, client, sizes))
        drains.append(_drained(place, sizes.drained))
        other = _tried(lambda: pgqueuer.run_peer(sizes.pgqueuer_jobs))
        another = _tried(lambda: procrastinate.run_peer(sizes.procrastinate_jobs))
        for _ in range(1, sizes.rounds):
            owners.append(_owned(place, sizes.owner_jobs))
            cycles.append(_cycles(place, client, sizes))
            drains.append(_drained(place, sizes.drained))
    best = max(cycles, key=lambda one: one.jobs_per_s)
    errors = sum(one.errors for one in cycles)
    own, own_us = max(owners)
    both = "batches of 100, the owner's CPU and the database's"
    return [
        Figure(OWNER, own, "jobs/s", note=f"{sizes.owner_jobs:,} jobs, {both}"),
        Figure(f"{OWNER}: CPU", own_us, "us/job"),
        *_own_figures(best, max(drains), sizes),
        # A library beside a library: neither has HTTP in between.
        *_peer_figures(OWNER, own, "PGQueuer", PGQUEUER_FLOOR, other),
        _ratio(CYCLES, best.jobs_per_s, "PGQueuer", None, other),
        # Ours enqueues as well, and goes over HTTP; the peer's jobs wait already.
        *_peer_figures(
            CYCLES, best.jobs_per_s, "Procrastinate", PROCRASTINATE_FLOOR, another
        ),
        _ratio(DRAIN, max(drains), "Procrastinate", None, another),
        Figure("PostgreSQL, errors", errors, "answers", ceiling=0),
    ]


def _own_figures(best: Cycles, drained: float, sizes: Sizes) -> list[Figure]:
    how = (
        f"over HTTP, 8 connections, batches of 100, 200-byte payloads, best of "
        f"{sizes.rounds} x {sizes.cycles_s:g} s"
    )
    many = f"{sizes.drained:,} no-op jobs, concurrency {CONCURRENCY}"
    return [
        Figure(CYCLES, best.jobs_per_s, "jobs/s", note=how),
        Figure(f"{CYCLES}: server CPU", best.server_us, "us/job"),
        Figure(f"{CYCLES}: database CPU", best.database_us, "us/job"),
        Figure(DRAIN, drained, "jobs/s", note=f"{many}, best of {sizes.rounds}"),
    ]


def _peer_figures(
    own_name: str, own: float, name: str, floor: float, found: "Rated | NotHere"
) -> Iterator[Figure]:
    rate, note = (
        (nan, f"not measured here: {found}")
        if isinstance(found, NotHere)
        else (found.jobs_per_s, found.notes)
    )
    yield Figure(f"PostgreSQL, {name}", rate, "jobs/s", note=note)
    yield _ratio(own_name, own, name, floor, found)


def _ratio(
    own_name: str, own: float, name: str, floor: float | None, found: "Rated | NotHere"
) -> Figure:
    """A peer that was not measured breaks no bound."""
    label = f"{own_name} / {name}"
    if isinstance(found, NotHere):
        return Figure(label, nan, "x", note=f"not measured here: {found}")
    return Figure(label, own / found.jobs_per_s, "x", floor)


class Rated(NamedTuple):
    """What a peer did, and how it was set up."""

    jobs_per_s: float
    notes: str


def _tried(measure: Callable[[], T]) -> "Rated | NotHere":
    """A peer that can't be had, or breaks, does not end the run; its figure says so."""
    try:
        found = measure()
    except NotHere as error:
        return error
    except Exception as error:
        return NotHere(f"{type(error).__name__}: {error}")
    return Rated(found.jobs_per_s, found.notes)  # type: ignore[attr-defined]


class Served(NamedTuple):
    address: str
    port: int
    pid: int
    database: int
    """The process that all others of the database are below."""


@contextmanager
def _served(folder: Path) -> Iterator[Served]:
    """A server over a fresh database."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        place = Path(made)
        place.chmod(0o755)
        with pgqueuer.database(place, "data") as (address, database):
            environment = {"HEADWAY_STORE": address}
            migrate = [sys.executable, "-m", "headway.cli.main", "migrate"]
            with started(migrate, place / "migrate", environment) as process:
                wait_for_line(process, place / "migrate", "went from", READY_S)
            log = place / "log"
            command = [*SERVE, str(place / "server")]
            with started(command, log, environment) as process:
                line = wait_for_line(process, log, "http://", READY_S)
                found = re.search(ADDRESS, line)
                if found is None:
                    raise NotHere(f"the server says no address: {line.strip()}")
                yield Served(found[0], int(found[1]), process.pid, database)


def _owned(folder: Path, jobs: int) -> tuple[float, float]:
    """Jobs a second of an owner in this process, and microseconds of CPU for a job."""
    from headway.store.postgres.migrations import migrate
    from headway.store.postgres.store import PostgresStore

    with tempfile.TemporaryDirectory(dir=folder) as made:
        Path(made).chmod(0o755)
        with pgqueuer.database(Path(made), "data") as (address, database):
            migrate(address)
            bench = owner.Bench(PostgresStore(address))
            batches = owner.specs(1, has_labels=False)
            work = list(islice(batches, jobs // owner.BATCH))
            used_s = time.process_time() + cpu_s(database)
            began_s = time.perf_counter()
            owner.together(bench, work)
            took_s = time.perf_counter() - began_s
            used_s = time.process_time() + cpu_s(database) - used_s
            bench.owner.close()
    return jobs / took_s, used_s / jobs * 1e6


def _cycles(folder: Path, client: Client, sizes: Sizes) -> Cycles:
    with _served(folder) as server:
        client.run("cycle", server.port, sizes.warmup_s, queue="warmup")
        before = cpu_s(server.pid), cpu_s(server.database)
        report = client.run("cycle", server.port, sizes.cycles_s)
        after = cpu_s(server.pid), cpu_s(server.database)
    jobs = max(1, report["acked"])
    used = [(now - then) / jobs * 1e6 for then, now in zip(before, after, strict=True)]
    return Cycles(report["jobs_per_s"], used[0], used[1], report["errors"])


def _drained(folder: Path, jobs: int) -> float:
    with (
        _served(folder) as server,
        tempfile.TemporaryDirectory(dir=folder) as place,
        headway.App(server.address) as app,
    ):
        job = app.job(queue="awaited", kind="awaited")(_do_nothing)
        job.enqueue_many((PAYLOAD,) for _ in range(jobs))
        command = [
            *(sys.executable, "-m", "headway.cli.main", "worker"),
            *("benchmarks.worker_app:app", "--queues", "awaited"),
            *("--concurrency", str(CONCURRENCY)),
        ]
        environment = {**os.environ, "BENCH_URL": server.address}
        is_empty = Look(server.address, "awaited").is_empty
        return drain(command, Path(place) / "worker", environment, jobs, is_empty)


def _do_nothing(payload: str) -> None:
    """What is called is in the worker's app, not here."""
