"""The cluster as its nodes tell of it, and what operators do to it over HTTP."""

from collections.abc import Callable
from typing import Any

from headway.core.cluster import CLOSING, holder
from headway.core.errors import BadValue
from headway.runtime.errors import OwnerStopped
from headway.server.cluster.atlas import Atlas
from headway.server.cluster.registrar import Registrar, boot_s
from headway.server.members import Told
from headway.server.problems import Refused
from headway.store.errors import StoreError
from headway.store.postgres.cluster import Me, Operator
from headway.wire import nodes as wire


class ClusterMembers:
    """All on the loop, of what the node has seen last: nobody waits for the database."""

    def __init__(self, me: Me, atlas: Atlas, registrar: Registrar) -> None:
        self._me = me
        self._atlas = atlas
        self._registrar = registrar

    def nodes(self) -> wire.Nodes:
        view = self._atlas.view
        held: dict[str | None, list[str]] = {}
        for holding in view.holdings.values():
            held.setdefault(holder(view, holding), []).append(holding.partition)
        since_ms = round((boot_s() - self._atlas.looked_s) * 1_000)
        found = [
            wire.ClusterNode(
                name=node.name,
                address=node.address,
                state=node.state,
                lease_left_ms=max(0, node.left_ms - since_ms),
                version=node.version,
                started_ms=node.started_ms,
                partitions=held.get(node.name, []),
            )
            for node in view.nodes.values()
        ]
        me = self._me
        return wire.Nodes(found, me.name, is_cluster=True, lease_ms=me.lease_ms)

    def partitions(self) -> wire.Partitions:
        atlas = self._atlas
        view = atlas.view
        found = [
            wire.ClusterPartition(
                partition=name,
                node=(node := holder(view, holding)),
                state="closing" if holding.state == CLOSING else "open",
                database=holding.database,
                queues=atlas.queues[name],
                since_ms=None if node is None else atlas.since_ms[name][1],
                pinned=holding.pinned,
                wanted=holding.wanted,
            )
            for name, holding in view.holdings.items()
        ]
        return wire.Partitions(found, self._me.name, is_cluster=True)

    def drain(self, node: str, told: Told, *, is_on: bool) -> None:
        self._check_node(node)
        self._ask(lambda tables: tables.drain(node, is_on=is_on), told)

    def move(self, partition: str, node: str | None, told: Told) -> None:
        if partition not in self._atlas.view.holdings:
            raise Refused("not_found", f"there is no partition {partition[:80]!r}")
        if node is not None and node not in self._atlas.view.nodes:
            raise BadValue("node", node, "is not known here")
        self._ask(lambda tables: tables.move(partition, node), told)

    def _check_node(self, node: str) -> None:
        if node not in self._atlas.view.nodes:
            raise Refused("not_found", f"there is no node {node[:80]!r}")

    def _ask(self, work: Callable[[Operator], None], told: Told) -> None:
        def answered(answer: Any) -> None:
            # The tables say it: whoever looks next should see it.
            self._registrar.look_soon()
            if isinstance(answer, StoreError):
                answer = OwnerStopped("the database does not answer: ask again")
            told(answer if isinstance(answer, Exception) else None)

        self._registrar.ask(lambda tables, _: work(tables), answered)
