"""Who serves beside this server, as its handlers may ask; mostly: nobody."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Final, Protocol

from headway.server.problems import Refused
from headway.server.tokens import wall_ms
from headway.wire import nodes as wire

ALONE: Final = "alone"
"""The name of a server that is no node."""
Told = Callable[[Exception | None], None]
"""Is told on the loop that it is done, or why not."""


class Members(Protocol):
    """The nodes of a cluster and what they hold."""

    def nodes(self) -> wire.Nodes: ...

    def partitions(self) -> wire.Partitions:
        """As the tables were when they were last looked at."""
        ...

    def drain(self, node: str, told: Told, *, is_on: bool) -> None:
        """Refuses a node that is not known."""
        ...

    def move(self, partition: str, node: str | None, told: Told) -> None:
        """Refuses a partition or a node that is not known."""
        ...


class Alone:
    """A server that is no node: all there is is here."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._since_ms = wall_ms()

    def nodes(self) -> wire.Nodes:
        me = wire.ClusterNode(
            name=ALONE,
            address="",
            state="alive",
            lease_left_ms=None,
            version=version("headway"),
            started_ms=self._since_ms,
            partitions=[self._partition],
        )
        return wire.Nodes([me], ALONE, is_cluster=False, lease_ms=None)

    def partitions(self) -> wire.Partitions:
        """Without a count of queues: its owner is asked for that."""
        mine = wire.ClusterPartition(
            partition=self._partition,
            node=ALONE,
            state="open",
            database="",
            queues=0,
            since_ms=self._since_ms,
            pinned=None,
            wanted=None,
        )
        return wire.Partitions([mine], ALONE, is_cluster=False)

    def drain(self, node: str, told: Told, *, is_on: bool) -> None:
        raise Refused("not_found", "this server is no node of a cluster")

    def move(self, partition: str, node: str | None, told: Told) -> None:
        raise Refused("not_found", "this server is no node of a cluster")
