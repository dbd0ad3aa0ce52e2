"""The tables of a cluster, as one node reads and changes them, from one thread."""

from collections.abc import Callable, Iterable
from typing import Any, Final, LiteralString

import msgspec
import psycopg

from headway.core.cluster import Holding, Node, Placement, View
from headway.core.errors import BadValue, RuleBroken, TooManyQueues
from headway.store.errors import StoreError
from headway.store.postgres import migrations
from headway.store.postgres.connections import (
    CONNECT_S,
    connect,
    failure,
    refuse_careless,
    wait_for,
)
from headway.store.postgres.reader import discard

PARTITIONS_MAX: Final = 1_024
QUEUES_MAX: Final = 1_000_000
PAGE: Final = 10_000
"""Queues whose places are read at one go."""
SIGNING: Final = "signing"
"""The name of the key by which all nodes sign leases."""

_BEAT: Final = "SELECT headway.beat_1(%s, %s, %s, %s, %s, %s, %s, %s)"
_NODES: Final = """SELECT name, address, version, databases,
    until > clock_timestamp(), is_draining, is_leaving,
    greatest(0, extract(epoch FROM until - clock_timestamp()) * 1000)::bigint,
    (extract(epoch FROM started_at) * 1000)::bigint
    FROM headway.nodes ORDER BY name"""
_HOLDINGS: Final = """SELECT partition, database, node, claim, wanted, pinned, state
    FROM headway.holdings ORDER BY partition"""
_PLACEMENTS: Final = """SELECT queue, partitions, version, leaving, most,
    whole IS NOT NULL FROM headway.placements
    WHERE version > %s ORDER BY version FETCH FIRST %s ROWS WITH TIES"""
_PLACEMENT: Final = """SELECT partitions, leaving, whole, most, version
    FROM headway.placements WHERE queue = %s"""
_REPLACE: Final = "SELECT headway.replace_1(%s, %s, %s, %s, %s, %s)"
_COUNTS: Final = """SELECT one, count(*) FROM headway.placements, unnest(partitions) AS one
    GROUP BY one"""
_SHARE: Final = """INSERT INTO headway.shared(name, value) VALUES(%s, %s)
    ON CONFLICT DO NOTHING"""
_SHARED: Final = "SELECT value FROM headway.shared WHERE name = %s"
_FORGET: Final = """DELETE FROM headway.nodes AS n
    WHERE until < clock_timestamp() - %s * interval '1 second' AND NOT EXISTS(
        SELECT FROM headway.holdings AS h WHERE h.node = n.name)"""


_TOO_MANY: Final[dict[str, Callable[[str], RuleBroken]]] = {
    "HW005": lambda text: BadValue("partitions", "", text),
    "HW006": TooManyQueues,
}


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """How a node names itself."""

    name: str
    life: str
    address: str
    version: str
    databases: tuple[str, ...] = ("",)
    lease_ms: int


class Seen(msgspec.Struct, frozen=True):
    """What one look at the tables has shown."""

    view: View
    placed: list[tuple[str, tuple[str, ...]]]
    """Queues that were placed, or spread, since the look before."""
    version: int
    """To be given at the next look."""
    marks: dict[str, Placement]
    """Those of them of which more is to be known than where they are."""


