"""Procrastinate on PostgreSQL: jobs that wait already, drained by one worker process."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.drain import Drained, best, drain
from benchmarks.peers.pgqueuer import database
from benchmarks.processes import NotHere

MAIN = "from benchmarks.peers.procrastinate_app import main; main()"
SETTINGS = ((20, "never"), (20, "always"))
"""Concurrency, and whether done jobs are kept, as by default, or deleted."""
LEFT = (
    "SELECT EXISTS(SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"
)


def run_peer(jobs: int) -> Drained:
    """One process with async tasks, by the best of the settings."""
    for package in ("procrastinate", "psycopg"):
        if importlib.util.find_spec(package) is None:
            raise NotHere(f"the package {package} is not installed")
    results = []
    with tempfile.TemporaryDirectory(prefix="bench-pg-") as folder:
        # As root, the server runs as a user of its own, which must get in.
        Path(folder).chmod(0o755)
        for number, (concurrency, delete) in enumerate(SETTINGS):
            with database(Path(folder), f"data{number}") as (address, _):
                log = Path(folder) / f"worker{number}"
                results.append(_drained(address, log, jobs, concurrency, delete))
    return best(results)


def _drained(
    address: str, log: Path, jobs: int, concurrency: int, delete: str
) -> Drained:
    import psycopg

    environment = {
        **os.environ,
        "BENCH_DATABASE": address,
        "BENCH_CONCURRENCY": str(concurrency),
        "BENCH_DELETE": delete,
    }
    command = [sys.executable, "-c", MAIN]
    subprocess.run([*command, str(jobs)], env=environment, check=True)
    with psycopg.connect(address, autocommit=True) as connection:
        version = connection.info.parameter_status("server_version")
        durable = [
            connection.execute(f"SHOW {name}").fetchone()
            for name in ("fsync", "synchronous_commit")
        ]
        assert durable == [("on",), ("on",)], durable

        def is_empty() -> bool:
            row = connection.execute(LEFT).fetchone()
            return row is not None and not row[0]

        assert not is_empty()
        rate = drain(command, log, environment, jobs, is_empty)
    kept = "kept" if delete == "never" else "deleted"
    return Drained(
        rate,
        f"Procrastinate {importlib.metadata.version('procrastinate')}, "
        f"PostgreSQL {version}, fsync on, async, concurrency {concurrency}, "
        f"done jobs {kept}",
    )


if __name__ == "__main__":
    print(run_peer(int(sys.argv[1])))
