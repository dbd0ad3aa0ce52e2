"""Which node should have which partition: worked out alike by every node.

Nobody leads. Each node sees the same tables and works the same shares out of them; what
it then does is to take what is meant for it and free, and to let go of what is meant for
another. Where two see different things for a moment the tables let only one of them have
a partition.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from typing import Final, Literal

import msgspec

OPEN: Final = "open"
CLOSING: Final = "closing"


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A process that serves partitions, as the tables know it."""

    name: str
    address: str = ""
    version: str = ""
    databases: frozenset[str] = frozenset({""})
    """Where it can open partitions."""
    is_alive: bool = True
    """Its lease goes on, by the database's clock."""
    is_draining: bool = False
    """An operator wants it to have none."""
    is_leaving: bool = False
    """It is about to end."""
    left_ms: int = 0
    """Until its lease is over."""
    started_ms: int = 0

    @property
    def state(self) -> Literal["alive", "draining", "leaving", "gone"]:
        """In one word."""
        if not self.is_alive:
            return "gone"
        if self.is_leaving:
            return "leaving"
        return "draining" if self.is_draining else "alive"

    @property
    def is_taking(self) -> bool:
        """Whether it is given partitions."""
        return self.is_alive and not (self.is_draining or self.is_leaving)


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, and who has it."""

    partition: str
    database: str = ""
    node: str | None = None
    claim: int = 0
    wanted: str | None = None
    """Who is to have it next: it was let go for them."""
    pinned: str | None = None
    """Where an operator wants it to be."""
    state: str = OPEN


class View(msgspec.Struct, frozen=True):
    """The tables at one moment."""

    nodes: Mapping[str, Node]
    holdings: Mapping[str, Holding]


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a queue is."""

    partitions: tuple[str, ...]
    """Its home first."""
    leaving: tuple[str, ...] = ()
    """Those that take no new jobs, and go once they hold none."""
    whole: bytes | None = None
    """Its rules, while not each partition has its part of them yet; as JSON."""
    most: int | None = None
    """Up to so many partitions nodes may give it by themselves."""
    version: int = 0

    @property
    def open(self) -> tuple[str, ...]:
        """Those that take new jobs."""
        return tuple(one for one in self.partitions if one not in self.leaving)


class Acts(msgspec.Struct, frozen=True):
    """What one node does next."""

    claims: tuple[str, ...] = ()
    releases: tuple[tuple[str, str], ...] = ()
    """Partitions, each with who is to have it."""


def plan(view: View, me: str) -> Acts:
    """What is meant for this node and free, and what it has that is meant for others."""
    targets = shares(view)
    claims = []
    releases = []
    for name, holding in sorted(view.holdings.items()):
        target = targets.get(name)
        if target == me and holder(view, holding) is None:
            claims.append(name)
        elif holding.node == me and target is not None and target != me:
            releases.append((name, target))
    return Acts(tuple(claims), tuple(releases))


def holder(view: View, holding: Holding) -> str | None:
    """Who serves it: nobody, if the lease of whoever has it is over."""
    node = view.nodes.get(holding.node) if holding.node is not None else None
    return node.name if node is not None and node.is_alive else None


def shares(view: View) -> dict[str, str]:
    """Who should have each partition; one that nobody can have stays where it is.

    As many for each node as for the others, or one more, as far as what is pinned and
    where databases can be reached leave a choice; and no more moves than that takes.
    """
    may = _takers(view)
    given = {name: _kept(view, one, may) for name, one in view.holdings.items()}
    load = {node.name: 0 for node in view.nodes.values() if node.is_taking}
    for node in given.values():
        if node in load:
            load[node] += 1
    for name in sorted(name for name, node in given.items() if node is None):
        takers = may[view.holdings[name].database]
        if takers:
            # The least loaded; among equals by lot, but by the same for everybody.
            best = min(takers, key=lambda one: (load[one], -_weight(name, one), one))
            given[name] = best
            load[best] += 1
    _even_out(view, given, load, may)
    return {name: node for name, node in given.items() if node is not None}


def ranked(queue: str, partitions: Iterable[str]) -> list[str]:
    """Partitions in the order in which a queue would have them: the first is its home.

    With one more or less, only the queues of that one change.
    """
    return sorted(partitions, key=lambda one: (-_weight(queue, one), one))


def _takers(view: View) -> dict[str, list[str]]:
    """Who may be given the partitions of a database."""
    return {
        database: sorted(
            node.name
            for node in view.nodes.values()
            if node.is_taking and database in node.databases
        )
        for database in {one.database for one in view.holdings.values()}
    }


def _kept(view: View, holding: Holding, may: Mapping[str, Sequence[str]]) -> str | None:
    """Who has it and may keep it, or was promised it."""
    takers = may[holding.database]
    current = holder(view, holding)
    if not takers:
        # There is nobody to give it to: whoever has it goes on.
        return current
    promised = holding.wanted if current is None else current
    for name in (holding.pinned, promised):
        if name in takers:
            return name
    return None


def _even_out(
    view: View,
    given: dict[str, str | None],
    load: dict[str, int],
    may: Mapping[str, Sequence[str]],
) -> None:
    """Moves one after another from those who have most to those who have least."""
    groups: dict[tuple[str, str], list[tuple[bool, str]]] = {}
    for name, node in given.items():
        holding = view.holdings[name]
        takers = may[holding.database]
        if node in load and takers and holding.pinned not in takers:
            # What is on its way already is moved before what is served.
            rank = (holder(view, holding) is not None, name)
            groups.setdefault((node, holding.database), []).append(rank)
    for group in groups.values():
        heapify(group)
    while True:
        moves = [
            (load[to] - load[node], group[0], node, database, to)
            for (node, database), group in groups.items()
            if group
            for to in [min(may[database], key=lambda one: (load[one], one))]
        ]
        gap, _, node, database, to = min(moves, default=(0, (False, ""), "", "", ""))
        if gap > -2:
            return
        rank = heappop(groups[node, database])
        heappush(groups.setdefault((to, database), []), rank)
        given[rank[1]] = to
        load[node] -= 1
        load[to] += 1


def _weight(one: str, other: str) -> int:
    digest = blake2b(f"{one}\n{other}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
