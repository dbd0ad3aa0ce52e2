"""`headway dead`: dead letters, and what becomes of them."""

from typing import Any, Final

import click

from headway.cli.asking import Shown, as_json, asks, paged
from headway.cli.following import of_operations, operate, print_sample
from headway.cli.given import date, said
from headway.cli.jobs import print_job
from headway.cli.page import more, note
from headway.cli.refused import Refused, refusing
from headway.cli.remote import Remote, with_server
from headway.cli.sections import example

_FILTERS: Final = (
    click.option("--tenant", help="Only its jobs."),
    click.option("--kind", help="Only jobs of this kind."),
    click.option("--reason", help='Of the last error: failed, "timed out", expired...'),
    click.option("--text", help="Contained in the last error."),
    click.option("--died-after", type=date, help="At this time or later."),
    click.option("--died-before", type=date, help="Before this time."),
)
_ids = click.option("--id", "ids", multiple=True, help="This job; repeat for others.")


def _filtered(command: Any) -> Any:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.group()
def dead() -> None:
    """Look at dead letters, put them back, or throw them away."""


@dead.command("list", epilog=example("headway dead list mail --text timeout"))
@click.argument("queue")
@_filtered
@click.option("--cursor", help="The next page of a long list.")
@paged
@asks
def list_(remote: Remote, queue: str, **query: Any) -> Shown:
    """List dead letters of QUEUE in the order of their death."""
    found = remote.get("v1", "queues", queue, "dead", **query)

    def show() -> None:
        print_sample(found["jobs"])
        if not found["jobs"]:
            note("no dead letter fits" if not found["next"] else "none on this page")
        more(found["next"], "--cursor")

    return show


@dead.command(epilog=example("headway dead show p1_17"))
@click.argument("id_", metavar="ID")
@asks
def show(remote: Remote, id_: str) -> Shown:
    """Show a dead letter with its payload and every error."""
    found = remote.get("v1", "jobs", id_)
    if found["state"] != "dead":
        raise Refused(f"{id_} is no dead letter: it is {found['state']}")
    return lambda: print_job(found)


@dead.command(
    epilog=example("headway dead redrive mail --text timeout --rate 100 --preview")
)
@click.argument("queue")
@_filtered
@_ids
@of_operations
@with_server
@as_json
def redrive(remote: Remote, queue: str, **options: Any) -> None:
    """Put dead letters of QUEUE back, with fresh attempts: those that all filters mean.

    Without a filter it asks before, for then it means all of them.
    """
    body = _body(options)
    question = None if body["filter"] else f"Put all dead letters of {queue} back?"
    with refusing():
        operate(
            remote,
            (queue, "dead", "redrive"),
            body,
            question=question,
            options=options,
        )


@dead.command(epilog=example("headway dead discard mail --reason expired --yes"))
@click.argument("queue")
@_filtered
@_ids
@of_operations
@with_server
@as_json
def discard(remote: Remote, queue: str, **options: Any) -> None:
    """Throw dead letters of QUEUE away: those that all filters mean."""
    body = _body(options)
    with refusing():
        operate(
            remote,
            (queue, "dead", "discard"),
            body,
            question=f"Throw dead letters of {queue} away for good?",
            options=options,
        )


def _body(options: dict[str, Any]) -> dict[str, Any]:
    names = ("tenant", "kind", "reason", "text", "died_after", "died_before", "ids")
    return {"filter": said((name, options[name]) for name in names)}
