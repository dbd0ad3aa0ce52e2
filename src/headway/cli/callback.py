"""`headway callback`: partners who answer jobs by signed requests."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from headway.cli.given import duration
from headway.cli.refused import refusing
from headway.cli.sections import example

if TYPE_CHECKING:
    from headway.server.callbacks import Kept

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("headway-data"),
    show_default=True,
    help="Folder of the server.",
)
_given = click.option(
    "--secret-from",
    "given",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="A file with the partner's own secret; - is standard input.",
)


@click.group()
def callback() -> None:
    """Add, list, rotate and remove sources of signed callbacks.

    A partner without a token answers jobs by POST /v1/callbacks/NAME, signed as Standard
    Webhooks has it. A server that runs takes notice within a second or two.
    """


@callback.command(
    epilog=example(
        "headway callback add --name carrier --queue orders --key 'order-{value.order}'"
    )
)
@_data
@click.option("--name", required=True, help="Of the source; a part of its address.")
@click.option("--queue", required=True, help="Of the jobs that wait for replies.")
@click.option(
    "--key",
    required=True,
    metavar="EXPR",
    help="Where the key is: value.order, order-{value.order}, id or order-{url}.",
)
@click.option(
    "--value",
    default="value",
    show_default=True,
    metavar="EXPR",
    help="What the job gets as its reply.",
)
@_given
def add(
    *, data: Path, name: str, queue: str, key: str, value: str, given: Path | None
) -> None:
    """Make a source, and print its secret: this once.

    The signature covers the body and the message's id, and not the address: a key from
    the address ({url}) is as good as the partner's word that it was not changed.
    """
    from headway.server.callbacks import CallbackFile, Kept, Secret
    from headway.server.tokens import wall_ms

    with refusing():
        now_ms = wall_ms()
        secret = _secret(given)
        source = Kept(
            name=name,
            queue=queue,
            key=key,
            value=value,
            secrets=[Secret(secret, now_ms)],
            created_ms=now_ms,
        )
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        CallbackFile(data).add(source)
        _show(secret, given)


@callback.command(
    name="list", epilog=example("headway callback list --data headway-data")
)
@_data
@click.option("--json", "is_json", is_flag=True, help="As JSON.")
def list_(data: Path, is_json: bool) -> None:
    """Tell which sources there are. Their secrets are not told."""
    from headway.server.callbacks import CallbackFile
    from headway.server.tokens import wall_ms

    with refusing():
        sources = CallbackFile(data).read()
    now_ms = wall_ms()
    if is_json:
        click.echo(msgspec.json.encode([_facts(one, now_ms) for one in sources]))
        return
    width = max((len(one.name) for one in sources), default=0)
    for one in sources:
        made = f"{datetime.fromtimestamp(one.created_ms / 1_000, UTC):%Y-%m-%d}"
        count = _facts(one, now_ms)["secrets"]
        secrets = "1 secret" if count == 1 else f"{count} secrets"
        where = f"queue {one.queue}, key {one.key}, value {one.value}"
        click.echo(f"{one.name:{width}}  made {made}, {secrets}, {where}")


@callback.command(epilog=example("headway callback rotate carrier --keep 1d"))
@_data
@click.argument("name")
@click.option(
    "--keep",
    type=duration,
    default="1d",
    show_default=True,
    help="How long the secret before stays good; 0s ends it now.",
)
@_given
def rotate(data: Path, name: str, keep: int, given: Path | None) -> None:
    """Give a source another secret, and print it: this once.

    Two are good at a time at most: an older one ends now.
    """
    from headway.server.callbacks import CallbackFile
    from headway.server.tokens import wall_ms

    with refusing():
        secret = _secret(given)
        CallbackFile(data).rotate(name, secret, wall_ms(), keep)
        _show(secret, given)


@callback.command(epilog=example("headway callback remove carrier"))
@_data
@click.argument("name")
def remove(data: Path, name: str) -> None:
    """Take a source away: its partner is refused from now on."""
    from headway.server.callbacks import CallbackFile

    with refusing():
        CallbackFile(data).remove(name)
    click.echo(f"{name} is removed")


def _secret(given: Path | None) -> str:
    from headway.server.signatures import new_secret

    if given is None:
        return new_secret()
    if str(given) == "-":
        return sys.stdin.read(1_000).strip()
    with given.open() as file:
        return file.read(1_000).strip()


def _show(secret: str, given: Path | None) -> None:
    if given is None:
        click.echo(secret)


def _facts(source: "Kept", now_ms: int) -> dict[str, object]:
    good = [
        one for one in source.secrets if one.until_ms is None or now_ms < one.until_ms
    ]
    return {
        "name": source.name,
        "queue": source.queue,
        "key": source.key,
        "value": source.value,
        "secrets": len(good),
        "created_ms": source.created_ms,
    }
