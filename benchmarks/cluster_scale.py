"""The same load over one, two and four nodes with a partition each: CPU for a job.

On one machine more nodes are no faster; what grows with them is what can be seen here.
Clients speak to every node, whoever has their queue, as behind a balancer: of n nodes
all but one n-th of the requests are passed on.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.client import program
from benchmarks.client.program import Client, finished
from benchmarks.cluster import Cluster, cluster
from benchmarks.figure import Figure
from benchmarks.processes import cpu_s

GROWTH_MAX = 2.0
"""CPU of the nodes for a job, of the most nodes by one: a hop is a request more."""
QUEUES = 4
LEASE_S = 10.0


@dataclass(frozen=True, slots=True)
class Sizes:
    nodes: tuple[int, ...] = (1, 2, 4)
    load_s: float = 8.0
    warmup_s: float = 1.0
    connections: int = 2
    """Of each queue's client."""


FULL = Sizes(load_s=30.0)


class Used(NamedTuple):
    """What a job cost with so many nodes."""

    nodes: int
    jobs_per_s: float
    node_us: float
    database_us: float
    errors: int


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    return list(told([_used(count, sizes) for count in sizes.nodes]))


def told(found: Sequence[Used]) -> list[Figure]:
    figures: list[Figure] = []
    for one in found:
        name = f"cluster of {one.nodes}, each with a partition"
        note = f"{one.jobs_per_s:,.0f} jobs/s in all, {one.errors} errors"
        figures.append(
            Figure(f"{name}: CPU of nodes", one.node_us, "us/job", note=note)
        )
        figures.append(Figure(f"{name}: CPU of database", one.database_us, "us/job"))
    first, last = found[0], found[-1]
    name = f"cluster, CPU of nodes for a job: {last.nodes} by {first.nodes}"
    ratio = last.node_us / first.node_us
    return [*figures, Figure(name, ratio, "x", ceiling=GROWTH_MAX)]


def _used(count: int, sizes: Sizes) -> Used:
    names = [f"n{number}" for number in range(1, count + 1)]
    with cluster(names, count, LEASE_S) as nodes:
        client = program.build(nodes.folder)
        _load(nodes, client, sizes, sizes.warmup_s)
        pids = [process.pid for process in nodes.processes.values()]
        before = sum(map(cpu_s, pids)), cpu_s(nodes.database)
        reports = _load(nodes, client, sizes, sizes.load_s)
        after = sum(map(cpu_s, pids)), cpu_s(nodes.database)
    jobs = max(1, sum(report["acked"] for report in reports))
    return Used(
        count,
        sum(report["jobs_per_s"] for report in reports),
        (after[0] - before[0]) / jobs * 1e6,
        (after[1] - before[1]) / jobs * 1e6,
        sum(report["errors"] for report in reports),
    )


def _load(
    nodes: Cluster, client: Client, sizes: Sizes, load_s: float
) -> list[program.Report]:
    """Full cycles of batches of 100, each queue by a client at one node after another."""
    ports = [int(url.rpartition(":")[2]) for url in nodes.urls.values()]
    running = [
        client.start(
            "cycle",
            ports[number % len(ports)],
            load_s,
            queue=f"bench{number}",
            connections=sizes.connections,
        )
        for number in range(QUEUES)
    ]
    return [finished(process, load_s) for process in running]
