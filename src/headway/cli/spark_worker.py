"""`headway spark-worker`: runs the jobs of a bulk queue on Spark."""

import signal
import time
from typing import Any

import click

from headway.cli.lakes import opened, refusing_spark, spark_options
from headway.cli.refused import Refused
from headway.cli.sections import example
from headway.cli.worker import load
from headway.core.durations import parse_ms


@click.command(
    "spark-worker",
    epilog=example(
        "headway spark-worker shop.jobs:app --queue bulk --once",
        "headway spark-worker shop.jobs:app --queue bulk --master spark://host:7077",
    ),
)
@click.argument("place", metavar="MODULE:APP")
@click.option("--queue", required=True, help="The queue.")
@click.option(
    "--server",
    envvar="HEADWAY_SERVER",
    help="The server to ask.  [default: $HEADWAY_SERVER, or as the app says]",
)
@click.option(
    "--token",
    envvar="HEADWAY_TOKEN",
    help="A bearer token for that server.  [default: $HEADWAY_TOKEN]",
)
@spark_options
@click.option("--once", "is_once", is_flag=True, help="End when nothing is ready.")
@click.option("--every", help="How long to wait when nothing is ready.  [default: 1s]")
@click.option(
    "--batch",
    type=click.IntRange(1, 100_000),
    default=1_000,
    show_default=True,
    help="Jobs in one claim, at most.",
)
@click.option(
    "--share",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    help="Jobs in one task, at most.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Jobs at once, in each task.",
)
@click.option(
    "--claims",
    "folder",
    default="claims",
    show_default=True,
    help="Folder or address where claims are written down.",
)
@click.option(
    "--lease",
    default="5m",
    show_default=True,
    help="After how long the jobs of a driver that died are another's.",
)
@click.option(
    "--grace",
    default="28s",
    show_default=True,
    help="How long tasks may go on after SIGTERM.",
)
@click.option("--quiet", "is_quiet", is_flag=True, help="Tell only how it ended.")
def spark_worker(
    *,
    place: str,
    is_once: bool,
    every: str | None,
    lease: str,
    grace: str,
    folder: str,
    is_quiet: bool,
    spark: dict[str, Any],
    **given: Any,
) -> None:
    """Run the jobs of one queue on Spark, claim by claim.

    MODULE:APP is where the app is, for this process and for executors. It is for queues
    with much work and little hurry: a claim takes half a second at least. SIGTERM stops
    it: no more is claimed, tasks have their grace, and the rest is given back.
    """
    if is_once and every is not None:
        raise Refused("--once and --every exclude each other")

    def tell(text: str) -> None:
        if not is_quiet:
            click.echo(text, err=True)

    with refusing_spark():
        from headway.spark.fleet.claims import Claims
        from headway.spark.fleet.driver import (
            Fleet,
            FleetSettings,
            Stop,
            client_of,
            told,
        )

        app = load(place)
        settings = FleetSettings(
            app=place,
            queue=given["queue"],
            url=given["server"],
            token=given["token"],
            batch=given["batch"],
            share=given["share"],
            concurrency=given["concurrency"],
            lease_ms=_duration_ms(lease, "lease"),
            grace_ms=parse_ms(grace, "grace"),
            every_s=None if is_once else parse_ms(every or "1s", "every") / 1_000,
        )
        claims = Claims(folder, settings.queue)
        client_of(app, settings).close()  # what it refuses is known before Spark starts
        stop = Stop()
        _listen(stop)
        with opened(spark, is_quiet=is_quiet, is_patient=False) as session:
            # Spark has taken SIGINT for itself.
            _listen(stop)
            began_s = time.monotonic()
            fleet = Fleet(session, app, claims, settings, tell)
            fleet.run(stop)
            seconds = time.monotonic() - began_s
        click.echo(f"{settings.queue}: {told(fleet.claimed, fleet.counted, seconds)}")


def _duration_ms(text: str, key: str) -> int:
    found = parse_ms(text, key)
    if found < 1_000:
        raise Refused(f"--{key} {text}: at least a second")
    return found


def _listen(stop: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
