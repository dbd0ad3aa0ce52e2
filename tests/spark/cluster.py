"""A standalone Spark cluster on this machine: a master and some workers, as processes."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from headway.spark.session import java_home

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(pyspark.__file__).parent
PATIENCE_S = 180.0
HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""A task is never tried twice at a time on one host, and hosts are known by name."""


def environment() -> dict[str, str]:
    """What a process of Spark needs to know, wherever it runs."""
    path = [str(ROOT / "src"), str(ROOT)]
    return {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path),
    }


class Part:
    """A process of the cluster, and what it says."""

    def __init__(self, log: Path, *command: str) -> None:
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), *command],
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment(),
            )

    def until(self, pattern: str) -> str:
        """The first group of what it has to say before it is ready."""
        until_s = time.monotonic() + PATIENCE_S
        while True:
            said = self._log.read_text(errors="replace")
            found = re.search(pattern, said)
            if found is not None:
                return found[1]
            assert self._process.poll() is None, said[-2_000:]
            assert time.monotonic() < until_s, said[-2_000:]
            threading.Event().wait(0.1)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[str]:
    """The address of a master with so many workers of one core each."""
    folder.mkdir(parents=True, exist_ok=True)
    parts: list[Part] = []
    try:
        master = Part(
            folder / "master.log",
            "org.apache.spark.deploy.master.Master",
            *("--host", HOST, "--port", "0", "--webui-port", "0"),
        )
        parts.append(master)
        address = master.until(r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            worker = Part(
                folder / f"worker-{number}.log",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", NAMES[number % 2], "--port", "0", "--webui-port", "0"),
                *("--cores", "1", "--memory", memory),
                *("--work-dir", str(folder / f"work-{number}"), address),
            )
            parts.append(worker)
            worker.until(r"Successfully registered with master (\S+)")
        yield address
    finally:
        for part in reversed(parts):
            part.stop()
