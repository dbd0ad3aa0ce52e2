"""Dramatiq on Redis: messages that wait already, drained by one of its processes."""

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

SETTINGS = ((8, None), (8, 1_000), (20, 1_000))
"""Threads (8 is its default, 20 is what the others are given), and how many messages are
fetched ahead; None is its default, twice the threads."""


def run_peer(jobs: int, flush: Flush = "everysec") -> Drained:
    """One process, by the best of the settings."""
    program = redis_program()
    for package in ("dramatiq", "redis"):
        if importlib.util.find_spec(package) is None:
            raise NotHere(f"the package {package} is not installed")
    return best([_drained(program, jobs, flush, *setting) for setting in SETTINGS])


def _drained(
    program: str, jobs: int, flush: Flush, threads: int, prefetch: int | None
) -> Drained:
    import redis

    with redis_at_socket(program, flush) as (socket, _):
        environment = {**os.environ, "BENCH_SOCKET": socket}
        if prefetch is not None:
            environment["dramatiq_queue_prefetch"] = str(prefetch)
        module = "benchmarks.peers.dramatiq_app"
        enqueue = [sys.executable, "-m", module, str(jobs)]
        subprocess.run(enqueue, env=environment, check=True)
        broker: Any = redis.Redis(unix_socket_path=socket)
        assert broker.hlen("dramatiq:bench.msgs") == jobs
        command = [
            *(sys.executable, "-m", "dramatiq", module),
            *("--processes", "1", "--threads", str(threads)),
        ]
        rate = drain(
            command,
            Path(socket).with_name("worker"),
            environment,
            jobs,
            # A message is here until it is acked.
            lambda: not broker.hlen("dramatiq:bench.msgs"),
        )
        version = broker.info("server")["redis_version"]
        broker.close()
    return Drained(
        rate,
        f"Dramatiq {importlib.metadata.version('dramatiq')}, Redis {version}, "
        f"appendfsync {flush}, one process, threads {threads}, "
        f"prefetch {prefetch or 2 * threads}",
    )


if __name__ == "__main__":
    print(run_peer(int(sys.argv[1])))
