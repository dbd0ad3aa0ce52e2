"""`headway worker`: runs the jobs of an app."""

import importlib
import logging
import os
import sys

import click

from headway.cli.refused import Refused, refusing
from headway.cli.sections import example
from headway.worker.app import App


@click.command(epilog=example("headway worker shop.jobs:app --processes 4"))
@click.argument("place", metavar="MODULE:APP")
@click.option("--queues", help="Names, with commas between.  [default: all of the app]")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Jobs at once, in each process.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 512),
    default=1,
    show_default=True,
    help="Worker processes; one that dies is started again.",
)
@click.option(
    "--grace",
    default="28s",
    show_default=True,
    help="How long running jobs may go on after SIGTERM.",
)
@click.option(
    "--lease",
    default="30s",
    show_default=True,
    help="After how long the jobs of a worker that died are another's.",
)
def worker(
    *,
    place: str,
    queues: str | None,
    concurrency: int,
    processes: int,
    grace: str,
    lease: str,
) -> None:
    """Run the jobs of an app.

    MODULE:APP is where the app is, such as shop.jobs:app. SIGTERM stops it: no more jobs
    are taken, those that run have their grace, and the rest is given back. A second one
    ends it at once.
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    with refusing():
        app = load(place)
        if processes > 1:
            from headway.worker.fleet import Fleet

            options = ["--concurrency", str(concurrency), "--grace", grace]
            if queues is not None:
                options += ["--queues", queues]
            command = [sys.executable, "-m", "headway.cli.main", "worker", place]
            Fleet([*command, *options, "--lease", lease], processes).run()
            return
        names = [name.strip() for name in (queues or "").split(",") if name.strip()]
        click.echo(f"headway worker {os.getpid()} runs {place}")
        app.work(*names, concurrency=concurrency, grace=grace, lease=lease)
        app.close()


def load(place: str) -> App:
    """The app at MODULE:APP, found from the current folder as well."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise Refused(f"{place}: an app is named as MODULE:APP")
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise Refused(f"{place}: there is no module {error.name}") from error
    app = getattr(found, name, None)
    if not isinstance(app, App):
        raise Refused(f"{place}: there is no headway.App of this name")
    return app
