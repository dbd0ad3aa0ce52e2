"""A cluster of two nodes: one is drained under load, then one is killed.

What a drain costs is how long jobs wait that are sent meanwhile, beside those before.
"""

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

from benchmarks.cluster_load import Load, Stream, p99_ms
from benchmarks.figure import Figure
from benchmarks.http import ADDRESS, READY_S, SERVE
from benchmarks.peers import pgqueuer
from benchmarks.processes import NotHere, end, started, wait_for_line

DRAIN_RATIO = 2.0
LEASE_S = 2.0
NOTICE_S = 5.0
PATIENCE_S = 60.0
SLO_MS = 5_000
SHORT_MS, LONG_MS = 5_000, 15_000
ATTAINED = 0.99
IN_TIME = "headway_starts_in_time_total"
STARTS = re.compile(rf"^({IN_TIME}|headway_starts_late_total){{(.*)}} (\S+)$", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')
WARMUP_S, LOAD_S = 18.0, 25.0
"""Bulk work is late by then."""
WORKERS, RUN_S = 10, 0.2
"""Fifty jobs a second, each short beside what it was promised."""


@dataclass(frozen=True, slots=True)
class Sizes:
    partitions: int = 4
    queues: int = 12
    per_s: float = 100.0
    before_s: float = 10.0
    after_s: float = 1.0


FULL = Sizes(before_s=30.0)


@dataclass(slots=True)
class Cluster:
    """Nodes over one database."""

    folder: Path
    address: str
    """Of the database."""
    partitions: int
    lease_s: float
    database: int
    """The process that all others of the database are below."""
    stack: ExitStack
    urls: dict[str, str] = field(default_factory=dict)
    processes: dict[str, Any] = field(default_factory=dict)

    def start(self, name: str) -> None:
        log = self.folder / f"{name}.log"
        command = [
            *(*SERVE, str(self.folder / name), "--node", name),
            *("--lease", f"{self.lease_s:g}s", "--partitions", str(self.partitions)),
        ]
        process = self.stack.enter_context(
            started(command, log, {"HEADWAY_STORE": self.address})
        )
        found = ADDRESS.search(wait_for_line(process, log, "http://", READY_S))
        if found is None:
            raise NotHere(f"node {name} says no address")
        self.processes[name] = process
        self.urls[name] = found[0]

    def kill(self, name: str) -> None:
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        end(self.processes[name])

    def drain(self, name: str, *, is_on: bool) -> None:
        self.ask("SELECT headway.drain_1(%s, %s)", name, is_on)

    def held(self) -> dict[str, str | None]:
        """The node of each partition."""
        return dict(self.ask("SELECT partition, node FROM headway.holdings"))

    def placed(self) -> dict[str, str]:
        """The first partition of each queue."""
        return dict(self.ask("SELECT queue, partitions[1] FROM headway.placements"))

    def ask(self, statement: Any, *values: object) -> list[Any]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            return list(connection.execute(statement, values))

    async def until_held(self, nodes: Sequence[str]) -> None:
        """Each of these has a partition, and nobody else does."""
        until_s = time.monotonic() + PATIENCE_S
        while set(self.held().values()) != set(nodes):
            if time.monotonic() > until_s:
                raise NotHere(f"{self.held()}: not as wanted")
            await asyncio.sleep(0.01)


@contextmanager
def cluster(
    names: Sequence[str], partitions: int, lease_s: float = LEASE_S
) -> Iterator[Cluster]:
    """Nodes over a fresh database."""
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-nodes-"))
        place = Path(made)
        # As root, the database runs as a user of its own, which must get in.
        place.chmod(0o755)
        address, pid = stack.enter_context(pgqueuer.database(place, "data"))
        migrate = [sys.executable, "-m", "headway.cli.main", "migrate"]
        log = place / "migrate"
        with started(migrate, log, {"HEADWAY_STORE": address}) as process:
            wait_for_line(process, log, "went from", READY_S)
        found = Cluster(place, address, partitions, lease_s, pid, stack)
        for name in names:
            found.start(name)
        yield found


class Drained(NamedTuple):
    """What jobs waited before a drain and during it."""

    before_ms: float
    during_ms: float
    took_s: float
    """Until the last partition was another's."""
    jobs: int
    """Sent during the drain."""

    @property
    def ratio(self) -> float:
        return self.during_ms / self.before_ms


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    with cluster(["n1", "n2"], sizes.partitions) as nodes:
        drain = asyncio.run(drained(nodes, sizes))
    with cluster(["n1", "n2"], sizes.partitions) as nodes:
        back_s = asyncio.run(failed_over(nodes, sizes))
    with cluster(["n1", "n2"], 2) as nodes:
        sent, in_time = asyncio.run(overloaded(nodes))
    kept = min((in_time[place] / count for place, count in sent.items()), default=0.0)
    how = f"{sizes.per_s:g} jobs/s over {sizes.queues} queues, {sizes.partitions} parts"
    return [
        Figure("cluster, start p99 before a drain", drain.before_ms, "ms", note=how),
        Figure(
            "cluster, start p99 during a drain",
            drain.during_ms,
            "ms",
            note=f"{drain.jobs} jobs in {drain.took_s:.2f} s and {sizes.after_s:g} s",
        ),
        Figure("cluster, drain / before", drain.ratio, "x", ceiling=DRAIN_RATIO),
        Figure(
            "cluster, kill to the last queue's next start",
            back_s,
            "s",
            ceiling=LEASE_S + NOTICE_S,
            note=f"lease {LEASE_S:g} s",
        ),
        Figure(
            "cluster, overload: urgent jobs in time",
            kept * 100,
            "%",
            floor=ATTAINED * 100,
            note=f"of {sent.total():,}, in the worse place; 1.8 times what workers do",
        ),
    ]


async def drained(nodes: Cluster, sizes: Sizes) -> Drained:
    """All partitions of the first node go to the other one, under load."""
    load = Load(",".join(nodes.urls.values()), _streams(sizes))
    async with load.running():
        await _every_queue(load, sizes, time.monotonic())
        await nodes.until_held(["n1", "n2"])
        before_s = time.monotonic()
        await asyncio.sleep(sizes.before_s)
        began_s = time.monotonic()
        nodes.drain("n1", is_on=True)
        await nodes.until_held(["n2"])
        took_s = time.monotonic() - began_s
        await asyncio.sleep(sizes.after_s)
        ended_s = time.monotonic()
        # What is on its way now has come by then.
        await _every_queue(load, sizes, ended_s)
    during = load.between(began_s, ended_s)
    return Drained(
        p99_ms(load.between(before_s, began_s)), p99_ms(during), took_s, len(during)
    )


async def failed_over(nodes: Cluster, sizes: Sizes) -> float:
    """How long after a node was killed every queue has started a newer job."""
    load = Load(",".join(nodes.urls.values()), _streams(sizes))
    async with load.running():
        await _every_queue(load, sizes, time.monotonic())
        await nodes.until_held(["n1", "n2"])
        await asyncio.sleep(1.0)
        killed_s = time.monotonic()
        nodes.kill("n1")
        last_s = await _every_queue(load, sizes, killed_s)
    return last_s - killed_s


async def overloaded(nodes: Cluster) -> tuple[Counter[str], Counter[str]]:
    """Urgent jobs that were started, and those of them in time, by partition."""
    urls = ",".join(nodes.urls.values())
    streams = [Stream(f"urgent-{number}", 1.25, SHORT_MS) for number in range(8)]
    streams += [Stream(f"bulk-{number}", 10.0, LONG_MS) for number in range(8)]
    load = Load(urls, streams, workers=WORKERS, most=1, run_s=RUN_S)
    async with load.running():
        await asyncio.sleep(WARMUP_S)
        before = _lanes(nodes)
        await asyncio.sleep(LOAD_S)
        after = _lanes(nodes)
    placed = nodes.placed()
    started: Counter[str] = Counter()
    in_time: Counter[str] = Counter()
    for (name, queue), count in (after - before).items():
        if queue.startswith("urgent"):
            started[placed[queue]] += count
            in_time[placed[queue]] += count * (name == IN_TIME)
    return started, in_time


def _lanes(nodes: Cluster) -> Counter[tuple[str, str]]:
    """Starts in time and late so far, by queue: each node tells of what it holds."""
    found: Counter[tuple[str, str]] = Counter()
    for url in nodes.urls.values():
        with urlopen(f"{url}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        for name, labels, count in STARTS.findall(text):
            found[name, dict(LABEL.findall(labels))["queue"]] += int(float(count))
    return found


async def _every_queue(load: Load, sizes: Sizes, since_s: float) -> float:
    """When the last queue has started a job that was sent after then."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        first: dict[str, float] = {}
        for start in load.between(since_s, float("inf")):
            first.setdefault(start.queue, start.began_s)
        if len(first) == sizes.queues:
            return max(first.values())
        if time.monotonic() > until_s:
            raise NotHere(f"{sizes.queues - len(first)} queues start nothing any more")
        await asyncio.sleep(0.02)


def _streams(sizes: Sizes) -> list[Stream]:
    each = sizes.per_s / sizes.queues
    return [Stream(f"q{number}", each, SLO_MS) for number in range(sizes.queues)]
