"""`headway demo`: a real server under load, to be looked at and played with."""

from pathlib import Path

import click

from headway.cli.refused import Refused, refusing
from headway.cli.sections import example


@click.command(
    epilog=example(
        "headway demo", "headway demo --quick", "headway demo --report report.html"
    )
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the store, which stays.  [default: one that is removed]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8080,
    show_default=True,
    help="Or the next that is free; 0 takes any.",
)
@click.option(
    "--seconds", type=click.FloatRange(1), help="End after so long.  [default: never]"
)
@click.option(
    "--quick",
    "is_quick",
    is_flag=True,
    help="Shorter promises and one overload: it is over in 30 seconds.",
)
@click.option(
    "--simulated", "is_simulated", is_flag=True, help="In virtual time, as a chart."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for that chart.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Then turn its history into tables, on Spark, and write a page about them.",
)
def demo(
    *,
    data: Path | None,
    port: int,
    seconds: float | None,
    is_quick: bool,
    is_simulated: bool,
    out: Path,
    report: Path | None,
) -> None:
    """Show a server under load: overloads, tenants, workers.

    A server with a store on disk, worker processes, and tenants that send jobs with
    three promises; from time to time they send more than the workers can do. All of it
    speaks the public API, so every command of `headway` can be tried on it meanwhile.
    Ctrl-C ends it.
    """
    with refusing():
        if is_simulated:
            from headway.cli.demo.simulated import show_simulated

            show_simulated(out)
            return
        if data is not None and not _fits(data):
            raise Refused(f"{data} is neither empty nor has it a store")
        after = None
        if report is not None:
            from headway.cli.demo.reported import reporting

            after = reporting(report)
        from headway.cli.demo.stage import perform

        perform(data, port=port, seconds=seconds, is_quick=is_quick, after=after)


def _fits(data: Path) -> bool:
    is_new = not data.exists() or not any(data.iterdir())
    return is_new or (data / "headway.db").is_file()
