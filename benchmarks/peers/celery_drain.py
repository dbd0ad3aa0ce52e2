"""Celery on Redis: tasks that wait already, drained by one worker with a prefork pool."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.celery import Flush, redis_at_socket, redis_program
from benchmarks.peers.drain import Drained, best, drain
from benchmarks.processes import NotHere

SETTINGS = ((2, 128), (20, 4))
"""Processes of the pool, and tasks that are fetched ahead for each: a process for each
core with the prefetch that its docs advise for short tasks, and its default."""
MODULE = "benchmarks.peers.celery_app"


def run_peer(jobs: int, flush: Flush = "everysec") -> Drained:
    """One worker, by the best of the settings."""
    program = redis_program()
    for package in ("celery", "redis"):
        if importlib.util.find_spec(package) is None:
            raise NotHere(f"the package {package} is not installed")
    return best([_drained(program, jobs, flush, *setting) for setting in SETTINGS])


def _drained(
    program: str, jobs: int, flush: Flush, processes: int, prefetch: int
) -> Drained:
    import redis

    with redis_at_socket(program, flush) as (socket, _):
        environment = {
            **os.environ,
            "BENCH_BROKER": f"redis+socket://{socket}",
            "BENCH_PREFETCH": str(prefetch),
        }
        subprocess.run(
            [sys.executable, "-m", MODULE, str(jobs)],
            env=environment,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        broker: Any = redis.Redis(unix_socket_path=socket)
        assert broker.llen("celery") == jobs
        command = [
            *(sys.executable, "-m", "celery", "-A", MODULE, "worker"),
            *("--pool", "prefork", "--concurrency", str(processes)),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            *("--loglevel", "WARNING"),
        ]
        looks: list[bool] = []

        def is_empty() -> bool:
            """For two looks: for a moment a task is in neither place."""
            is_now = not broker.llen("celery") and not broker.hlen("unacked")
            looks.append(is_now)
            return looks[-2:] == [True, True]

        log = Path(socket).with_name("worker")
        rate = drain(command, log, environment, jobs, is_empty)
        version = broker.info("server")["redis_version"]
        broker.close()
    return Drained(
        rate,
        f"Celery {importlib.metadata.version('celery')}, Redis {version}, appendfsync "
        f"{flush}, acks late, prefork with {processes} processes, prefetch {prefetch}",
    )


if __name__ == "__main__":
    print(run_peer(int(sys.argv[1])))
