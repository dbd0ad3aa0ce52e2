"""`headway serve`: the partition as a service."""

import os
from pathlib import Path

import click

from headway.cli.database import database, database_options
from headway.cli.refused import Refused, refusing


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
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much it tells on stderr; debug tells of every request.",
)
def serve(
    *,
    data: Path,
    store: str | None,
    store_file: Path | None,
    host: str | None,
    port: int | None,
    certificate: Path | None,
    private_key: Path | None,
    allow_host: tuple[str, ...],
    log_level: str,
) -> None:
    """Serve the queue over HTTP.

    It prints its address when it answers. Without tokens it listens on this machine
    only, and refuses any other address. With a database, whichever server of a
    partition is started last serves it, and the one before it stops.
    """
    from headway.server.serving import Replaced, Unsafe
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
            store=None if address is None else Secret(address),
            certificate=certificate,
            private_key=private_key,
            hosts=allow_host,
            log_level=log_level,
            **values,  # type: ignore[arg-type]
        )
        try:
            run(settings, lambda address: click.echo(f"headway listens on {address}"))
        except (Unsafe, Replaced) as error:
            raise Refused(str(error)) from error
