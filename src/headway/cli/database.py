"""How a command is told which database holds the jobs, without telling anybody else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import click

from headway.cli.refused import Refused

VARIABLE: Final = "HEADWAY_STORE"
SCHEMES: Final = ("postgresql", "postgres")
BYTES_MAX: Final = 4_096
F = TypeVar("F", bound=Callable[..., Any])


def database_options(command: F) -> F:
    """`--store` and `--store-file`, to be read with `database`."""
    store = click.option(
        "--store",
        metavar="ADDRESS",
        help="A PostgreSQL database that holds the jobs, as postgresql://…; without a "
        f"password, which others on this machine could read: that goes into a file, or "
        f"into ${VARIABLE}.",
    )
    file = click.option(
        "--store-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="A file that holds the address, password and all.",
    )
    return store(file(command))


def database(store: str | None, file: Path | None) -> str | None:
    """The address of the database; None if there is none."""
    if store is not None and file is not None:
        raise Refused("the store is given by --store or by --store-file, not by both")
    if store is not None:
        _refuse_password(_checked(store, "--store"))
        return store
    if file is not None:
        with file.open("rb") as opened:
            text = opened.read(BYTES_MAX).decode("utf-8", "replace").strip()
        return _checked(text, str(file))
    found = os.environ.get(VARIABLE, "").strip()
    return _checked(found, f"${VARIABLE}") if found else None


def is_database(text: str) -> bool:
    """Whether it is an address, even where it was taken for a path."""
    return text.partition(":")[0] in SCHEMES


def _checked(text: str, where: str) -> str:
    if not is_database(text):
        raise Refused(f"{where} must begin with postgresql://")
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise Refused(
            "a store in PostgreSQL needs more packages: pip install 'headway[postgres]'"
        ) from error
    return text


def _refuse_password(address: str) -> None:
    try:
        parts = urlsplit(address)
        has_one = parts.password or "password" in parse_qs(parts.query)
    except ValueError:
        has_one = True
    if has_one:
        raise Refused(
            "a password on a command line can be read by others: set "
            f"${VARIABLE}, use --store-file, or keep it in ~/.pgpass"
        )
