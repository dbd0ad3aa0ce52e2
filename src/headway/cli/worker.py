"""`headway worker`: runs the jobs of an app."""

import logging
import os
import sys
from typing import Final

import click
import uvloop

from headway.cli.refused import Refused, refusing
from headway.cli.sections import example
from headway.worker import loading
from headway.worker.app import App
from headway.worker.log import start_log
from headway.worker.reloading import CHANGED_STATUS, Reloading, wait_for_change
from headway.worker.running import Worker, WorkerSettings
from headway.worker.signals import stopped_by_signals

log: Final = logging.getLogger("headway.worker")


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
@click.option(
    "--reload",
    "is_reloading",
    is_flag=True,
    help="For development: start anew when code that is loaded has changed.",
)
@click.option("--watched", "is_watched", is_flag=True, hidden=True)
@click.option("--parent", type=int, hidden=True)
def worker(
    *,
    place: str,
    queues: str | None,
    concurrency: int,
    processes: int,
    grace: str,
    lease: str,
    is_reloading: bool,
    is_watched: bool,
    parent: int | None,
) -> None:
    """Run the jobs of an app.

    MODULE:APP is where the app is, such as shop.jobs:app. SIGTERM stops it: no more jobs
    are taken, those that run have their grace, and the rest is given back. A second one
    ends it at once.
    """
    start_log(sys.stderr)
    with refusing():
        # Code that is about to be mended may not load yet; otherwise it is known at once.
        app = None if is_reloading else _loaded(place, is_watched)
        if app is None or processes > 1:
            from headway.worker.fleet import Fleet

            options = ["--concurrency", str(concurrency), "--grace", grace]
            if queues is not None:
                options += ["--queues", queues]
            if is_reloading:
                options.append("--watched")
            command = [sys.executable, "-m", "headway.cli.main", "worker", place]
            options += ["--lease", lease, "--parent", str(os.getpid())]
            Fleet([*command, *options], processes).run()
            return
        reloading = Reloading() if is_watched else None
        if reloading is not None:
            reloading.start()
        if parent is not None:
            from headway.worker.fleet import end_with

            end_with(parent)
        names = [name.strip() for name in (queues or "").split(",") if name.strip()]
        click.echo(f"headway worker {os.getpid()} runs {place}")
        log.info("the worker starts", extra={"app": place, "concurrency": concurrency})
        settings = WorkerSettings(
            queues=tuple(names), concurrency=concurrency, grace=grace, lease=lease
        )
        uvloop.run(_until_over(app.worker(settings)))
        app.close()
        log.info("the worker has ended", extra={"app": place})
        if reloading is not None and reloading.has_changed:
            sys.exit(CHANGED_STATUS)


async def _until_over(worker: Worker) -> None:
    """Signals that come when it is over change nothing: it ends, and says so with 0."""
    with stopped_by_signals(worker.stop, is_last=True):
        await worker.run()


def _loaded(place: str, is_watched: bool) -> App:
    """The app. Watched code that can't be loaded is waited for until it is changed."""
    try:
        return load(place)
    except Exception as error:
        if not is_watched:
            raise
        if isinstance(error, click.ClickException):
            log.error("%s", error.format_message())
        else:
            log.exception("%s can't be loaded", place)
        if not wait_for_change(error):
            raise
        sys.exit(CHANGED_STATUS)


def load(place: str) -> App:
    """The app at MODULE:APP, or a word of why there is none."""
    try:
        return loading.load(place)
    except loading.NoApp as error:
        raise Refused(str(error)) from error
