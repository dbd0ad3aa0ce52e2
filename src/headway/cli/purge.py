"""`headway purge`: cancels what has not started."""

from typing import Any

import click

from headway.cli.asking import as_json
from headway.cli.following import of_operations, operate
from headway.cli.given import said
from headway.cli.refused import refusing
from headway.cli.remote import Remote, with_server
from headway.cli.sections import example


@click.command(epilog=example("headway purge mail --tenant acme --preview"))
@click.argument("queue")
@click.option("--tenant", help="Only its jobs.")
@of_operations
@with_server
@as_json
def purge(remote: Remote, queue: str, tenant: str | None, **options: Any) -> None:
    """Cancel all jobs of QUEUE that have not started.

    It asks before, and shows how far it is. Ctrl-C leaves it running.
    """
    whose = f" of {tenant}" if tenant else ""
    with refusing():
        operate(
            remote,
            (queue, "purge"),
            said([("tenant", tenant)]),
            question=f"Cancel all that has not started in {queue}{whose}?",
            options=options,
        )
