"""One worker process that drains its queue, and the workers of peers in the same run.

Jobs that do nothing are enqueued first; then one worker empties the queue. What a
figure shows is what the SDK costs, in front of a server that makes all of it durable.
docs/benchmarks.md says how, with which settings, and what is fair.
"""

import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from types import ModuleType
from urllib.request import urlopen

import headway
from benchmarks.figure import Figure
from benchmarks.http import ADDRESS, READY_S, SERVE
from benchmarks.peers import celery_drain, dramatiq, procrastinate
from benchmarks.peers.drain import Drained, drain
from benchmarks.peers.peer import PAYLOAD
from benchmarks.processes import NotHere, started, wait_for_line

FLOOR = 5_000
CONCURRENCY, MORE = 20, 100
HEADWAY = "worker, awaited handlers"
PEERS: dict[str, tuple[ModuleType, float]] = {
    "Celery, prefork": (celery_drain, 5),
    "Procrastinate": (procrastinate, 5),
    "Dramatiq": (dramatiq, 2),
}
"""And how many times as fast as each we have to be."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many jobs are drained, and how often; the best round counts."""

    jobs: int = 30_000
    rounds: int = 2
    peers: tuple[int, ...] = (5_000, 2_000, 10_000)


FULL = Sizes(jobs=100_000, rounds=3, peers=(20_000, 5_000, 40_000))


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    ours = []
    peers: dict[str, list[Drained]] = {name: [] for name in PEERS}
    with tempfile.TemporaryDirectory(prefix="bench-worker-") as folder:
        # In turn and equally often, so that no hour of the machine favours one.
        for number in range(sizes.rounds):
            ours.append(_round(Path(folder), sizes, number))
            for name, jobs in zip(PEERS, sizes.peers, strict=True):
                peers[name].append(_peer(name, jobs))
    found = {name: max(rates[name] for rates in ours) for name in ours[0]}
    return [*_own_figures(found, sizes), *_peer_figures(max(found.values()), peers)]


def _own_figures(found: dict[str, float], sizes: Sizes) -> list[Figure]:
    how = (
        f"{sizes.jobs:,} no-op jobs with 200-byte payloads drained by one process; every "
        f"ack is durable; best of {sizes.rounds}"
    )
    names = {
        HEADWAY: ("awaited", CONCURRENCY, FLOOR),
        f"{HEADWAY}, {MORE} at once": ("awaited", MORE, None),
        "worker, handlers in threads": ("threads", CONCURRENCY, None),
    }
    return [
        Figure(
            name,
            found[_label(queue, concurrency)],
            "jobs/s",
            floor,
            note=f"concurrency {concurrency}; {how}",
        )
        for name, (queue, concurrency, floor) in names.items()
    ]


def _label(queue: str, concurrency: int) -> str:
    return f"{queue}, {concurrency}"


def _round(folder: Path, sizes: Sizes, number: int) -> dict[str, float]:
    """Jobs a second of each way to run them."""
    found = {}
    for queue, concurrency in (
        ("awaited", CONCURRENCY),
        ("awaited", MORE),
        ("threads", CONCURRENCY),
    ):
        label = _label(queue, concurrency)
        place = folder / f"{number}-{queue}-{concurrency}"
        place.mkdir()
        found[label] = _drained(place, sizes.jobs, queue, concurrency)
    return found


def _drained(folder: Path, jobs: int, queue: str, concurrency: int) -> float:
    log = folder / "log"
    with started([*SERVE, str(folder / "data")], log) as server:
        line = wait_for_line(server, log, "http://", READY_S)
        address = re.search(ADDRESS, line)
        if address is None:
            raise NotHere(f"the server says no address: {line.strip()}")
        with headway.App(address[0]) as app:
            job = app.job(queue=queue, kind=queue)(_do_nothing)
            job.enqueue_many((PAYLOAD,) for _ in range(jobs))
            command = [
                *(sys.executable, "-m", "headway.cli.main", "worker"),
                *("benchmarks.worker_app:app", "--queues", queue),
                *("--concurrency", str(concurrency)),
            ]
            environment = {**os.environ, "BENCH_URL": address[0]}
            look = Look(address[0], queue)
            return drain(command, folder / "worker", environment, jobs, look.is_empty)


def _do_nothing(payload: str) -> None:
    """What is called is in the worker's app, not here."""


class Look:
    """Whether a queue of a server is empty."""

    def __init__(self, address: str, queue: str) -> None:
        self._url = f"{address}/v1/queues/{queue}"

    def is_empty(self) -> bool:
        with urlopen(self._url) as answer:
            counts = json.load(answer)["counts"]
        return not any(counts.values())


def _peer(name: str, jobs: int) -> Drained:
    """A peer that can't be had has a dash for a figure."""
    module, _ = PEERS[name]
    try:
        found: Drained = module.run_peer(jobs)
        return found
    except NotHere as error:
        return Drained(nan, f"not measured: {error}")


def _peer_figures(ours: float, peers: dict[str, list[Drained]]) -> list[Figure]:
    figures = []
    for name, rounds in peers.items():
        _, floor = PEERS[name]
        found = max(rounds, key=lambda one: (not isnan(one.jobs_per_s), one.jobs_per_s))
        is_measured = not isnan(found.jobs_per_s)
        figures += [
            Figure(name, found.jobs_per_s, "jobs/s", note=found.notes),
            Figure(
                f"worker / {name}",
                ours / found.jobs_per_s,
                "x",
                floor if is_measured else None,
                note="the best set-up of each",
            ),
        ]
    return figures
