"""The owner and its stores under faults, in virtual time: many seeds, all promises."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import headway
from headway.runtime.owner import Owner
from headway.sim.faults.rates import KINDS
from headway.sim.faults.run import main
from headway.sim.faults.verdict import CORRECTNESS, CRASH, LIVENESS, OK
from headway.sim.faults.world import run_seed
from tests.faults import bugs

CHUNK = 50
SEEDS = 2_000
SAMPLE = (3, 7, 31, 64, 174)


def check(first: int, count: int) -> None:
    failed = [
        f"seed {result.seed}: {result.text}"
        for result in map(run_seed, range(first, first + count))
        if result.code != OK
    ]
    assert failed == []


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_fault_breaks_a_promise(first: int) -> None:
    """Invariants 1-11, 18-22, 25-27, 29 and 31, and P1-P9."""
    check(first, CHUNK)


@pytest.mark.long
@pytest.mark.parametrize("first", range(SEEDS, 22_000, 500))
def test_no_fault_breaks_a_promise_in_many_more_seeds(first: int) -> None:
    check(first, 500)


def test_every_kind_of_fault_strikes() -> None:
    """What never happens is not tested."""
    total: Counter[str] = Counter()
    for seed in range(80):
        total += run_seed(seed).counts
    wanted = [f"fault: {kind}" for kind in KINDS]
    wanted += ["messages lost", "messages doubled", "retried enqueues", "recovered"]
    wanted += ["late wakers: Fenced", "late wakers: StoreFailed", "failed take-overs"]
    wanted += ["answers lost after commit", "dead workers", "slow workers", "replies"]
    wanted += ["delivered twice", "rulings", "on disk"]
    assert [name for name in wanted if not total[name]] == []
    assert total["on disk"] < 80


@pytest.mark.parametrize("seed", SAMPLE)
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    """Invariant 30."""
    assert run_seed(seed) == run_seed(seed)


@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_the_order_of_hashes_changes_nothing(hash_seed: str) -> None:
    """Invariant 30, in another process."""
    source = Path(headway.__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": str(source),
    }
    command = [sys.executable, "-m", "headway.sim.faults", "--seeds", "60:66"]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    found = [line for line in run.stdout.splitlines() if line.startswith("seed ")]
    expected = [f"seed {seed}: ok {run_seed(seed).digest}" for seed in range(60, 66)]
    assert found == expected


def test_a_run_without_failures_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["3", "--seed", "5", "--quiet"]) == OK
    assert capsys.readouterr().out == "3 seeds: ok\n"


def test_a_broken_promise_ends_with_3_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bugs.drops_some_commits(monkeypatch)
    assert main(["2", "--quiet"]) == CORRECTNESS
    told = capsys.readouterr().out
    assert "seed 0: broken: P1" in told
    assert "take-over, epoch 1" in told
    assert "again: python -m headway.sim.faults 1 --seed 0" in told
    first = run_seed(0)
    assert run_seed(0) == first
    assert first.text in told


def test_work_that_never_ends_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bugs.forgets_delays(monkeypatch)
    assert main(["8", "--quiet"]) == LIVENESS
    assert "invariant 29" in capsys.readouterr().out


def test_an_exception_of_ours_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def next_ms(self: Owner) -> int | None:
        raise ZeroDivisionError

    monkeypatch.setattr(Owner, "next_ms", next_ms)
    assert main(["1", "--quiet"]) == CRASH
    assert "ZeroDivisionError" in capsys.readouterr().out
