"""Servers of one partition each, in place of a cluster: clients know who has what."""

from collections.abc import Sequence

from tests.cluster.chaos.nodes import Node, Nodes


class Alone(Node):
    """`headway serve` with a partition of its own."""

    def arguments(self) -> list[str]:
        return []

    def environment(self) -> dict[str, str]:
        return {"PARTITION": self.name}


class Apart(Nodes):
    """Each queue is at the server whose number it ends with."""

    kind = Alone

    def nodes_of(self, queue: str) -> Sequence[str]:
        names = list(self.all)
        return [names[int(queue.rpartition("-")[2]) % len(names)]]

    def nodes_of_job(self, job: str) -> Sequence[str]:
        return [job.rpartition("_")[0]]

    def queues_at(self, node: str) -> Sequence[str]:
        return [queue for queue in self.queues if self.nodes_of(queue) == [node]]
