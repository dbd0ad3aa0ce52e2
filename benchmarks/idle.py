"""Leases while somebody leaves a transaction open on the same PostgreSQL.

Nothing that ends or moves can be swept then: every row that ever was stays in the tables
and in their indexes. Jobs flow at an even pace over a backlog that memory does not hold,
and the same flow goes through a second database of the same server, whose rows that
transaction does not keep: what is slow for both is the machine. `python -m
benchmarks.idle --full` takes ten minutes and prints a line for each span of time.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

from benchmarks.figure import Figure
from benchmarks.owner import BATCH, Bench, specs
from benchmarks.peers import pgqueuer
from benchmarks.processes import cpu_s
from headway.core.commands import Ack, Configure, Enqueue, Lease
from headway.core.config import QueueConfig

NAME = "PostgreSQL, a transaction left open"
GROWTH_MAX = 2.0
DEAD = """SELECT n_dead_tup FROM pg_stat_user_tables
    WHERE schemaname = 'headway' AND relname = 'jobs'"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long it is measured, and with how much."""

    spans: int = 4
    span_s: float = 10
    cycles_per_s: float = 10
    """Batches of 100 that are enqueued, leased and acked in a second, in each."""
    backlog: int = 20_000
    """Jobs of one tenant that wait; memory holds about 4,000 of them."""
    tenants: int = 500
    """Of a second queue, which every second batch goes to."""


FULL = Sizes(spans=20, span_s=30)


class Seen(NamedTuple):
    """What was seen of one database in one span of time."""

    leases: int
    p50_ms: float
    p99_ms: float
    database_us: float
    """Of the CPU of the owner's connection, for a job."""
    rows_dead: int


class Span(NamedTuple):
    at_s: float
    """Since the transaction was begun; below zero before it."""
    beside: Seen
    control: Seen


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    spans = [span for span in watch(sizes) if span.at_s > 0]
    last = spans[-1]
    jobs = sizes.cycles_per_s * BATCH
    dead = f"{last.beside.rows_dead:,} dead rows at the end"
    note = f"{last.at_s:.0f} s at {jobs:,.0f} jobs/s, {dead}"
    times = last.beside.p50_ms / last.control.p50_ms
    work = last.beside.database_us / last.control.database_us
    return [
        Figure(f"{NAME}: lease, median", last.beside.p50_ms, "ms", note=note),
        Figure(f"{NAME}: lease, p99", last.beside.p99_ms, "ms"),
        Figure(f"{NAME}: lease / without", times, "x", ceiling=GROWTH_MAX),
        Figure(f"{NAME}: database CPU / without", work, "x", ceiling=GROWTH_MAX),
    ]


def watch(sizes: Sizes) -> Iterator[Span]:
    """A span without the transaction, and then those beside it."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-pg-"))
        # As root, the server runs as a user of its own, which must get in.
        Path(folder).chmod(0o755)
        server, _ = stack.enter_context(pgqueuer.database(Path(folder), "data"))
        beside = stack.enter_context(Flow(_made(server, "beside"), sizes))
        control = stack.enter_context(Flow(_made(server, "control"), sizes))
        # The first is for getting warm.
        for at_s in (-2 * sizes.span_s, -sizes.span_s):
            yield _span(beside, control, sizes, at_s)
        stack.enter_context(_left_open(beside.address))
        began_s = time.perf_counter()
        for _ in range(sizes.spans):
            span = _span(beside, control, sizes, 0)
            yield span._replace(at_s=time.perf_counter() - began_s)


class Flow:
    """An owner in a database of its own, through which jobs flow."""

    def __init__(self, address: str, sizes: Sizes) -> None:
        from headway.store.postgres.store import PostgresStore

        self.address = address
        self.leases_s: list[float] = []
        store = PostgresStore(address)
        self._bench = Bench(store)
        self._backend: int = store._connection.info.backend_pid
        self._used_s = 0.0
        self._one = specs(1, has_labels=False)
        self._many = specs(sizes.tenants, has_labels=False)
        self._number = 0
        self._bench.ask(Configure(QueueConfig(name="many", lease_ms=3_600_000)))
        for _ in range(sizes.backlog // BATCH):
            self._bench.ask(Enqueue("q", next(self._one)))

    def __enter__(self) -> "Flow":
        return self

    def __exit__(self, *_: object) -> None:
        self._bench.owner.close()

    def begin(self) -> None:
        self.leases_s.clear()
        self._used_s = cpu_s(self._backend)

    def cycle(self) -> None:
        """Enqueues, leases and acks a batch, and notes how long the lease took."""
        self._number += 1
        self._bench.ask(
            Enqueue("q", next(self._one))
            if self._number % 2
            else Enqueue("many", next(self._many))
        )
        began_s = time.perf_counter()
        tokens = self._bench.ask(Lease(max=BATCH))
        self.leases_s.append(time.perf_counter() - began_s)
        assert len(tokens) == BATCH, len(tokens)
        self._bench.ask(Ack(tokens))

    def seen(self) -> Seen:
        used_s = cpu_s(self._backend) - self._used_s
        count = len(self.leases_s)
        cuts = quantiles(self.leases_s, n=100)
        used_us = used_s * 1e6 / (count * BATCH)
        return Seen(count, cuts[49] * 1e3, cuts[98] * 1e3, used_us, self._dead())

    def _dead(self) -> int:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            row = connection.execute(DEAD).fetchone()
        return int(row[0]) if row else 0


def _span(beside: Flow, control: Flow, sizes: Sizes, at_s: float) -> Span:
    for flow in (beside, control):
        flow.begin()
    began_s = time.perf_counter()
    while (passed_s := time.perf_counter() - began_s) < sizes.span_s:
        # In turn, so that both meet the same hours of the machine.
        beside.cycle()
        control.cycle()
        # What could not be done in time is not made up for: the pace is a bound.
        due_s = len(beside.leases_s) / sizes.cycles_per_s
        time.sleep(max(0.0, due_s - passed_s))
    return Span(at_s, beside.seen(), control.seen())


def _made(server: str, name: str) -> str:
    """The address of a new database of the server, with our tables."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    from headway.store.postgres.migrations import migrate

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    address: str = make_conninfo(server, dbname=name)
    migrate(address)
    return address


def _left_open(address: str) -> Any:
    """A transaction that looks at the past, until its connection is closed."""
    import psycopg

    connection = psycopg.connect(address)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    # It is given a number and a snapshot, and both are held.
    connection.execute("SELECT pg_current_xact_id(), count(*) FROM headway.jobs")
    return connection


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="ten minutes")
    options = parser.parse_args(arguments)
    print(
        "| open for, s | lease, ms: median, p99 | without | CPU, us/job | without",
        end="",
    )
    print(" | dead rows | without |\n|---:|---:|---:|---:|---:|---:|---:|")
    for at_s, one, other in watch(FULL if options.full else Sizes()):
        print(
            f"| {at_s:.0f} | {one.p50_ms:.2f}, {one.p99_ms:.1f} "
            f"| {other.p50_ms:.2f}, {other.p99_ms:.1f} "
            f"| {one.database_us:.1f} | {other.database_us:.1f} "
            f"| {one.rows_dead:,} | {other.rows_dead:,} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
