"""`headway nodes`: who serves, and for how long they were promised to."""

from typing import TYPE_CHECKING

import click
import msgspec

from headway.cli.page import moment, print_table, say
from headway.cli.sections import example
from headway.cli.steering import steering
from headway.cli.tables import Listing, as_json, print_json

if TYPE_CHECKING:
    from headway.cli.steering import Steered


class NodeRow(msgspec.Struct):
    """A node as it is printed."""

    name: str
    address: str
    state: str
    """`alive`, `draining`, `leaving` or `gone`."""
    left_ms: int
    """Until its lease is over."""
    partitions: list[str]
    version: str
    started_ms: int


@click.group(cls=Listing)
def nodes() -> None:
    """See the nodes of a cluster, and take one out of use."""


@nodes.command("list", epilog=example("headway nodes list --json"))
@as_json
@steering
def list_nodes(tables: "Steered", is_json: bool) -> None:
    """List nodes: how they are, and what they hold."""
    from headway.core.cluster import holder

    view = tables.look().view
    held: dict[str | None, list[str]] = {}
    for one in view.holdings.values():
        held.setdefault(holder(view, one), []).append(one.partition)
    rows = [
        NodeRow(
            name=node.name,
            address=node.address,
            state=node.state,
            left_ms=node.left_ms,
            partitions=held.get(node.name, []),
            version=node.version,
            started_ms=node.started_ms,
        )
        for node in view.nodes.values()
    ]
    if is_json:
        print_json(rows)
        return
    print_table(
        ("node", "address", "state", "lease", "partitions", "version", "started"),
        [
            (
                row.name,
                row.address,
                row.state,
                f"{row.left_ms / 1_000:.1f} s" if row.left_ms else None,
                " ".join(row.partitions) or None,
                row.version,
                moment(row.started_ms),
            )
            for row in rows
        ],
        empty="there is no node",
    )


@nodes.command(epilog=example("headway nodes drain rack-2"))
@click.argument("name")
@steering
def drain(tables: "Steered", name: str) -> None:
    """Have NAME give its partitions to the others, and take none until undrained."""
    tables.drain(name, is_on=True)
    say(f"{name} drains: its partitions go to the others one after another")


@nodes.command(epilog=example("headway nodes undrain rack-2"))
@click.argument("name")
@steering
def undrain(tables: "Steered", name: str) -> None:
    """Have NAME take partitions again."""
    tables.drain(name, is_on=False)
    say(f"{name} takes partitions again")