class Registry:
    """One connection, made when it is needed and again after it was lost.

    Raises StoreError: what was asked may or may not have been carried out, and all of
    it may be asked again.
    """

    def __init__(self, address: str, patience_s: float = CONNECT_S) -> None:
        """A database that says nothing for so long counts as lost."""
        self._address = address
        self._patience_s = patience_s
        self._connection: Any = None

    def wait(self, woken: int, seconds: float) -> bool:
        """Until the tables were changed, the descriptor is readable, or time is up.

        Answers whether the tables were changed, as far as that is told.
        """
        connection = self._connection
        if connection is None:
            wait_for([woken], seconds)
            return False
        try:
            if list(connection.notifies(timeout=0)):
                return True
            wait_for([woken, connection.fileno()], seconds)
            return bool(list(connection.notifies(timeout=0)))
        except psycopg.Error:
            self.close()
            return True

    def beat(self, me: Me, *, is_first: bool, is_leaving: bool = False) -> bool:
        """Renews the lease. False if another process has the name (still, or now)."""
        values = (
            me.name,
            me.life,
            me.address,
            me.version,
            list(me.databases),
            me.lease_ms,
            is_first,
            is_leaving,
        )
        return bool(self._value(_BEAT, values))

    def look(self, after: int = 0) -> Seen:
        """The tables, and where queues were placed since the look before."""
        nodes = [
            Node(
                name=name,
                address=address,
                version=version,
                databases=frozenset(databases),
                is_alive=is_alive,
                is_draining=is_draining,
                is_leaving=is_leaving,
                left_ms=left_ms,
                started_ms=started_ms,
            )
            for (
                name,
                address,
                version,
                databases,
                is_alive,
                is_draining,
                is_leaving,
                left_ms,
                started_ms,
            ) in self._rows(_NODES)
        ]
        holdings = [
            Holding(
                partition=partition,
                database=database,
                node=node,
                claim=claim,
                wanted=wanted,
                pinned=pinned,
                state=state,
            )
            for partition, database, node, claim, wanted, pinned, state in self._rows(
                _HOLDINGS
            )
        ]
        placed: list[tuple[str, tuple[str, ...]]] = []
        marks: dict[str, Placement] = {}
        while found := self._rows(_PLACEMENTS, (after, PAGE)):
            placed += [(row[0], tuple(row[1])) for row in found]
            marks |= {row[0]: _mark(row) for row in found if any(row[3:])}
            after = found[-1][2]
        view = View(
            {one.name: one for one in nodes}, {one.partition: one for one in holdings}
        )
        return Seen(view, placed, after, marks)

    def leave(self, me: Me) -> None:
        self._value("SELECT headway.leave_1(%s, %s)", (me.name, me.life))

    def claim(self, me: Me, partition: str) -> int | None:
        """The number of the claim; None if somebody else has it."""
        values = (partition, me.name, me.life)
        found = self._value("SELECT headway.claim_1(%s, %s, %s)", values)
        return None if found is None else int(found)

    def release(self, me: Me, partition: str, claim: int, to: str | None) -> None:
        values = (partition, me.name, claim, to)
        self._value("SELECT headway.release_1(%s, %s, %s, %s)", values)

    def place(self, queue: str, partitions: tuple[str, ...]) -> tuple[str, ...] | None:
        """Where the queue is, or is from now on; None if one of these is not open."""
        values = (queue, list(partitions), QUEUES_MAX)
        found = self._value("SELECT headway.place_1(%s, %s, %s)", values)
        return None if found is None else tuple(found)

    def placement(self, queue: str) -> Placement | None:
        """All that is known of where a queue is; None if that is nowhere yet."""
        rows = self._rows(_PLACEMENT, (queue,))
        if not rows:
            return None
        partitions, leaving, whole, most, version = rows[0]
        return Placement(
            partitions=tuple(partitions),
            leaving=tuple(leaving),
            whole=None if whole is None else bytes(whole),
            most=most,
            version=version,
        )

    def found(self, queues: Iterable[str], partition: str) -> int:
        """Queues that a partition has: those it was not known to have are noted."""
        values = (list(queues), partition)
        return int(self._value("SELECT headway.found_1(%s, %s)", values))

    def shared(self, name: str, fresh: bytes) -> bytes:
        """What all nodes have in common; `fresh` if nobody has said so before."""
        self._run(_SHARE, (name, fresh))
        return bytes(self._value(_SHARED, (name,)))

    def forget(self, after_s: float) -> None:
        """Nodes that were not heard of for so long, and hold nothing."""
        self._run(_FORGET, (after_s,))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            discard(connection)

    def _value(self, statement: LiteralString, values: tuple[object, ...] = ()) -> Any:
        return self._run(statement, values).fetchone()[0]

    def _rows(
        self, statement: LiteralString, values: tuple[object, ...] = ()
    ) -> list[Any]:
        found: list[Any] = self._run(statement, values).fetchall()
        return found

    def _run(self, statement: LiteralString, values: tuple[object, ...]) -> Any:
        try:
            return self._opened().execute(statement, values)
        except psycopg.Error as error:
            if error.sqlstate in _TOO_MANY:
                text = str(error.diag.message_primary)
                raise _TOO_MANY[error.sqlstate](text) from error
            self.close()
            raise failure(error) from error

    def _opened(self) -> Any:
        if self._connection is None:
            connection = connect(self._address, self._patience_s)
            try:
                refuse_careless(connection)
                migrations.check(connection)
                connection.execute("LISTEN headway_cluster")
            except (psycopg.Error, StoreError):
                discard(connection)
                raise
            self._connection = connection
        return self._connection


class Operator(Registry):
    """What people do to a cluster."""

    def add_partitions(
        self, names: Iterable[str], *, database: str = "", is_first_only: bool = False
    ) -> int:
        values = (list(names), database, is_first_only, PARTITIONS_MAX)
        found = self._value("SELECT headway.add_partitions_1(%s, %s, %s, %s)", values)
        return int(found)

    def drain(self, node: str, *, is_on: bool) -> None:
        """A node that drains gives its partitions away, and is given none."""
        if not self._value("SELECT headway.drain_1(%s, %s)", (node, is_on)):
            raise BadValue("node", node, "is not known here")

    def move(self, partition: str, node: str | None) -> None:
        """It is to be there for good; None leaves it to the nodes again."""
        if node is not None and node not in self.look().view.nodes:
            raise BadValue("node", node, "is not known here")
        if not self._value("SELECT headway.pin_1(%s, %s)", (partition, node)):
            raise BadValue("partition", partition, "is not known here")

    def set_state(self, partition: str, state: str) -> None:
        """Where it is closing no further queue is placed."""
        values = (partition, state)
        if not self._value("SELECT headway.set_state_1(%s, %s)", values):
            raise BadValue("partition", partition, "is not known here")

    def drop_partition(self, partition: str) -> None:
        """Takes one out of the cluster that has no queue."""
        why = self._value("SELECT headway.drop_partition_1(%s)", (partition,))
        if why:
            raise BadValue("partition", partition, f"can't be closed: {why}")

    def replace(self, queue: str, to: Placement) -> Placement | None:
        """From now on the queue is there; `to` has the version that was seen before.

        None if it was changed since, or can't be so.
        """
        values = (
            queue,
            to.version,
            list(to.partitions),
            list(to.leaving),
            to.whole,
            to.most,
        )
        version = self._value(_REPLACE, values)
        if version is None:
            return None
        return msgspec.structs.replace(to, version=int(version))

    def queues(self) -> dict[str, int]:
        """How many each partition has."""
        return dict(self._rows(_COUNTS))


def _mark(row: tuple[Any, ...]) -> Placement:
    """What is told of a queue at a look; its rules have to be asked for."""
    return Placement(
        partitions=tuple(row[1]),
        version=row[2],
        leaving=tuple(row[3]),
        most=row[4],
        whole=b"" if row[5] else None,
    )
