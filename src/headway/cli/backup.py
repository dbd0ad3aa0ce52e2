"""`headway backup`: a copy of a store, whether or not a process works on it."""

from pathlib import Path

import click

from headway.cli.database import is_database
from headway.cli.refused import Refused, refusing
from headway.cli.sections import example


@click.command(epilog=example("headway backup headway-data/headway.db copy.db"))
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--quiet", "is_quiet", is_flag=True, help="No progress bar.")
def backup(file: Path, dest: Path, is_quiet: bool) -> None:
    """Copy the store in FILE to DEST, as it is at one moment.

    A process that works on FILE goes on; until the copy is done, its log grows by all
    that it writes. DEST appears whole or not at all, and is never overwritten. It is a
    store itself: `headway verify DEST` checks it.
    """
    from headway.cli.watching import watching
    from headway.store.errors import StoreError
    from headway.store.sqlite.backup import back_up

    with refusing():
        if is_database(str(file)):
            raise Refused(
                "a database is backed up by its own tools, such as pg_basebackup with "
                "its log, or pg_dump"
            )
        if not dest.parent.is_dir():
            raise Refused(f"{dest.parent}: no such folder")
        try:
            with watching(is_quiet=is_quiet) as advance:
                back_up(
                    file,
                    dest,
                    lambda left, total: advance("copied", total - left, total),
                )
        except StoreError as error:
            raise Refused(str(error)) from error
    click.echo(f"{dest}: {dest.stat().st_size:,} bytes")
