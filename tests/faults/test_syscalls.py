"""P1, P10: killed at every write and flush, and told of every error a disk can give."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import headway
from headway.runtime.owner import Owner
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.faults.workload import OPTIONS, Content, Steps, content, expected

Contents = list[list[Content]]
ROOT: Final = Path(__file__).parents[2]
STRACE: Final = shutil.which("strace")


def is_tracing_allowed() -> bool:
    if STRACE is None:
        return False
    tried = subprocess.run([STRACE, "-o", "/dev/null", "true"], check=False)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(
    not is_tracing_allowed(),
    reason="strace is missing or may not trace here; it comes as a Debian package",
)

WRITES: Final = 320
"""No workload writes more often than this; three in four of them do."""
OTHERS: Final = {"fdatasync": 45, "fsync": 1, "ftruncate": 4, "unlink": 2}
"""How often a workload makes these calls, at least."""
NUMBERS: Final = {"pwrite64": range(3, 270, 8), "fdatasync": range(1, 50, 2)}
"""Calls that fail: the first ones while the file is opened."""


def traced(inject: str, *words: object) -> list[str]:
    """The lines that a Python module prints under strace."""
    assert STRACE is not None
    command = [STRACE, "-f", "-qqq", "-o", "/dev/null"]
    call = inject.partition(":")[0]
    command += ["-e", f"trace={call}", "-e", f"inject={inject}"]
    command += [sys.executable, "-m", *map(str, words)]
    ran = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=240
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def ended_at(
    call: str, numbers: range, at: Path, options: str, fault: str
) -> Iterator[tuple[int, Path, int]]:
    """Workloads with a fault at the call of each number: their folder and exit code."""
    inject = f"{call}:{fault}:when={numbers.stop}"
    words = (call, numbers.start, numbers.stop, numbers.step, at, options)
    for line in traced(inject, "tests.faults.boundaries", *words):
        number, code = map(int, line.split())
        yield number, at / str(number), code


def told_in(folder: Path) -> tuple[int, int, list[str]]:
    """The last step that was answered and that was tried; -1 is none; and the rest."""
    lines = (folder / "told").read_text().splitlines() if folder.exists() else []
    words = [line.split(" ", 1) for line in lines]
    answered = [int(rest) for word, rest in words if word == "ok"]
    tried = [int(rest) for word, rest in words if word == "try"]
    others = [line for line in lines if not line.startswith(("ok ", "try "))]
    return max(answered, default=-1), max(tried, default=-1), others


def faults_of(path: Path, possible: list[Content]) -> list[str]:
    """What is wrong with the file that a workload has left."""
    found = problems(path) if path.exists() else []
    owner = Owner(SqliteStore(path))
    owner.take_over(Steps())
    if content(path) not in possible:
        found.append("what is there is not what was answered")
    owner.close()
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory, where there is such a place: a kill leaves there what it leaves here."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Contents]:
    folder = tmp_path_factory.mktemp("expected")
    return {
        name: expected(folder / f"{name}.db", options)
        for name, options in OPTIONS.items()
    }


def check(call: str, numbers: range, at: Path, options: str, contents: Contents) -> int:
    """Answers how many boundaries there were."""
    killed, found = [], {}
    for number, folder, code in ended_at(call, numbers, at, options, "signal=KILL"):
        assert code in (0, -signal.SIGKILL), f"{call} {number} ended with {code}"
        if code:
            killed.append(number)
            answered, tried, _ = told_in(folder)
            possible = [contents[max(answered, 0)][-1], *contents[max(tried, 0)]]
            if faults := faults_of(folder / "jobs.db", possible):
                found[number] = faults
    assert found == {}
    assert killed == list(numbers[: len(killed)])
    return len(killed)


def check_writes(
    at: Path, options: str, contents: dict[str, Contents], quarter: int
) -> None:
    each = WRITES // 4
    numbers = range(quarter * each + 1, (quarter + 1) * each + 1)
    killed = check("pwrite64", numbers, at, options, contents[options])
    assert killed == each if quarter < 3 else killed < each


@pytest.mark.parametrize("quarter", range(4))
def test_a_kill_at_any_write_leaves_all_that_was_answered_and_nothing_half(
    folder: Path, contents: dict[str, Contents], quarter: int
) -> None:
    """Invariants 1, 2, 31."""
    check_writes(folder, "truncate", contents, quarter)


@pytest.mark.long
@pytest.mark.parametrize("quarter", range(4))
def test_a_kill_at_any_write_where_the_log_is_only_copied(
    folder: Path, contents: dict[str, Contents], quarter: int
) -> None:
    check_writes(folder, "passive", contents, quarter)


@pytest.mark.parametrize("call", OTHERS)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_kill_at_any_flush_cut_or_removal_leaves_all_that_was_answered(
    folder: Path, contents: dict[str, Contents], call: str, options: str
) -> None:
    numbers = range(1, OTHERS[call] + 11)
    killed = check(call, numbers, folder, options, contents[options])
    assert OTHERS[call] <= killed < len(numbers)


def check_errors(
    call: str, error: str, numbers: range, at: Path, contents: Contents
) -> int:
    """Answers how many of the errors stopped the workload."""
    stopped, found = 0, {}
    fault = f"error={error}"
    for number, folder, code in ended_at(call, numbers, at, "truncate", fault):
        answered, tried, others = told_in(folder)
        faults = [f"it ended with {code}"] if code else []
        possible = [contents[max(answered, 0)][-1]]
        if not others[0].startswith("failed"):
            faults += [] if answered == len(contents) - 1 else ["it did not say why"]
        else:
            stopped += 1
            if answered == tried or others[1:] != ["then OwnerStopped"]:
                faults.append(f"it went on after {others}")
            possible += contents[tried]
            if not re.match(r"failed (OwnerStopped: )?Store(Full|Failed): ", others[0]):
                faults.append(others[0])
        faults += faults_of(folder / "jobs.db", possible)
        if faults:
            found[number] = faults
    assert found == {}
    return stopped


ERRORS: Final = [(call, error) for call in NUMBERS for error in ("ENOSPC", "EIO")]


@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_a_disk_that_fails_once_stops_the_owner_and_costs_nothing_answered(
    folder: Path, contents: dict[str, Contents], call: str, error: str
) -> None:
    """P10. It says so, and whoever opens the file anew finds all that was answered."""
    numbers = NUMBERS[call]
    stopped = check_errors(call, error, numbers, folder, contents["truncate"])
    assert stopped > len(numbers) * 0.6


@pytest.mark.long
@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_a_disk_that_fails_at_any_call_stops_the_owner_and_costs_nothing_answered(
    folder: Path, contents: dict[str, Contents], call: str, error: str
) -> None:
    numbers = range(1, NUMBERS[call].stop)
    stopped = check_errors(call, error, numbers, folder, contents["truncate"])
    assert stopped > len(numbers) * 0.6


@pytest.mark.parametrize(("call", "error"), ERRORS)
def test_an_application_is_told_that_its_disk_failed(
    folder: Path, call: str, error: str
) -> None:
    """P10, through all layers: the caller whose job may be lost hears of it."""
    path = folder / "jobs.db"
    with headway.open(path) as queue:
        queue.configure(headway.QueueConfig(name="mail"))
    told = traced(f"{call}:error={error}:when=40", "tests.faults.enqueuing", path)
    accepted = [int(line) for line in told if line.isdigit()]
    others = [line for line in told if not line.isdigit()]
    assert len(accepted) > 2
    assert re.match(r"OwnerStopped: Store(Full|Failed): ", others[0])
    assert others[1:] == ["goes on", "closed"], "the next call opens the file anew"
    with headway.open(path) as queue:
        jobs = queue.lease("mail", most=100)
        found = [job.seq for job in jobs]
        assert found[: len(accepted)] == accepted
        assert len(found) <= len(accepted) + 1
        assert queue.enqueue("mail") > max(found)
