"""`headway operation`: purges, redrives and discards, and how far they are."""

from typing import Any

import click

from headway.cli.asking import Shown, asks
from headway.cli.page import cell, moment, print_facts, print_table, say
from headway.cli.remote import Remote
from headway.cli.sections import example


@click.group()
def operation() -> None:
    """Look at operations on many jobs, or stop one."""


@operation.command("list", epilog=example("headway operation list"))
@asks
def list_(remote: Remote) -> Shown:
    """List operations that run, and the newest that have ended."""
    found = remote.get("v1", "operations")

    def show() -> None:
        print_table(
            ("id", "verb", "queue", "state", "done#", "total#", "started", "ended"),
            [
                (
                    str(one["id"]),
                    one["verb"],
                    one["queue"],
                    one["state"],
                    one["done"],
                    one["total"],
                    moment(one["started_ms"]),
                    moment(one["ended_ms"]),
                )
                for one in found["operations"]
            ],
            empty="there is no operation",
        )

    return show


@operation.command(epilog=example("headway operation show 3"))
@click.argument("number")
@asks
def show(remote: Remote, number: str) -> Shown:
    """Show one operation, and how far it is."""
    found = remote.get("v1", "operations", number)
    return lambda: _print(found)


@operation.command(epilog=example("headway operation stop 3"))
@click.argument("number")
@asks
def stop(remote: Remote, number: str) -> Shown:
    """Stop an operation; what it has done stays done."""
    found = remote.post("v1", "operations", number, "stop")
    return lambda: say(f"operation {number} is {found['state']}")


def _print(found: dict[str, Any]) -> None:
    rate = found["rate"]
    print_facts(
        [
            ("operation", str(found["id"])),
            ("verb", f"{found['verb']} {found['queue']}"),
            ("state", found["state"]),
            ("done", cell(found["done"])),
            ("moved on", found["failed"] or None),
            ("total", found["total"]),
            ("rate", None if rate is None else f"{rate:g}/s"),
            ("started", moment(found["started_ms"])),
            ("ended", moment(found["ended_ms"])),
        ]
    )
