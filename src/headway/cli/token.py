"""`headway token`: who may call a server, and for what."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from headway.cli.refused import refusing
from headway.core.durations import parse_ms
from headway.core.errors import BadValue

if TYPE_CHECKING:
    from headway.server.tokens import Kept

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headway-data"),
    show_default=True,
    help="Folder of the server.",
)


@click.group()
def token() -> None:
    """Make, list and revoke tokens for callers.

    A server that runs takes notice within a second or two. With the first token it is
    open to nobody else any more.
    """


@token.command()
@_data
@click.option("--name", required=True, help="Of the token; in the log for its bearer.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    help="VERB:QUEUE, VERB:BEGINNING* or VERB:*; or admin, for everything.",
)
@click.option("--expires", help='After how long it is refused, such as "30d".')
@click.option("--rate", help='How many requests it may make, such as "500/s".')
def create(
    data: Path,
    name: str,
    scopes: tuple[str, ...],
    expires: str | None,
    rate: str | None,
) -> None:
    """Make a token, and print its secret: this once, it is kept nowhere.

    Verbs are enqueue, work, reply, read, manage, operate and metrics.
    """
    from headway.server.rates import RequestRate
    from headway.server.scopes import parse_scopes
    from headway.server.tokens import TokenFile, wall_ms

    with refusing():
        now_ms = wall_ms()
        expires_ms = None
        if expires is not None:
            lasts_ms = parse_ms(expires, "expires")
            if lasts_ms == 0:
                raise BadValue("expires", expires, "must be above 0")
            expires_ms = now_ms + lasts_ms
        parsed = parse_scopes(scopes)
        allowed = None if rate is None else RequestRate.parse(rate)
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = TokenFile(data).add(name, parsed, now_ms, expires_ms, allowed)
        click.echo(made)


@token.command(name="list")
@_data
@click.option("--json", "is_json", is_flag=True, help="As JSON.")
def list_(data: Path, is_json: bool) -> None:
    """Tell which tokens there are. Secrets are not kept, and so not told."""
    from headway.server.tokens import TokenFile, wall_ms

    with refusing():
        tokens = TokenFile(data).read()
    if is_json:
        shown = [
            {
                "name": one.name,
                "scopes": one.scopes,
                "created_ms": one.created_ms,
                "expires_ms": one.expires_ms,
                "rate": one.rate,
            }
            for one in tokens
        ]
        click.echo(msgspec.json.encode(shown))
        return
    now_ms = wall_ms()
    width = max((len(one.name) for one in tokens), default=0)
    for one in tokens:
        rate = f", {one.rate}" if one.rate else ""
        life = f"{_life(one, now_ms)}{rate}"
        click.echo(f"{one.name:{width}}  {life}  {' '.join(one.scopes)}")


@token.command()
@_data
@click.argument("name")
def revoke(data: Path, name: str) -> None:
    """Take a token back: whoever has it is refused from now on."""
    from headway.server.tokens import TokenFile

    with refusing():
        left = TokenFile(data).revoke(name)
    click.echo(f"{name} is revoked")
    if not left:
        click.echo(
            "headway: no token is left: a server that is started now is open to "
            "everybody on its machine",
            err=True,
        )


def _life(token: "Kept", now_ms: int) -> str:
    created = f"made {_day(token.created_ms)}"
    if token.expires_ms is None:
        return f"{created}, does not expire"
    verb = "expired" if now_ms >= token.expires_ms else "expires"
    return f"{created}, {verb} {_day(token.expires_ms)}"


def _day(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d}"
