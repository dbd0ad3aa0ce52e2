"""`headway verify`: looks through a store for what can't be right."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from headway.cli.database import is_database
from headway.cli.refused import Refused, refusing
from headway.cli.sections import example
from headway.store.errors import NotAStore, SchemaUnknown, StoreError, StoreFailed
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.place import owner_of

SHOWN: Final = 20
SHOWN_AS_JSON: Final = 1_000


class Report(msgspec.Struct):
    """What was looked at, and what is broken there."""

    file: str
    is_clean: bool
    queues: int
    jobs: int
    events: int
    problems: list[str]
    problems_count: int
    """All of them; the list may be cut off."""


@click.command(epilog=example("headway verify headway-data/headway.db --live"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "is_json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--quiet", "is_quiet", is_flag=True, help="No progress bar.")
@click.option(
    "--live",
    "is_live",
    is_flag=True,
    help="Check although a process works on FILE: its state of one moment. Until the "
    "check is over, the log of that process grows by all that it writes.",
)
def verify(file: Path, **options: Any) -> None:
    """Check a store: its file, its jobs, its rules and its history.

    Nothing is changed. The exit status is 0 if all is well, 1 if something is broken,
    and 2 if FILE can't be checked at all.
    """
    with refusing():
        if is_database(str(file)):
            raise Refused(
                "a database is checked by its own tools, such as pg_amcheck; "
                "`headway verify` checks files"
            )
        _refuse(file, is_live=options["is_live"])
        report = _report(file, is_quiet=options["is_quiet"] or options["is_json"])
    if options["is_json"]:
        click.echo(msgspec.json.encode(report).decode())
    else:
        _print(report)
    if not report.is_clean:
        raise click.exceptions.Exit(1)


def _refuse(path: Path, *, is_live: bool) -> None:
    if not path.is_file():
        raise Refused(f"{path}: no such file")
    owner = owner_of(path)
    if owner is not None and not is_live:
        raise Refused(
            f"{path} is in use by process {owner}; stop it, check a backup of the "
            "file, or say --live to check its state of this moment"
        )
    try:
        open_for_reader(path).close()
    except (NotAStore, SchemaUnknown) as error:
        raise Refused(str(error)) from error
    except StoreFailed:
        pass  # it is ours to say what is broken there
    except StoreError as error:
        raise Refused(str(error)) from error


def _report(path: Path, *, is_quiet: bool) -> Report:
    from headway.cli.watching import watching
    from headway.runtime.verify import Verification

    shown: list[str] = []
    count = 0
    with watching(is_quiet=is_quiet) as advance:
        verification = Verification(path, progress=advance)
        for problem in verification.problems():
            count += 1
            if len(shown) < SHOWN_AS_JSON:
                shown.append(problem)
    return Report(
        str(path),
        not count,
        verification.queues,
        verification.jobs,
        verification.events,
        shown,
        count,
    )


def _print(report: Report) -> None:
    click.echo(
        f"{report.file}: {_several(report.queues, 'queue')}, "
        f"{_several(report.jobs, 'job')} and {_several(report.events, 'event')} checked"
    )
    if report.is_clean:
        click.echo("all is well")
    for problem in report.problems[:SHOWN]:
        click.echo("".join(c if c.isprintable() else "\ufffd" for c in problem))
    if report.problems_count > SHOWN:
        click.echo(f"and {report.problems_count - SHOWN:,} more")


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
