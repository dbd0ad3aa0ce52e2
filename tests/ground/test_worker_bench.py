"""The benchmark of workers: a small drain of ours, stand-ins for peers, and its bounds."""

import sys
from math import nan
from pathlib import Path

import pytest

from benchmarks import run, worker
from benchmarks.peers import celery_drain, dramatiq, procrastinate
from benchmarks.peers.drain import BEGUN, Drained, best, drain
from benchmarks.processes import NotHere

SMALL = worker.Sizes(jobs=60, rounds=1, peers=(1, 1, 1))


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is slow, one that is fast, and one that can't be had."""

    def missing(jobs: int) -> Drained:
        raise NotHere("no database")

    monkeypatch.setattr(celery_drain, "run_peer", lambda jobs: Drained(0.1, "slow"))
    monkeypatch.setattr(dramatiq, "run_peer", lambda jobs: Drained(1e9, "fast"))
    monkeypatch.setattr(procrastinate, "run_peer", missing)


@pytest.mark.usefixtures("peers")
def test_worker_drains_its_queue_and_every_bound_has_its_figure() -> None:
    figures = {figure.name: figure for figure in worker.run(SMALL)}
    assert {name: f.bounds for name, f in figures.items() if f.bounds} == {
        worker.HEADWAY: "≥ 5,000",
        "worker / Celery, prefork": "≥ 5",
        "worker / Dramatiq": "≥ 2",
    }
    for name in (worker.HEADWAY, "worker, handlers in threads"):
        assert figures[name].value > 0
    assert figures["worker / Celery, prefork"].is_good
    assert figures["worker / Dramatiq"].verdict == "below"
    missing = figures["Procrastinate"]
    assert missing.note == "not measured: no database"
    assert missing.is_good


def test_best_set_up_counts_and_the_others_are_told() -> None:
    found = best([Drained(10, "a"), Drained(30, "b"), Drained(20, "c")])
    assert found == Drained(30, "b; all set-ups: 10, 30, 20 jobs/s")
    assert best([Drained(nan, "a")]).notes == "a"


def test_worker_that_ends_early_is_not_measured(tmp_path: Path) -> None:
    text = f"import time; print('{BEGUN}', time.monotonic(), flush=True)"
    command = [sys.executable, "-c", text]
    with pytest.raises(NotHere, match="a worker ended with 0"):
        drain(command, tmp_path / "log", {}, 10, lambda: False)


def test_make_bench_measures_workers() -> None:
    assert "worker" in run.MODULES
