"""What many nodes and databases would do: a model of costs that were measured on one.

`python -m benchmarks.scaling_model` writes the tables and the picture of docs/scaling.md
anew; a test compares them. Nothing here is a measurement of a cluster.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.figure import shown
from benchmarks.scaling_chart import Line, draw

PAGE: Final = Path("docs/scaling.md")
PICTURE: Final = Path("docs/results/scaling.svg")
SEED: Final = 1
DRAWS: Final = 9
"""Of an imbalance; the one in the middle is shown."""
QUEUES: Final = 10_000


class Cost(NamedTuple):
    """A number that the model is built on, and where it is from."""

    value: float
    unit: str
    what: str
    source: str


COSTS: Final = {
    "owner": Cost(20, "µs", "the owner, for a job from enqueue to ack", "owner alone"),
    "front": Cost(37, "µs", "HTTP and JSON, for a job in three requests", "cycles"),
    "request": Cost(97, "µs", "HTTP, for a request, beside its jobs", "cycles"),
    "hop": Cost(100, "µs", "HTTP, for a request that is passed on", "estimate"),
    "hint": Cost(73, "µs", "a hint, both nodes together", "bare request"),
    "database": Cost(22, "µs", "the database, for a job", "cycles"),
    "beat": Cost(233, "µs", "the database, for a commit of nothing", "owner alone"),
    "log": Cost(
        1_400, "bytes", "log that the database flushes for a job", "owner alone"
    ),
}


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is not measured at all."""

    database_cores: int = 8
    log_bytes_per_s: float = 200e6
    """What the disk of a database takes for long, flushed."""
    hints_per_s: float = 20
    """From each node to each other."""
    lease_s: float = 10
    beats_per_lease: int = 5
    recovery_s: float = 1
    """From taking a partition over to its first answer."""
    busy: float = 0.7
    """How much of a node may be used for long."""


ASSUMED: Final = Assumed()


@dataclass(frozen=True, slots=True)
class Cluster:
    nodes: int
    databases: int
    partitions: int


CLUSTERS: Final = (
    Cluster(1, 1, 1),
    Cluster(3, 1, 12),
    Cluster(10, 2, 40),
    Cluster(30, 10, 120),
    Cluster(100, 50, 400),
)
LARGEST: Final = CLUSTERS[-1]
SKEWS: Final = (0.0, 0.8, 1.0, 1.2)
BATCHES: Final = (1, 10, 100)


def node_us(nodes: int, batch: int) -> float:
    """CPU of all nodes together for a job, in requests of so many.

    Three requests a batch: enqueue, lease, ack. Callers do not know which node holds
    their jobs, so all but one in `nodes` are passed on once.
    """
    passed = 1 - 1 / nodes
    each = COSTS["request"].value + passed * COSTS["hop"].value
    return COSTS["owner"].value + COSTS["front"].value + 3 * each / batch


def hint_share(nodes: int) -> float:
    """Of a node's core: it tells every other, and is told by every other."""
    return ASSUMED.hints_per_s * (nodes - 1) * COSTS["hint"].value / 1e6


def nodes_per_s(cluster: Cluster, batch: int) -> float:
    """Jobs a second that the nodes can do, evenly loaded."""
    free = ASSUMED.busy - hint_share(cluster.nodes)
    return cluster.nodes * free * 1e6 / node_us(cluster.nodes, batch)


def databases_per_s(cluster: Cluster) -> float:
    by_cpu = ASSUMED.busy * ASSUMED.database_cores * 1e6 / COSTS["database"].value
    by_log = ASSUMED.busy * ASSUMED.log_bytes_per_s / COSTS["log"].value
    return cluster.databases * min(by_cpu, by_log)


def even_per_s(cluster: Cluster, batch: int) -> float:
    return min(nodes_per_s(cluster, batch), databases_per_s(cluster))


def beat_share(nodes: int) -> float:
    """Of one core of the database that the nodes are known in."""
    per_s = nodes * ASSUMED.beats_per_lease / ASSUMED.lease_s
    return per_s * COSTS["beat"].value / 1e6


def imbalance(cluster: Cluster, skew: float, *, is_wide: bool) -> float:
    """Load of the busiest node, in means of all, with queues as large as Zipf has them.

    A hash places a queue as if by lot. A wide queue is cut into parts that are no more
    than a tenth of what a partition has in the mean.
    """
    chance = random.Random(SEED)
    weights = [1 / rank**skew for rank in range(1, QUEUES + 1)]
    most = sum(weights) / cluster.partitions / 10 if is_wide else float("inf")
    found = []
    for _ in range(DRAWS):
        loads = [0.0] * cluster.partitions
        for weight in weights:
            parts = min(cluster.partitions, max(1, ceil(weight / most)))
            for place in _places(chance, cluster.partitions, parts):
                loads[place] += weight / parts
        # Partitions are dealt out by number, not by load: `cluster.nodes` piles.
        held = [sum(loads[node :: cluster.nodes]) for node in range(cluster.nodes)]
        found.append(max(held) * cluster.nodes / sum(held))
    return median(found)


