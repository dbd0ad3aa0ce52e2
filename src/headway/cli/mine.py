"""`headway mine`: dead letters in a lake, what they died of, and the way back."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click

from headway.cli.given import date
from headway.cli.lakes import lake_option, opened, refusing_spark, spark_options
from headway.cli.page import moment, note, print_table, say, several
from headway.cli.refused import Refused
from headway.cli.remote import server_given
from headway.cli.sections import example

Command = TypeVar("Command", bound=Callable[..., Any])
_FILTERS: Final = (
    click.option("--queue", help="Only of this queue."),
    click.option("--kind", help="Only jobs of this kind."),
    click.option("--tenant", help="Only its jobs."),
    click.option("--error", help="Contained in the error's line, as groups shows it."),
    click.option("--since", type=date, help="Died at this time or later."),
    click.option("--until", type=date, help="Died before this time."),
)


def _filtered(command: Any) -> Any:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def _limit(most: int, default: int, told: str) -> Callable[[Command], Command]:
    return click.option(
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help=told,
    )


@click.group()
def mine() -> None:
    """Look at the dead letters of a lake, and put some of them back.

    The lake is what `headway pipeline` writes. It needs the extra `headway[spark]`.
    """


@mine.command(
    epilog=example("headway mine groups --lake lake --since 2026-11-01T00:00")
)
@lake_option
@_filtered
@_limit(1_000, 50, "Groups to show at most.")
@spark_options
def groups(*, lake: str, limit: int, spark: dict[str, Any], **given: Any) -> None:
    """Show what jobs died of: errors that differ in numbers only are one."""
    with refusing_spark(), opened(spark) as session:
        from headway.spark.lake.lake import Lake
        from headway.spark.mining import Mine

        found = Mine(session, Lake(lake)).groups(_selection(given), limit)
    heads = ("jobs#", "redriven#", "tenants#", "queue", "kind", "error", "first")
    rows = [
        (
            one.jobs,
            one.redriven,
            one.tenants,
            one.queue,
            one.kind or None,
            _error(one.reason, one.error),
            _moment(one.first_at),
            _moment(one.last_at),
            one.sample,
        )
        for one in found
    ]
    print_table((*heads, "last", "such as"), rows, empty="no dead letter fits")
    if len(found) == limit:
        note("there may be more groups: --limit")


@mine.command(
    epilog=example('headway mine preview --lake lake --queue mail --error "timed out"')
)
@lake_option
@_filtered
@_limit(10_000, 100, "Jobs to show at most.")
@spark_options
def preview(*, lake: str, limit: int, spark: dict[str, Any], **given: Any) -> None:
    """Show the jobs that a selection holds, as far as the lake knows."""
    with refusing_spark(), opened(spark) as session:
        from headway.spark.lake.lake import Lake
        from headway.spark.mining import Mine

        letters = Mine(session, Lake(lake)).letters(_selection(given), limit)
        rows = [
            (
                one.id,
                one.queue,
                one.kind or None,
                one.tenant or None,
                _moment(one.ended_at),
                _error(one.reason, one.error),
            )
            for one in letters
        ]
    heads = ("id", "queue", "kind", "tenant", "died", "error")
    print_table(heads, rows, empty="no dead letter fits")
    if len(rows) == limit:
        note("there may be more jobs: --limit")


@mine.command(
    epilog=example(
        'headway mine redrive --lake lake --queue mail --error "timed out"',
        'headway mine redrive --lake lake --queue mail --error "timed out" --yes',
    )
)
@lake_option
@server_given
@_filtered
@_limit(1_000_000, 1_000, "Jobs to put back at most, the oldest first.")
@click.option(
    "--rate", type=click.FloatRange(0.001, 1_000_000), help="Jobs a second at most."
)
@click.option("--yes", "is_sure", is_flag=True, help="Do it; else nothing changes.")
@spark_options
def redrive(
    *,
    lake: str,
    server: str,
    token: str | None,
    limit: int,
    rate: float | None,
    is_sure: bool,
    spark: dict[str, Any],
    **given: Any,
) -> None:
    """Put the jobs of a selection back, with fresh attempts.

    Without --yes nothing changes, and it tells what would. The server is asked which of
    the jobs are still dead; the others are left alone, so it may be repeated.
    """
    with refusing_spark(), opened(spark) as session:
        from headway.client.blocking import Client
        from headway.spark.lake.lake import Lake
        from headway.spark.mining import Mine

        found = Mine(session, Lake(lake))
        letters = found.letters(_selection(given), limit)
        with closing(Client(server, token)) as client:
            counted = found.redrive(
                client, letters, rate=rate, is_dry=not is_sure, tell=note
            )
    told = "were put back" if is_sure else "would be put back"
    say(f"of {several(counted.chosen, 'job')} {counted.back:,} {told}")
    if counted.moved_on:
        note(f"{counted.moved_on:,} are not dead any more, or died again since")
    if counted.elsewhere:
        note(f"{counted.elsewhere:,} are of another server")
    if counted.back and not is_sure:
        note("nothing was done: --yes does it")


def _selection(given: dict[str, Any]) -> Any:
    from headway.spark.mining import Selection

    since_ms, until_ms = given.pop("since"), given.pop("until")
    if since_ms is not None and until_ms is not None and since_ms >= until_ms:
        raise Refused("--since must be before --until")
    return Selection(**given, since_ms=since_ms, until_ms=until_ms)


def _error(reason: str, line: str) -> str:
    return ": ".join(filter(None, (reason, line)))


def _moment(at: datetime) -> str | None:
    """Spark tells times without their zone, which is this machine's."""
    return moment(round(at.astimezone(UTC).timestamp() * 1_000))
