"""Real nodes over a real database: started, killed, held, cut off and stopped."""

import http.client
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from headway.core.cluster import Holding, View, holder
from headway.store.postgres.cluster import Operator
from tests.postgres import shared
from tests.server.process import PATIENCE_S, Served

LEASE_S = 2.0
LOOK_S = 0.05
"""How often it is looked when the tables say nothing."""


class NodeProcess(Served):
    """`headway serve --node`."""

    def __init__(self, folder: Path, name: str, address: str, *options: str) -> None:
        self.name = name
        super().__init__(
            folder / name,
            "--node",
            name,
            "--lease",
            f"{round(LEASE_S * 1_000)}ms",
            *options,
            environment={"HEADWAY_STORE": address},
        )

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)


class ClusterOf:
    """Some nodes, and a look at the tables they share."""

    def __init__(self, folder: Path, address: str, partitions: int) -> None:
        self.address = address
        self.nodes: dict[str, NodeProcess] = {}
        self.tables = Operator(address)
        self._folder = folder
        self._partitions = partitions
        self._stack = ExitStack()
        self._stack.callback(self.tables.close)
        self._never = os.eventfd(0)
        self._stack.callback(os.close, self._never)

    def start(
        self,
        name: str,
        *options: str,
        address: str = "",
        kind: type[NodeProcess] = NodeProcess,
    ) -> NodeProcess:
        """A node, once it says that it answers."""
        first = () if self.nodes else ("--partitions", str(self._partitions))
        where = address or self.address
        node = kind(self._folder, name, where, *first, *options)
        self.nodes[name] = node
        self._stack.callback(end, node)
        return node

    def view(self) -> View:
        return self.tables.look().view

    def held(self) -> dict[str, list[str]]:
        """The partitions of each node that is alive."""
        view = self.view()
        found: dict[str, list[str]] = {
            name: [] for name, node in view.nodes.items() if node.is_alive
        }
        for one in view.holdings.values():
            name = holder(view, one)
            if name is not None:
                found[name].append(one.partition)
        return found

    def holding(self, partition: str) -> Holding:
        return self.view().holdings[partition]

    def until(self, is_so: Callable[[], Any]) -> Any:
        """Looks until it is so; answers what it is."""
        until_s = time.monotonic() + PATIENCE_S
        while not (found := is_so()):
            assert time.monotonic() < until_s, (self.held(), self.logs())
            self.tables.wait(self._never, LOOK_S)
        return found

    def logs(self) -> str:
        return "\n".join(f"{one.name}: {one.log()}" for one in self.nodes.values())

    def close(self) -> None:
        self._stack.close()


def end(node: NodeProcess) -> None:
    """However it is: one that is held can't be told to stop."""
    node.signal(signal.SIGCONT)
    node.kill()
    node.stop()


@contextmanager
def cluster_of(name: str, folder: Path, partitions: int = 1) -> Iterator[ClusterOf]:
    with shared.database(name) as address:
        made = ClusterOf(folder, address, partitions)
        try:
            yield made
        finally:
            made.close()


def lengths(held: dict[str, list[str]]) -> list[int]:
    return sorted(map(len, held.values()))


def queue_in(cluster: ClusterOf, partition: str) -> str:
    """A queue that is placed there."""
    queue = f"in-{partition}"
    assert cluster.tables.place(queue, (partition,)) == (partition,)
    return queue


def enqueue(cluster: ClusterOf, node: NodeProcess, queue: str, key: str) -> str:
    """The id of a job; asked until the node knows where the queue is and serves it."""
    jobs = [{"kind": "mail", "payload": key, "idempotency_key": key}]

    def asked() -> str:
        answer = node.ask("POST", f"/v1/queues/{queue}/jobs", jobs)
        assert answer.status in (200, 201, 503), answer
        return "" if answer.status == 503 else str(answer.json["jobs"][0]["id"])

    return str(cluster.until(asked))


def ready(cluster: ClusterOf, node: NodeProcess, queue: str) -> int:
    """How many jobs of a queue may start, as the node says once it answers."""

    def asked() -> Any:
        answer = node.ask("GET", f"/v1/queues/{queue}")
        assert answer.status in (200, 404, 503), answer
        return answer if answer.status == 200 else None

    return int(cluster.until(asked).json["counts"]["ready"])


class Line:
    """A connection of its own to a node: what is sent there may be answered late."""

    def __init__(self, node: NodeProcess) -> None:
        self._connection = http.client.HTTPConnection(*node.place, timeout=PATIENCE_S)
        self.send("GET", "/livez")
        with self._connection.getresponse() as response:
            assert response.status == 200
            response.read()

    def send(self, method: str, path: str, body: bytes | None = None) -> None:
        headers = {"headway-hop": "1", "content-type": "application/json"}
        self._connection.request(method, path, body, headers)

    def status(self) -> int:
        """Of the answer to what was sent; there is no other afterwards."""
        with closing(self._connection):
            return self._connection.getresponse().status