def _places(chance: random.Random, partitions: int, parts: int) -> Sequence[int]:
    if parts == 1:
        return (int(chance.random() * partitions),)
    return chance.sample(range(partitions), parts)


def catch_up_s(each: int, busy: float) -> float:
    """After a node was lost: until its partitions have worked off what has waited.

    It held `each` partitions, as all do, and each goes to another node, which is then
    busier by as much. Infinite if that node can't do it.
    """
    step_s = 0.05
    share = busy / each
    without_s = ASSUMED.lease_s + ASSUMED.recovery_s
    backlog = share * without_s
    spare = 1 - busy - share
    if spare <= 0:
        return float("inf")
    passed_s = without_s
    while backlog > 0:
        backlog -= spare * step_s
        passed_s += step_s
    return passed_s


def tables() -> dict[str, list[str]]:
    """What stands between the marks of the page."""
    return {
        "costs": list(_costs()),
        "capacity": list(_capacity()),
        "between": list(_between()),
        "imbalance": list(_imbalance()),
        "failure": list(_failure()),
    }


def _costs() -> Iterator[str]:
    yield "| what | value | from |"
    yield "|---|---:|---|"
    for cost in COSTS.values():
        yield f"| {cost.what} | {shown(cost.value)} {cost.unit} | {cost.source} |"


def _capacity() -> Iterator[str]:
    sizes = " | ".join(f"requests of {batch}" for batch in BATCHES)
    yield f"| nodes | databases | {sizes} | what is full first, in batches of 100 |"
    yield "|---:|---:|---:|---:|---:|---|"
    for cluster in CLUSTERS:
        rates = " | ".join(_rounded(even_per_s(cluster, batch)) for batch in BATCHES)
        is_nodes = nodes_per_s(cluster, 100) < databases_per_s(cluster)
        full = "the nodes" if is_nodes else "the log of the databases"
        yield f"| {cluster.nodes} | {cluster.databases} | {rates} | {full} |"


def _between() -> Iterator[str]:
    yield "| nodes | hints a second | of each node's core | beats a second | of a core |"
    yield "|---:|---:|---:|---:|---:|"
    for nodes in (3, 10, 30, 100, 300):
        hints = ASSUMED.hints_per_s * nodes * (nodes - 1)
        beats = nodes * ASSUMED.beats_per_lease / ASSUMED.lease_s
        yield (
            f"| {nodes} | {hints:,.0f} | {hint_share(nodes):.1%} "
            f"| {beats:,.1f} | {beat_share(nodes):.1%} |"
        )


def _imbalance() -> Iterator[str]:
    yield "| queues as large as | largest queue | busiest node | if large ones are wide |"
    yield "|---|---:|---:|---:|"
    for skew in SKEWS:
        weights = [1 / rank**skew for rank in range(1, QUEUES + 1)]
        name = f"Zipf, {skew:g}" if skew else "each other"
        plain = imbalance(LARGEST, skew, is_wide=False)
        wide = imbalance(LARGEST, skew, is_wide=True)
        largest = weights[0] / sum(weights)
        yield f"| {name} | {largest:.2%} of all | {plain:.1f} means | {wide:.2f} means |"


def _failure() -> Iterator[str]:
    yield "| partitions of a node | nodes half busy | nodes 70 % busy |"
    yield "|---:|---:|---:|"
    for each in (1, 2, 4, 8):
        half, more = (catch_up_s(each, busy) for busy in (0.5, 0.7))
        yield f"| {each} | {_time(half)} | {_time(more)} |"


def _time(seconds: float) -> str:
    return "never" if seconds == float("inf") else f"{seconds:.0f} s"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"


def picture() -> str:
    """Jobs a second by nodes; two nodes to a database, four partitions to a node."""
    counts = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    clusters = [Cluster(count, ceil(count / 2), 4 * count) for count in counts]
    even = [even_per_s(cluster, 100) for cluster in clusters]
    lines = []
    for name, is_wide in (("Zipf 1, large queues wide", True), ("Zipf 1", False)):
        skewed = [
            rate / imbalance(cluster, 1.0, is_wide=is_wide)
            for rate, cluster in zip(even, clusters, strict=True)
        ]
        lines.append(Line(name, skewed))
    return draw(counts, [Line("load evenly spread", even), *lines])


def written(page: str) -> str:
    """The page with its tables as they are now."""
    for name, lines in tables().items():
        begin, end = f"<!-- model: {name} -->\n", "<!-- end -->"
        if page.count(begin) != 1:
            raise ValueError(f"{PAGE} has no one place for the table {name}")
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = "\n".join([before + begin, *lines, "", end + after])
    return page


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    PICTURE.write_text(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
