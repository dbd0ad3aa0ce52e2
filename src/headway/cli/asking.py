"""What commands that ask a server share: its options, --json, and errors in a line."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click

from headway.cli.refused import refusing
from headway.cli.remote import Remote, with_server

Shown = Callable[[], None]
"""Prints an answer for people."""

as_json: Final = click.option(
    "--json", "is_json", is_flag=True, help="Print the server's JSON and nothing else."
)
paged: Final = click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    help="Rows to show at most.",
)


def asks(command: Callable[..., Shown]) -> Callable[..., None]:
    """Gives a command its server; prints the last answer as JSON, or for people."""

    @with_server
    @as_json
    @wraps(command)
    def called(remote: Remote, *args: Any, is_json: bool, **values: Any) -> None:
        with refusing():
            show = command(remote, *args, **values)
            if is_json:
                print_json(remote.text)
            else:
                show()

    return called


def print_json(text: bytes) -> None:
    """An answer as it is, but for control characters that JSON may leave unescaped."""
    shown = text.decode("utf-8", "replace") or "null"
    click.echo("".join(_escaped(c) if _is_control(c) else c for c in shown))


def _is_control(c: str) -> bool:
    """What JSON allows in a string, and a terminal might obey."""
    return not c.isprintable() and c not in " \n\r\t"


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in (0, 2)[: len(units) // 2]
    )
