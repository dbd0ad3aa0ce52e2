"""The HTTP server under load, and its peers in the same run.

A compiled client asks a real server on a real disk; the server's CPU is counted apart
from the client's. docs/benchmarks.md says how, with which settings, and what is fair.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import NamedTuple, TypeVar

from benchmarks import disk, owner
from benchmarks.client import program
from benchmarks.client.program import Client, Report
from benchmarks.figure import Figure
from benchmarks.http_chart import CELERY, CELERY_EVERYSEC, HEADWAY, PGQUEUER
from benchmarks.peers import celery, pgqueuer
from benchmarks.peers.peer import PeerResult
from benchmarks.processes import NotHere, cpu_s, started, wait_for_line

SERVE = (sys.executable, "-m", "headway.cli.main", "serve", "--port", "0", "--data")
"""The folder of the data follows; the server says its address in one line."""
APART = "--apart"
"""The other set-up of the server: its owner in a process of its own."""
READY_S = 30.0
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")

CONNECTIONS = 24
"""Callers that take turns to enqueue, lease and ack a batch: as many as fill a commit."""
CYCLES_FLOOR, CYCLES_GOAL = 12_000, 20_000
SINGLES_FLOOR = 4_000
PGQUEUER_FLOOR, CELERY_FLOOR = 4, 20
FLUSHES_MAX, BEYOND_FLUSHES_MS = 4, 5
OTHERS_MAX = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long each part is measured, and with how much."""

    cycles_s: float = 10
    rounds: int = 2
    singles_s: float = 5
    latency_s: float = 10
    others_s: float = 10
    polls: int = 5_000
    drop_every_s: float = 5
    settling_s: float = 2
    warmup_s: float = 1
    flushes: int = 1_000
    bare_jobs: int = 15_000
    pgqueuer_jobs: int = 20_000
    celery_jobs: int = 3_000


FULL = Sizes(
    cycles_s=30,
    singles_s=20,
    latency_s=30,
    others_s=20,
    pgqueuer_jobs=50_000,
    celery_jobs=10_000,
)


class Server(NamedTuple):
    port: int
    pid: int


class Cycles(NamedTuple):
    """One run of full cycles."""

    jobs_per_s: float
    server_us: float
    client_us: float
    report: Report
    set_up: str


NOTHING = Cycles(nan, nan, nan, {}, "")
T = TypeVar("T")


