"""After the demonstration: its history to tables, and a page about them."""

import sys
from functools import partial
from pathlib import Path
from typing import Final

import click

from headway.cli.demo.stage import After
from headway.cli.lakes import opened, refusing_spark
from headway.cli.pipeline import telling
from headway.cli.report_page import check_out, write_page

TITLE: Final = "A demonstration of Headway"
LAKE: Final = "lake"


def reporting(out: Path) -> After:
    """Refuses at once what would fail when the show is over."""
    check_out(out)
    with refusing_spark():
        import deltalake  # noqa: F401
        import pyspark  # noqa: F401
    return partial(_report, out)


def _report(out: Path, url: str, folder: Path) -> None:
    from headway.spark.lake.lake import Lake
    from headway.spark.pipeline.run import Pipeline, Settings
    from headway.spark.report.source import Span

    lake = str(folder / LAKE)
    with (
        refusing_spark(),
        opened({"master": None, "conf": {}}) as session,
        telling(False) as tell,
    ):
        step = tell.step if sys.stderr.isatty() else _line
        click.echo("history to tables …")
        settings = Settings(url=url)
        record = Pipeline(session, Lake(lake), settings, step).run()
        click.echo(f"{record.events:,} events are in the tables; tables to a page …")
        size = write_page(session, lake, out, Span(), TITLE, tell=step)
    click.echo(f"The report is in {out.absolute()} ({size:,} bytes).")


def _line(step: str) -> None:
    click.echo(f"  {step}")
