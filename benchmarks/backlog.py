"""A backlog must cost disk: memory, restart and starts with millions of jobs waiting.

A child process fills a file and is killed under load. Another opens it and tells how long
it took until the first job was leased, how fast jobs start, and how much memory it took.
`make bench-backlog` runs it with ten million jobs, of one tenant and of a million.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.figure import Figure
from benchmarks.owner import BATCH, PAYLOAD, Bench
from headway.core.commands import Ack, Enqueue, Lease
from headway.core.spec import JobSpec
from headway.runtime import arenas
from headway.runtime.collector import settle
from headway.runtime.owner import Ask, Owner
from headway.runtime.views import Handed
from headway.store.sqlite.store import SqliteStore

PIECE = 4_000
ROUNDS = 25
"""In each of them every size starts a piece's jobs, one after the other: a machine that
is slow for a while is so for all. What counts is the round in the middle."""

Told = dict[str, float]


def run() -> list[Figure]:
    jobs = 10_000_000 if os.environ.get("BENCH_FULL") == "1" else 500_000
    sizes = ((0, 1), (jobs, 1), (jobs, jobs // 10))
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        places = [_filled(Path(folder), *size) for size in sizes]
        os.sync()  # Gigabytes that are still on their way to the disk hold a flush up.
        empty, *others = _measure(places)
    for told, tenants, slower, memory in (
        (others[0], 1, 1.2, 500),
        (others[1], jobs // 10, 2.0, 800),
    ):
        name = f"{jobs:,} jobs of {tenants:,} tenants"
        note = (
            f"{told['starts']:,.0f} starts/s, {empty['starts']:,.0f} when empty; by the "
            f"best pieces {told['best']:,.0f} and {empty['best']:,.0f}"
        )
        found += [
            Figure(f"{name}: starts, slower", told["slower"], "x", None, slower, note),
            Figure(f"{name}: memory", told["memory"], "MB", None, memory),
            Figure(f"{name}: first lease after a kill", told["ready"], "s", None, 2.0),
        ]
    return found


def _filled(folder: Path, jobs: int, tenants: int) -> Path:
    """A file with so many jobs, whose owner was killed under load."""
    began_s = time.monotonic()
    place = folder / str(tenants if jobs else 0)
    place.mkdir()
    subprocess.run([*_CHILD, "fill", str(place), str(jobs), str(tenants)], check=False)
    took_s = time.monotonic() - began_s
    print(
        f"  {jobs:,} jobs of {tenants:,} tenants in {took_s:.0f} s, "
        f"{place.joinpath('bench.db').stat().st_size / 1e6:,.0f} MB",
        file=sys.stderr,
    )
    return place


def _measure(places: list[Path]) -> list[Told]:
    """Of each place how fast it starts jobs, and how much slower than the first does."""
    servers = [_Server(place) for place in places]
    rounds = [[server.piece() for server in servers] for _ in range(ROUNDS)]
    told: list[Told] = []
    for number, server in enumerate(servers):
        times = [seconds[number] for seconds in rounds]
        ratios = [seconds[number] / seconds[0] for seconds in rounds]
        told.append(
            {
                "ready": server.ready_s,
                "starts": PIECE / median(times),
                "best": PIECE / min(times),
                "slower": median(ratios),
                "memory": server.end(),
            }
        )
    return told


_CHILD = (sys.executable, "-m", "benchmarks.backlog")


class _Server:
    """A process that serves one file, and starts a piece's jobs whenever it is told."""

    def __init__(self, place: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [*_CHILD, "serve", str(place)], stdin=pipe, stdout=pipe, text=True
        )
        self.ready_s = self._heard()

    def piece(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write("piece\n")
        self._process.stdin.flush()
        return self._heard()

    def end(self) -> float:
        """Answers how much memory it took."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        memory = self._heard()
        self._process.wait()
        return memory

    def _heard(self) -> float:
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())


def fill(folder: str, jobs: int, tenants: int) -> None:
    """Fills the file, begins to serve it, and dies."""
    bench = Bench(SqliteStore(Path(folder) / "bench.db"))
    for first in range(0, jobs, 1_000):
        batch = [
            JobSpec(payload=PAYLOAD, tenant=f"t{seq % tenants}" if tenants > 1 else "")
            for seq in range(first, min(first + 1_000, jobs))
        ]
        bench.ask(Enqueue("q", batch))
    for _ in range(20 if jobs else 0):
        bench.ask(Ack(bench.ask(Lease(max=BATCH))))
    os.kill(os.getpid(), signal.SIGKILL)


def serve(folder: str) -> None:
    """Opens the file and starts jobs; the queue is as long after as before."""
    arenas.use()  # as a server does
    began_s = time.perf_counter()
    owner = Owner(SqliteStore(Path(folder) / "bench.db"))
    clock = owner.take_over()

    def lease() -> list[int]:
        tokens: list[int] = []
        for _, told in owner.step([Lease(max=BATCH)], clock.now_ms()):
            if isinstance(told, Handed):
                tokens += [job.token for job in told.jobs]
        return tokens

    tokens = lease()
    print(time.perf_counter() - began_s, flush=True)
    settle()  # as a server does
    batch = [JobSpec(payload=PAYLOAD)] * BATCH
    for _ in sys.stdin:
        began_s = time.perf_counter()
        done = 0
        while done < PIECE:
            asks: list[Ask] = [Enqueue("q", batch)]
            if tokens:
                asks.append(Ack(tokens))
            owner.step(asks, clock.now_ms())
            tokens = lease()
            done += len(tokens)
        print(time.perf_counter() - began_s, flush=True)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        serve(sys.argv[2])
