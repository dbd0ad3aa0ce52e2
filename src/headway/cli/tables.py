"""Commands that read and change the tables of a cluster, in its database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headway.cli.database import VARIABLE, database, database_options
from headway.cli.refused import Refused, refusing

if TYPE_CHECKING:
    from headway.store.postgres.cluster import Operator

as_json = click.option(
    "--json", "is_json", is_flag=True, help="Print JSON and nothing else."
)


class Listing(click.Group):
    """A group that lists when it is not told what else to do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        helps = set(self.get_help_option_names(ctx))
        if not args or (args[0].startswith("-") and args[0] not in helps):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def operating(command: Callable[..., None]) -> Callable[..., None]:
    """Gives the command the tables, and tells in one line what is wrong with them."""

    @database_options
    @wraps(command)
    def run(store: str | None, store_file: Path | None, **values: Any) -> None:
        with refusing(), opened(store, store_file) as tables:
            command(tables, **values)

    return run


def print_json(value: object) -> None:
    click.echo(msgspec.json.encode(value).decode())


@contextmanager
def opened(store: str | None, file: Path | None) -> Iterator["Operator"]:
    address = database(store, file)
    if address is None:
        raise Refused(f"no database is given: --store, --store-file or ${VARIABLE}")
    from headway.store.postgres.cluster import Operator

    tables = Operator(address)
    try:
        yield tables
    finally:
        tables.close()
