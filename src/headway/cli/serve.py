"""`headway serve`: the partition as a service."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.database import database, database_options
from headway.cli.given import duration, pair
from headway.cli.refused import Refused, refusing

if TYPE_CHECKING:
    from headway.runtime.throttler import Throttling
    from headway.server.settings import Member


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headway-data"),
    show_default=True,
    help="Folder for the store and the server's keys; with a database, for its keys, "
    "its search index and writes that are being published.",
)
@database_options
@click.option(
    "--writes",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for writes that are being published, if not --data: nodes may share "
    "one.",
)
@click.option(
    "--apart",
    is_flag=True,
    help="Own the store in a process of its own: on two cores or more it does more jobs "
    "in a second.",
)
@click.option(
    "--throttler",
    "throttlers",
    metavar="QUEUE=MODULE:CALLABLE",
    type=pair,
    multiple=True,
    help="A function that is asked before a job of this queue starts.",
)
@click.option(
    "--throttler-timeout",
    type=duration,
    default="1s",
    show_default=True,
    help="How long one verdict may take before the function is killed.",
)
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Port; 0 takes any that is free.  [default: $HTTP_PORT or 8080]",
)
@click.option("--certificate", type=click.Path(path_type=Path), help="For TLS, as PEM.")
@click.option("--private-key", type=click.Path(path_type=Path), help="For TLS, as PEM.")
@click.option("--allow-host", multiple=True, help="Another name it may be called by.")
@click.option(
    "--node",
    metavar="NAME",
    help="Be a node of this name in the cluster that lives in the database.",
)
@click.option(
    "--advertise",
    metavar="URL",
    help="Where other nodes reach this one.  [default: where it listens]",
)
@click.option(
    "--peer-ca",
    type=click.Path(path_type=Path),
    help="Certificates, as PEM, by which other nodes are trusted.  [default: the "
    "system's]",
)
@click.option(
    "--lease",
    type=duration,
    default="10s",
    show_default=True,
    help="How long a node holds its partitions after it was last heard of.",
)
@click.option(
    "--partitions",
    type=click.IntRange(1, 1_024),
    default=1,
    show_default=True,
    help="How many the first node of a cluster begins with.",
)
@click.option(
    "--database",
    "databases",
    metavar="NAME=FILE",
    type=pair,
    multiple=True,
    help="Another database that holds partitions: its name, and a file that holds its "
    "address.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much it tells on stderr; debug tells of every request.",
)
def serve(
    *,
    data: Path,
    writes: Path | None,
    store: str | None,
    store_file: Path | None,
    apart: bool,
    host: str | None,
    port: int | None,
    certificate: Path | None,
    private_key: Path | None,
    allow_host: tuple[str, ...],
    log_level: str,
    **others: Any,
) -> None:
    """Serve the queue over HTTP.

    It prints its address when it answers. Without tokens it listens on this machine
    only, and refuses any other address. With a database, whichever server of a
    partition is started last serves it, and the one before it stops; nodes share the
    partitions of a database instead.
    """
    from headway.server.serving import Ousted, Replaced, Unsafe
    from headway.server.serving import serve as run
    from headway.server.settings import Secret, Settings, from_environment

    with refusing():
        values = from_environment(os.environ)
        address = database(store, store_file)
        if host is not None:
            values["host"] = host
        if port is not None:
            values["port"] = port
        settings = Settings(
            data=data,
            writes=writes,
            is_apart=apart,
            store=None if address is None else Secret(address),
            certificate=certificate,
            private_key=private_key,
            hosts=allow_host,
            log_level=log_level,
            throttling=_throttling(
                others.pop("throttlers"), others.pop("throttler_timeout")
            ),
            member=_member(**others),
            **values,  # type: ignore[arg-type]
        )
        try:
            run(settings, lambda address: click.echo(f"headway listens on {address}"))
        except (Unsafe, Replaced, Ousted) as error:
            raise Refused(str(error)) from error


def _throttling(
    throttlers: tuple[tuple[str, str], ...], timeout_ms: int
) -> "Throttling":
    from headway.runtime.throttler import throttling_of

    places = dict(throttlers)
    if len(places) < len(throttlers):
        raise Refused("a queue has one --throttler at most")
    return throttling_of(places, timeout_ms)


def _member(
    *,
    node: str | None,
    advertise: str | None,
    lease: int,
    partitions: int,
    databases: tuple[tuple[str, str], ...],
    peer_ca: Path | None,
) -> "Member | None":
    from headway.server.settings import Member, Secret

    if node is None:
        if advertise is not None or databases or peer_ca is not None:
            text = "--advertise, --database and --peer-ca are for a node"
            raise Refused(f"{text}: give it a --node")
        return None
    others = {}
    for name, file in databases:
        address = database(None, Path(file))
        assert address is not None
        others[name] = Secret(address)
    return Member(
        name=node,
        advertise=advertise,
        lease_ms=lease,
        partitions=partitions,
        databases=others,
        peer_ca=peer_ca,
    )
