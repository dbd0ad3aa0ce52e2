"""`headway tenant` and `headway kind`: rules for some of a queue's jobs."""

from typing import Any

import click

from headway.cli.asking import Shown, asks, paged
from headway.cli.given import said
from headway.cli.page import more, print_table, say
from headway.cli.refused import Refused
from headway.cli.remote import Remote
from headway.cli.sections import example

_held = click.option(
    "--pause/--resume", "paused", default=None, help="Start none of its jobs, or do."
)
_cap = click.option("--cap", type=int, help="Units it may hold at once; -1 lifts it.")


@click.group()
def tenant() -> None:
    """Rules for one tenant of a queue."""


@tenant.command("list", epilog=example("headway tenant list mail"))
@click.argument("queue")
@click.option("--after", metavar="TENANT", help="The next page of a long list.")
@paged
@asks
def list_tenants(remote: Remote, queue: str, **query: Any) -> Shown:
    """List tenants of QUEUE of which something was said."""
    found = remote.get("v1", "queues", queue, "tenants", **query)

    def show() -> None:
        print_table(
            ("tenant", "weight#", "cap#", "paused"),
            [
                (one["tenant"], f"{one['weight']:g}", one["cap"], one["is_paused"])
                for one in found["tenants"]
            ],
            empty="nothing was said of any tenant: each has weight 1",
        )
        more(found["next"])

    return show


@tenant.command("set", epilog=example("headway tenant set mail acme --weight 2"))
@click.argument("queue")
@click.argument("name", metavar="TENANT")
@click.option("--weight", type=float, help="Its share.")
@_held
@_cap
@asks
def set_tenant(remote: Remote, queue: str, name: str, **options: Any) -> Shown:
    """Change rules for one tenant; they hold for its backlog, too."""
    return _set(remote, (queue, "tenants", name), options)


@click.group()
def kind() -> None:
    """Rules for one kind of job in a queue."""


@kind.command("list", epilog=example("headway kind list mail"))
@click.argument("queue")
@click.option("--after", metavar="KIND", help="The next page of a long list.")
@paged
@asks
def list_kinds(remote: Remote, queue: str, **query: Any) -> Shown:
    """List kinds of QUEUE of which something was said."""
    found = remote.get("v1", "queues", queue, "kinds", **query)

    def show() -> None:
        print_table(
            ("kind", "cost#", "cap#", "paused"),
            [
                (one["kind"], one["cost"], one["cap"], one["is_paused"])
                for one in found["kinds"]
            ],
            empty="nothing was said of any kind",
        )
        more(found["next"])

    return show


@kind.command("set", epilog=example("headway kind set mail newsletter --cost 3"))
@click.argument("queue")
@click.argument("name", metavar="KIND")
@click.option("--cost", type=int, help="Units of limits that its jobs take.")
@_held
@_cap
@asks
def set_kind(remote: Remote, queue: str, name: str, **options: Any) -> Shown:
    """Change rules for one kind; they hold for its backlog, too."""
    return _set(remote, (queue, "kinds", name), options)


def _set(remote: Remote, place: tuple[str, str, str], options: dict[str, Any]) -> Shown:
    queue, _, name = place
    rules = said(options.items())
    if not rules:
        raise Refused("there is nothing to set; see --help")
    remote.put("v1", "queues", *place, body=rules)
    told = ", ".join(f"{rule} {_told(value)}" for rule, value in rules.items())
    return lambda: say(f"{name} of {queue}: {told}")


def _told(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"
