"""A cluster as one of its nodes tells of it, for commands that need no database then."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import click
import msgspec

from headway.cli.database import database_options
from headway.cli.refused import Refused, refusing
from headway.cli.remote import Remote
from headway.cli.tables import opened
from headway.core.cluster import Holding, Node, View

if TYPE_CHECKING:
    from headway.store.postgres.cluster import Operator

Steered = Union["Operator", "OverHttp"]
"""The tables, or a node that tells of them."""


class Looked(msgspec.Struct, frozen=True):
    view: View


class OverHttp:
    """What a command needs of the tables, asked of a server."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def look(self) -> Looked:
        nodes = {
            one["name"]: Node(
                name=one["name"],
                address=one["address"],
                version=one["version"],
                is_alive=one["state"] != "gone",
                is_draining=one["state"] == "draining",
                is_leaving=one["state"] == "leaving",
                left_ms=one["lease_left_ms"] or 0,
                started_ms=one["started_ms"],
            )
            for one in self._remote.get("v1", "nodes")["nodes"]
        }
        holdings = {
            one["partition"]: Holding(
                partition=one["partition"],
                database=one["database"],
                node=one["node"],
                pinned=one["pinned"],
                wanted=one["wanted"],
                state=one["state"],
            )
            for one in self._partitions()
        }
        return Looked(View(nodes, holdings))

    def queues(self) -> dict[str, int]:
        return {one["partition"]: one["queues"] for one in self._partitions()}

    def drain(self, node: str, *, is_on: bool) -> None:
        self._remote.post("v1", "nodes", node, "drain" if is_on else "undrain")

    def move(self, partition: str, node: str | None) -> None:
        self._remote.post("v1", "partitions", partition, "move", body={"node": node})

    def _partitions(self) -> list[Any]:
        found: list[Any] = self._remote.get("v1", "partitions")["partitions"]
        return found


def steering(command: Callable[..., None]) -> Callable[..., None]:
    """Gives the command the tables, or a server that is named in their place."""

    @click.option(
        "--token",
        default=lambda: os.environ.get("HEADWAY_TOKEN"),
        show_default="$HEADWAY_TOKEN",
        help="With --server: a bearer token, where the server wants one.",
    )
    @click.option("--server", help="A node to ask in place of the database.")
    @database_options
    @wraps(command)
    def run(
        *,
        server: str | None,
        token: str | None,
        store: str | None,
        store_file: Path | None,
        **values: Any,
    ) -> None:
        with refusing(), _found(server, token, store, store_file) as found:
            command(found, **values)

    return run


@contextmanager
def _found(
    server: str | None, token: str | None, store: str | None, file: Path | None
) -> Iterator[Steered]:
    if server is None:
        with opened(store, file) as tables:
            yield tables
        return
    if store is not None or file is not None:
        raise Refused("give --server, or the database, and not both")
    with closing(Remote(server, token)) as remote:
        yield OverHttp(remote)
