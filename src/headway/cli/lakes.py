"""What all commands on a lake have in common: its folder, and a Spark to work on it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from headway.cli.refused import Refused, refusing
from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.runtime.patience import give_way

R = TypeVar("R")
_EXTRA = {"deltalake", "pandas", "pyarrow", "pyspark"}

lake_option = click.option(
    "--lake",
    required=True,
    envvar="HEADWAY_LAKE",
    help="Folder or address of the tables.  [$HEADWAY_LAKE]",
)


def spark_options(command: Callable[..., R]) -> Callable[..., R]:
    """Adds --master and --conf, and gives the command what they say."""

    @click.option("--master", help="A Spark cluster; else this machine.")
    @click.option("--conf", multiple=True, help="A setting of Spark, NAME=VALUE.")
    @wraps(command)
    def called(
        *args: Any, master: str | None, conf: tuple[str, ...], **values: Any
    ) -> R:
        settings = {}
        for one in conf:
            name, found, value = one.partition("=")
            if not found or not name.startswith("spark."):
                raise Refused(f"--conf {one}: must be spark.NAME=VALUE")
            settings[name] = value
        return command(*args, spark={"master": master, "conf": settings}, **values)

    return called


def moment_s(text: str, option: str, newest_s: int) -> int:
    """Of a day, a moment (UTC unless it says otherwise), or a time before the newest."""
    try:
        return newest_s - parse_ms(text, option) // 1_000
    except BadValue:
        pass
    return int(day_or_moment(text, option).timestamp())


def day_or_moment(text: str, option: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(f"{option} {text}: not a day or moment") from error
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@contextmanager
def opened(
    spark: dict[str, Any], *, is_quiet: bool = False, is_patient: bool = True
) -> Iterator[Any]:
    """A session that ends with the command. What Spark itself says goes to a file.

    A patient one on this machine gives way to whatever else runs there.
    """
    from pyspark.sql import SparkSession

    from headway.spark.session import session

    if SparkSession.getActiveSession() is not None:
        # Somebody else's, who ends it, too.
        yield session()
        return
    log = Path(tempfile.gettempdir()) / f"headway-spark-{os.getpid()}.log"
    if not is_quiet:
        click.echo(f"starting Spark (its log: {log})", err=True)
    if is_patient and spark.get("master") is None:
        # A server on the same machine has jobs to start; tables can wait for that.
        give_way()
    with _stderr_to(log):
        made = session(**spark)
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def refusing_spark() -> Iterator[None]:
    """Errors of the pipeline, and of its way to the server, as one line each."""
    with refusing():
        try:
            yield
        except Exception as error:
            if isinstance(error, ImportError) and error.name in _EXTRA:
                text = f"{error.name} is missing: pip install 'headway[spark]'"
                raise Refused(text) from error
            if isinstance(error, _mendable()):
                raise Refused(str(error)) from error
            if type(error).__module__.startswith(("pyspark.", "py4j.")):
                from headway.spark.errors import failure_of

                raise Refused(str(failure_of(error))) from error
            raise


def _mendable() -> tuple[type[Exception], ...]:
    from headway.client.errors import ClientFailure
    from headway.spark.errors import PipelineError

    found: list[type[Exception]] = [PipelineError, ClientFailure]
    try:
        from deltalake.exceptions import DeltaError

        found.append(DeltaError)
    except ImportError:
        pass
    return tuple(found)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """For what is started meanwhile, and keeps it: our own stderr comes back."""
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
