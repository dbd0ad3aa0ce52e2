"""The nodes of a cluster and its partitions, as servers tell of them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

NAME_MAX = 64
NodeState = Literal["alive", "draining", "leaving", "gone"]
NodeName = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]


class ClusterNode(msgspec.Struct, kw_only=True):
    """One server of a cluster."""

    name: str
    address: str
    """Where the others reach it; empty for a server that has no others."""
    state: NodeState
    """`draining`: an operator wants it to hold nothing; `leaving`: it is about to end;
    `gone`: its lease is over."""
    lease_left_ms: int | None
    """Until its lease is over; null for a server that needs none."""
    version: str
    started_ms: int
    partitions: list[str]
    """Those that it holds."""


class Nodes(msgspec.Struct):
    """All nodes, by name."""

    nodes: list[ClusterNode]
    told_by: str
    """The node that answers."""
    is_cluster: bool
    """False for a server that is no node: it tells of itself."""
    lease_ms: int | None
    """How long a lease is that was just renewed; null for a server that needs none."""


class ClusterPartition(msgspec.Struct, kw_only=True):
    """One partition of a cluster."""

    partition: str
    node: str | None
    """Who serves it; null while nobody does."""
    state: Literal["open", "closing"]
    """`closing`: no further queue is placed there."""
    database: str
    """As nodes name it; empty for the database of the cluster itself."""
    queues: int
    since_ms: int | None
    """Since when that node has it; null if it had it before the one that answers
    began to look."""
    pinned: str | None
    """Where an operator wants it to be."""
    wanted: str | None
    """Who is to have it next."""


class Partitions(msgspec.Struct):
    """All partitions, by name."""

    partitions: list[ClusterPartition]
    told_by: str
    is_cluster: bool


class Move(msgspec.Struct, forbid_unknown_fields=True):
    """Where a partition is to be."""

    node: NodeName | None
    """Null leaves it to the nodes again."""
