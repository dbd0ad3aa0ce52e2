"""`headway report`: what happened, as one page."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.lakes import (
    lake_option,
    moment_s,
    opened,
    refusing_spark,
    spark_options,
)
from headway.cli.pipeline import telling
from headway.cli.refused import Refused
from headway.cli.sections import example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headway.spark.pipeline.batch import Tell
    from headway.spark.report.source import Span


@click.command(
    epilog=example(
        "headway report --lake lake --out report.html",
        "headway report --lake lake --out week.html --from 7d --title 'Last week'",
    )
)
@lake_option
@spark_options
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file to write: HTML that needs nothing else.",
)
@click.option(
    "--from",
    "since",
    help="A day or a moment in UTC, or so long before the newest event: 7d, 12h.",
)
@click.option("--to", "before", help="The same, for the end.")
@click.option("--title", help="Stands at its top.")
@click.option("--quiet", "is_quiet", is_flag=True, help="Tell only how it ended.")
def report(
    *,
    lake: str,
    out: Path,
    since: str | None,
    before: str | None,
    title: str | None,
    is_quiet: bool,
    spark: dict[str, Any],
) -> None:
    """Write a page about promises, tenants, failures and costs.

    It is made from the tables of `headway pipeline`, and can be mailed, printed and put
    on any web server: it has no scripts and asks for nothing.
    """
    check_out(out)
    with refusing_spark():
        span = spanned(lake, since, before)
        with opened(spark, is_quiet=is_quiet) as session, telling(is_quiet) as tell:
            began = time.monotonic()
            size = write_page(session, lake, out, span, title, tell=tell.step)
    seconds = time.monotonic() - began
    click.echo(f"{out}: {size:,} bytes in {seconds:.1f} s")


def check_out(out: Path) -> None:
    if not out.absolute().parent.is_dir():
        raise Refused(f"{out}: there is no such folder")


def spanned(lake: str, since: str | None, before: str | None) -> "Span":
    """What the options say; raises NoLake before Spark is started in vain."""
    from headway.spark.lake.lake import Lake
    from headway.spark.report.source import Span

    newest_s = Lake(lake).published().at_ms // 1_000
    since_s = None if since is None else moment_s(since, "--from", newest_s)
    before_s = None if before is None else moment_s(before, "--to", newest_s)
    if since_s is not None and before_s is not None and since_s >= before_s:
        raise Refused("--from must be before --to")
    return Span(since_s, before_s)


def write_page(
    session: "SparkSession",
    lake: str,
    out: Path,
    span: "Span",
    title: str | None = None,
    *,
    tell: "Tell" = lambda _: None,
) -> int:
    """All of it or nothing is written; answers how many bytes."""
    from headway.spark.lake.lake import Lake
    from headway.spark.report.figures import gather
    from headway.spark.report.page import page
    from headway.spark.report.source import of_lake

    made = Lake(lake)
    figures = gather(of_lake(session, made), made.published(), span, tell)
    text = page(figures, title).encode()
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        draft.write_bytes(text)
        draft.replace(out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise Refused(f"--out {out}: {error.strerror}") from error
    return len(text)
