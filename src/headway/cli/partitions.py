"""`headway partitions`: what a cluster's jobs are divided into, and who serves it."""

from typing import TYPE_CHECKING

import click
import msgspec

from headway.cli.page import print_table, say, several
from headway.cli.refused import Refused
from headway.cli.sections import example
from headway.cli.steering import steering
from headway.cli.tables import Listing, as_json, operating, print_json

if TYPE_CHECKING:
    from headway.cli.steering import Steered
    from headway.store.postgres.cluster import Operator


class PartitionRow(msgspec.Struct):
    """A partition as it is printed."""

    name: str
    node: str | None
    """Who serves it; none if nobody does."""
    state: str
    """`open`, or `closing`: no further queue is placed there."""
    database: str
    """Empty for the database of the cluster itself."""
    queues: int
    pinned: str | None
    """Where an operator wants it to be."""


@click.group(cls=Listing)
def partitions() -> None:
    """See the partitions of a cluster, add some, and move them."""


@partitions.command("list", epilog=example("headway partitions list --json"))
@as_json
@steering
def list_partitions(tables: "Steered", is_json: bool) -> None:
    """List partitions: who serves them, and how many queues they have."""
    from headway.core.cluster import holder

    view = tables.look().view
    queues = tables.queues()
    rows = [
        PartitionRow(
            name=one.partition,
            node=holder(view, one),
            state=one.state,
            database=one.database,
            queues=queues.get(one.partition, 0),
            pinned=one.pinned,
        )
        for one in view.holdings.values()
    ]
    if is_json:
        print_json(rows)
        return
    print_table(
        ("partition", "node", "state", "database", "queues#", "pinned"),
        [
            (
                row.name,
                row.node,
                row.state,
                row.database or None,
                row.queues,
                row.pinned,
            )
            for row in rows
        ],
        empty="there is no partition",
    )


@partitions.command(epilog=example("headway partitions add p7 p8"))
@click.argument("names", nargs=-1, required=True)
@click.option("--database", default="", help="Where they are, as nodes name it.")
@operating
def add(tables: "Operator", names: tuple[str, ...], database: str) -> None:
    """Add partitions; nodes serve them at once, and new queues may be placed there."""
    from headway.server.settings import check_partition

    added = tables.add_partitions(map(check_partition, names), database=database)
    say(f"{several(added, 'partition')} added")


@partitions.command(epilog=example("headway partitions move p3 rack-2"))
@click.argument("partition")
@click.argument("node", required=False)
@click.option("--anywhere", is_flag=True, help="Leave it to the nodes again.")
@steering
def move(tables: "Steered", partition: str, node: str | None, anywhere: bool) -> None:
    """Have PARTITION served by NODE for as long as that one serves."""
    if (node is None) != anywhere:
        raise Refused("give a node, or --anywhere")
    tables.move(partition, node)
    say(f"{partition} goes to {node or 'whoever has fewest'}")


@partitions.command(epilog=example("headway partitions drain p3"))
@click.argument("partition")
@click.option("--undo", is_flag=True, help="Place queues there again.")
@operating
def drain(tables: "Operator", partition: str, undo: bool) -> None:
    """Place no further queue in PARTITION; those it has stay."""
    tables.set_state(partition, "open" if undo else "closing")
    say(f"{partition} is {'open' if undo else 'closing'}")


@partitions.command(epilog=example("headway partitions close p3"))
@click.argument("partition")
@operating
def close(tables: "Operator", partition: str) -> None:
    """Take PARTITION out of the cluster; refused while it has queues or jobs."""
    tables.drop_partition(partition)
    say(f"{partition} is closed")
