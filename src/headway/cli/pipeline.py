"""`headway pipeline`: history to tables, on Spark."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from headway.cli.lakes import (
    day_or_moment,
    lake_option,
    opened,
    refusing_spark,
    spark_options,
)
from headway.cli.page import moment
from headway.cli.refused import Refused
from headway.cli.remote import server_given
from headway.cli.sections import example
from headway.core.durations import parse_ms

if TYPE_CHECKING:
    from headway.spark.lake.published import Published


@click.group()
def pipeline() -> None:
    """Turn a server's history into tables, on Spark.

    The tables are open Delta tables under one folder, the lake. They need the extra
    `headway[spark]`.
    """


@pipeline.command(
    epilog=example(
        "headway pipeline run --lake lake --once",
        "headway pipeline run --lake lake --every 1m",
    )
)
@lake_option
@server_given
@spark_options
@click.option(
    "--once", "is_once", is_flag=True, help="End when all is read.  [default]"
)
@click.option("--every", help="Go on for good, and look for more so often: 30s, 5m.")
@click.option(
    "--batch",
    "events",
    type=click.IntRange(1_000),
    default=8_000_000,
    show_default=True,
    help="Events that are published at one go; up to an eighth more if nothing is "
    "left then.",
)
@click.option(
    "--reader",
    default="pipeline",
    show_default=True,
    help="Name by which the server keeps history for this lake.",
)
@click.option("--quiet", "is_quiet", is_flag=True, help="Tell only how it ended.")
def run(
    *,
    lake: str,
    server: str,
    token: str | None,
    is_once: bool,
    every: str | None,
    events: int,
    reader: str,
    is_quiet: bool,
    spark: dict[str, Any],
) -> None:
    """Read what happened since the last run, and publish it.

    A run that was killed, at whatever point, leaves nothing behind that a reader could
    see; the next one goes on where the last batch was published.
    """
    if is_once and every is not None:
        raise Refused("--once and --every exclude each other")
    with refusing_spark():
        every_s = None if every is None else parse_ms(every, "every") / 1_000
        with opened(spark, is_quiet=is_quiet) as session, telling(is_quiet) as tell:
            from headway.spark.lake.lake import Lake
            from headway.spark.pipeline.run import Pipeline, Settings

            settings = Settings(
                url=server,
                token=token,
                reader=reader,
                events_per_batch=events,
                every_s=every_s,
            )
            began = time.monotonic()
            made = Pipeline(session, Lake(lake), settings, tell.step, tell.published)
            start = made.record.events
            record = made.run()
    seconds = time.monotonic() - began
    told = record.events - start
    click.echo(
        f"{lake}: {told:,} events in {seconds:.1f} s, {told / seconds:,.0f}/s; "
        f"batch {record.batch}, up to {moment(record.at_ms) or 'nothing yet'}"
    )


@pipeline.command(
    epilog=example("headway pipeline rebuild --lake lake --from 2026-11-01")
)
@lake_option
@spark_options
@click.option(
    "--from",
    "since",
    required=True,
    help="A day, or a moment: 2026-11-01, 2026-11-01T12:00.",
)
@click.option("--quiet", "is_quiet", is_flag=True, help="Tell only how it ended.")
def rebuild(*, lake: str, since: str, is_quiet: bool, spark: dict[str, Any]) -> None:
    """Make silver and gold anew from bronze, from a day on.

    It is published once, when all of it is done. Where the state of that day is kept no
    more, everything is made anew.
    """
    at = day_or_moment(since, "--from")
    with (
        refusing_spark(),
        opened(spark, is_quiet=is_quiet) as session,
        telling(is_quiet) as tell,
    ):
        from headway.spark.lake.lake import Lake
        from headway.spark.pipeline.upkeep import rebuild as again

        record = again(session, Lake(lake), int(at.timestamp() * 1_000), tell.step)
    click.echo(f"{lake}: batch {record.batch}, {record.events:,} events in all")


@pipeline.command(epilog=example("headway pipeline compact --lake lake --keep 48h"))
@lake_option
@spark_options
@click.option(
    "--keep",
    default="7d",
    show_default=True,
    help="How far back batches can still be read or rebuilt from.",
)
@click.option("--quiet", "is_quiet", is_flag=True, help="Tell only how it ended.")
def compact(*, lake: str, keep: str, is_quiet: bool, spark: dict[str, Any]) -> None:
    """Join small files, and remove those that nobody needs any more."""
    with refusing_spark():
        keep_hours = parse_ms(keep, "keep") // 3_600_000
        with opened(spark, is_quiet=is_quiet) as session, telling(is_quiet) as tell:
            from headway.spark.lake.lake import Lake
            from headway.spark.pipeline.upkeep import compact as join
            from headway.spark.pipeline.upkeep import vacuum

            made = Lake(lake)
            record = join(session, made, tell.step)
            tell.step("vacuum")
            removed = vacuum(made, keep_hours)
    click.echo(f"{lake}: batch {record.batch}, {sum(removed.values())} files removed")


@pipeline.command(epilog=example("headway pipeline status --lake lake"))
@lake_option
def status(*, lake: str) -> None:
    """Show what is published, without Spark."""
    with refusing_spark():
        from headway.spark.lake.lake import Lake

        made = Lake(lake)
        record = made.published()
        click.echo(f"batch      {record.batch}")
        click.echo(f"events     {record.events:,}")
        click.echo(f"up to      {moment(record.at_ms)}")
        for partition, before in record.vector.items():
            click.echo(f"partition  {partition}: events before {before:,}")
        for name, table in made.tables.items():
            version = record.versions.get(name)
            files = [] if version is None else table.files(version)
            size = sum(one.size for one in files)
            click.echo(f"  {name:<22} {len(files):>5} files {size:>14,} bytes")


class Telling:
    """What the pipeline does, on a line that changes, and a line for each batch."""

    def __init__(self, console: Any, status: Any, *, is_quiet: bool = False) -> None:
        self._console = console
        self._status = status
        self._is_quiet = is_quiet
        self._began = time.monotonic()
        self._events: int | None = None

    def step(self, step: str) -> None:
        if self._status is not None:
            self._status.update(f"{step} …")

    def published(self, record: "Published") -> None:
        if self._is_quiet:
            return
        seconds = time.monotonic() - self._began
        self._began = time.monotonic()
        before, self._events = self._events, record.events
        told = f"batch {record.batch}: {record.events:,} events in all, {seconds:.1f} s"
        if before is not None:
            told += f", {(record.events - before) / seconds:,.0f}/s"
        self._console.print(told, highlight=False)


@contextmanager
def telling(is_quiet: bool) -> Iterator[Telling]:
    from rich.console import Console

    console = Console(stderr=True)
    if is_quiet or not console.is_terminal:
        # A log has the batches, too, though no line that changes.
        yield Telling(console, None, is_quiet=is_quiet)
        return
    with console.status("start …") as status:
        yield Telling(console, status)