def run(serve: Sequence[str] = SERVE, sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    with tempfile.TemporaryDirectory(prefix="bench-http-") as folder:
        bench = Bench(serve, sizes, program.build(Path(folder)), Path(folder))
        return bench.figures()


class Bench:
    """One run: the server, its peers and the disk, one after the other."""

    def __init__(
        self, serve: Sequence[str], sizes: Sizes, client: Client, folder: Path
    ) -> None:
        self.serve = serve
        self.sizes = sizes
        self.client = client
        self.folder = folder
        self.reports: list[Report] = []

    def figures(self) -> list[Figure]:
        flushes_ms = disk.flush_ms(self.folder, self.sizes.flushes)
        flush_ms = disk.p99(flushes_ms)
        bare = owner.bare(self.sizes.bare_jobs, has_one_caller=False)
        # Before and after the peers, so that no hour of the machine favours one.
        cycles = self._measured(self._cycles)
        peers = self._peers()
        for _ in range(1, self.sizes.rounds):
            cycles += self._measured(self._cycles)
        best = max(cycles, key=lambda found: found.jobs_per_s, default=NOTHING)
        return [
            *self._cycle_figures(best, cycles, bare),
            *_peer_figures(best.jobs_per_s, peers),
            *self._measured(self._singles),
            *self._measured(lambda: self._starts(flush_ms)),
            *self._measured(self._others),
            Figure("disk, flush p99", flush_ms, "ms", note=_flush_note(flushes_ms)),
            self._errors(),
        ]

    def _measured(self, measure: Callable[[], list[T]]) -> list[T]:
        """Nothing when the server gives up; that counts as an error, and fails."""
        try:
            return measure()
        except NotHere as error:
            self.reports.append({"errors": 1, "first_error": str(error)})
            return []

    @contextmanager
    def _server(self, *options: str) -> Iterator[Server]:
        """A server with an empty folder of data, which is gone afterwards."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            log = Path(folder) / "log"
            command = [*self.serve, str(Path(folder) / "data"), *options]
            with started(command, log) as process:
                line = wait_for_line(process, log, "http://", READY_S)
                address = ADDRESS.search(line)
                if address is None:
                    raise NotHere(f"the server says no address: {line.strip()}")
                yield Server(int(address[1]), process.pid)

    def _ask(
        self, mode: str, server: Server, seconds: float, **options: object
    ) -> Report:
        report = self.client.run(mode, server.port, seconds, **options)
        self.reports.append(report)
        return report

    def _cycles(self) -> list[Cycles]:
        """Both set-ups, as the peers have several."""
        return [self._cycle("together"), self._cycle("apart", APART)]

    def _cycle(self, set_up: str, *options: str) -> Cycles:
        with self._server(*options) as server:
            self._ask("cycle", server, self.sizes.warmup_s, queue="warmup")
            before_s = cpu_s(server.pid)
            report = self._ask(
                "cycle", server, self.sizes.cycles_s, connections=CONNECTIONS
            )
            server_s = cpu_s(server.pid) - before_s
        jobs = max(1, report["acked"])
        client_s = report["client_cpu_s"]
        used_us = (server_s / jobs * 1e6, client_s / jobs * 1e6)
        return Cycles(report["jobs_per_s"], *used_us, report, set_up)

    def _cycle_figures(
        self, best: Cycles, all_: Sequence[Cycles], bare: float
    ) -> list[Figure]:
        sizes = self.sizes
        how = (
            f"{CONNECTIONS} connections, batches of 100, 200-byte payloads, best of "
            f"{sizes.rounds} x {sizes.cycles_s:g} s of each; goal {CYCLES_GOAL:,}"
        )
        rates = ", ".join(f"{one.set_up} {one.jobs_per_s:,.0f}" for one in all_)
        notes = [how, f"all runs: {rates}", _percentiles(best.report), self.client.note]
        same = f"{bare:,.0f} jobs/s: the same rows, three steps to a commit, no HTTP"
        return [
            Figure(
                HEADWAY, best.jobs_per_s, "jobs/s", CYCLES_FLOOR, note=_joined(notes)
            ),
            Figure(f"{HEADWAY}: server CPU", best.server_us, "us/job"),
            Figure(f"{HEADWAY}: client CPU", best.client_us, "us/job"),
            Figure("HTTP / bare SQLite", best.jobs_per_s / bare, "x", note=same),
        ]

    def _singles(self) -> list[Figure]:
        with self._server() as server:
            before_s = cpu_s(server.pid)
            report = self._ask(
                "single", server, self.sizes.singles_s, warmup=self.sizes.warmup_s
            )
            used_s = cpu_s(server.pid) - before_s
        cores = used_s / (self.sizes.singles_s + self.sizes.warmup_s)
        note = _joined(
            [
                f"64 connections, {report['jobs_per_s']:,.0f} jobs/s",
                _percentiles(report),
                f"{cores:.2f} cores of the server's",
            ]
        )
        rate = report["requests_per_s"]
        return [
            Figure("HTTP, single jobs", rate, "requests/s", SINGLES_FLOOR, note=note)
        ]

    def _starts(self, flush_ms: float) -> list[Figure]:
        with self._server() as server:
            report = self._ask(
                "latency",
                server,
                self.sizes.latency_s,
                warmup=self.sizes.warmup_s,
                wait="10s",
            )
        starts, delays = report["start"], report["send_delay"]
        note = (
            f"1,000 jobs/s, 64 polls; p50 {starts.get('p50_ms', nan):.2f} ms; bound: "
            f"{FLUSHES_MAX} flushes' p99 + {BEYOND_FLUSHES_MS} ms; jobs left the client "
            f"{delays.get('p99_ms', nan):.2f} ms late at p99"
        )
        bound_ms = FLUSHES_MAX * flush_ms + BEYOND_FLUSHES_MS
        value = starts.get("p99_ms", nan)
        return [
            Figure("HTTP, start latency p99", value, "ms", ceiling=bound_ms, note=note)
        ]

    def _others(self) -> list[Figure]:
        """Clients that do no harm, alone and beside those that do."""
        sizes = self.sizes
        with self._server() as server:
            options = {"connections": 8, "warmup": sizes.warmup_s}
            alone = self._ask(
                "single", server, sizes.others_s, queue="others", **options
            )
            with self._trouble(server) as told:
                time.sleep(sizes.settling_s)
                beside = self._ask(
                    "single", server, sizes.others_s, queue="others", **options
                )
        before, after = (report["all"].get("p99_ms", nan) for report in (alone, beside))
        name = "HTTP, p99 of others beside harmful clients"
        harm = (
            f"{sizes.polls:,} polls that all reconnect every {sizes.drop_every_s:g} s, "
            "a reader that never reads, a body that never ends; 8 others; "
            f"{told[0]['connects']:,} connects of polls, {told[0]['errors']:,} lost; "
            f"{alone['requests_per_s']:,.0f} and {beside['requests_per_s']:,.0f} requests/s"
        )
        return [
            Figure(name, after, "ms", note=f"{before:.2f} ms alone"),
            Figure(
                f"{name}: ratio", after / before, "x", ceiling=OTHERS_MAX, note=harm
            ),
        ]

    @contextmanager
    def _trouble(self, server: Server) -> Iterator[list[Report]]:
        """Harmful clients; afterwards the list holds what they report."""
        sizes = self.sizes
        measuring_s = sizes.settling_s + sizes.warmup_s + sizes.others_s
        seconds = measuring_s + sizes.drop_every_s  # they outlast what is measured
        running = [
            self.client.start(
                "polls",
                server.port,
                seconds,
                queue="empty",
                connections=sizes.polls,
                every=sizes.drop_every_s,
                wait="30s",
            ),
            self.client.start("slow", server.port, seconds, queue="slow"),
        ]
        told: list[Report] = []
        try:
            yield told
            told += [program.finished(process, seconds) for process in running]
        finally:
            for process in running:
                process.kill()
                process.communicate()

    def _peers(self) -> dict[str, PeerResult | NotHere]:
        measures: dict[str, Callable[[], PeerResult]] = {
            PGQUEUER: lambda: pgqueuer.run_peer(self.sizes.pgqueuer_jobs),
            CELERY: lambda: celery.run_peer(self.sizes.celery_jobs),
            CELERY_EVERYSEC: lambda: celery.run_peer(
                self.sizes.celery_jobs, "everysec"
            ),
        }
        return {name: _tried(measure) for name, measure in measures.items()}

    def _errors(self) -> Figure:
        bad = [report for report in self.reports if report["errors"]]
        count = sum(report["errors"] for report in bad)
        note = f"the first: {bad[0]['first_error']}" if bad else ""
        return Figure("HTTP, errors", count, "answers", ceiling=0, note=note)


def _tried(measure: Callable[[], PeerResult]) -> PeerResult | NotHere:
    """A peer that can't be had, or breaks, does not end the run; its figure says so."""
    try:
        return measure()
    except NotHere as error:
        return error
    except Exception as error:
        return NotHere(f"{type(error).__name__}: {error}")


def _peer_figures(
    own: float, peers: dict[str, PeerResult | NotHere]
) -> Iterator[Figure]:
    floors = {PGQUEUER: PGQUEUER_FLOOR, CELERY: CELERY_FLOOR, CELERY_EVERYSEC: None}
    for name, found in peers.items():
        if isinstance(found, NotHere):
            note = f"not measured here: {found}"
            yield Figure(name, nan, "jobs/s", note=note)
            yield Figure(f"HTTP / {name}", nan, "x", note=note)
            continue
        shares = (
            f"client {found.client_cpu_s_per_job * 1e6:.0f}, "
            f"server {found.server_cpu_s_per_job * 1e6:.0f}"
        )
        ratio = own / found.jobs_per_s
        yield Figure(name, found.jobs_per_s, "jobs/s", note=found.notes)
        yield Figure(f"{name}: CPU", found.cpu_s_per_job * 1e6, "us/job", note=shares)
        yield Figure(f"HTTP / {name}", ratio, "x", floors[name])


def _percentiles(report: Report) -> str:
    found = [
        f"{kind} {report[kind]['p50_ms']:.1f}/{report[kind]['p99_ms']:.1f}"
        for kind in ("enqueue", "lease", "ack")
        if report.get(kind, {}).get("count")
    ]
    return f"p50/p99 in ms: {', '.join(found)}" if found else ""


def _flush_note(ranked: list[float]) -> str:
    middle = ranked[len(ranked) // 2]
    return f"p50 {middle:.2f} ms, {len(ranked):,} appends of {disk.APPEND_BYTES} bytes"


def _joined(notes: Sequence[str]) -> str:
    return "; ".join(filter(None, notes))
