"""`headway migrate`: the tables of a database, made and brought up to date."""

from pathlib import Path

import click
import msgspec

from headway.cli.database import VARIABLE, database, database_options
from headway.cli.refused import Refused, refusing
from headway.cli.sections import example


class Migration(msgspec.Struct):
    """What was done, or would be."""

    database: str
    before: int
    after: int
    is_dry_run: bool


@click.command(epilog=example("headway migrate --store postgresql://db.internal/jobs"))
@database_options
@click.option("--dry-run", is_flag=True, help="Try all steps, and take them back.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON and nothing else.")
def migrate(
    store: str | None, store_file: Path | None, dry_run: bool, is_json: bool
) -> None:
    """Make the tables of a database, or bring them up to date.

    The database is PostgreSQL. Servers of the version before may go on meanwhile.
    Whoever else migrates is waited for. A database of a newer version is left alone.
    """
    with refusing():
        address = database(store, store_file)
        if address is None:
            raise Refused(f"no database is given: --store, --store-file or ${VARIABLE}")
        from headway.store.postgres.connections import shown
        from headway.store.postgres.migrations import migrate as take_steps

        before, after = take_steps(address, is_dry=dry_run)
        done = Migration(shown(address), before.number, after.number, dry_run)
    if is_json:
        click.echo(msgspec.json.encode(done).decode())
    elif done.before == done.after:
        click.echo(f"{done.database}: schema {done.after}, nothing to do")
    else:
        verb = "would go" if dry_run else "went"
        click.echo(f"{done.database}: {verb} from schema {done.before} to {done.after}")
