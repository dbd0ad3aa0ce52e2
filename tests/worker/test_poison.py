"""Jobs that kill their process: dead-lettered with the reason, and nobody else is."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headway.core.retry import Fixed
from tests.worker.places import PATIENCE_S, Place, is_empty, until
from tests.worker.processes import Notes, Start, enqueue

REASONS: dict[str, str | tuple[str, ...]] = {
    "exit": "its process died: exit status 7",
    "kill": "its process died: signal SIGKILL",
    "abort": "its process died: signal SIGABRT",
    "segfault": "its process died: signal SIGSEGV",
    # From Python 3.12 on the interpreter sees it coming.
    "stack": ("its process died: signal SIGSEGV", "RecursionError"),
    "memory": ("MemoryError", "its process died"),
}
TWICE: dict[str, Any] = {"attempts_max": 2, "retry": Fixed(0)}


@pytest.fixture
def app() -> str:
    return "tests.worker.poison:app"


def test_job_that_always_kills_its_own_process_is_buried_with_the_reason(
    place: Place, start: Start, notes: Notes
) -> None:
    """P2; each has had its attempts, and those beside it have run once."""
    for how in REASONS:
        enqueue(place, "apart", "die_apart", [{"how": how}], **TWICE)
    enqueue(place, "apart", "beside", [{"number": n} for n in range(40)])
    worker = start("--queues", "apart", "--concurrency", "4")
    until(lambda: place.counts("apart")["dead"] == len(REASONS))
    until(is_empty(place, "apart"))
    dead = place.dead("apart")
    assert {one.attempt for one in dead} == {2}
    texts = [one.text for one in dead]
    for reason in REASONS.values():
        assert any(text.startswith(reason) for text in texts), (reason, texts)
    lines = notes.lines()
    assert sorted(lines) == sorted(f"beside {n} 1" for n in range(40))
    assert worker.poll() is None


@pytest.mark.parametrize(
    "how", ["exit", pytest.param("segfault", marks=pytest.mark.long)]
)
def test_job_that_always_kills_its_worker_is_buried_and_its_neighbours_are_not(
    place: Place, start: Start, notes: Notes, how: str
) -> None:
    """All have as many attempts: the last one, after a lost lease, is alone."""
    enqueue(place, "shared", "die_shared", [{"how": how}], attempts_max=3)
    calls = [{"number": n} for n in range(6)]
    enqueue(place, "shared", "neighbour", calls, attempts_max=3)
    options = ("--concurrency", "8", "--lease", "1s")
    fleet = start("--queues", "shared", "--processes", "2", *options)
    until(lambda: place.counts("shared")["dead"] > 0)
    until(is_empty(place, "shared"))
    (dead,) = place.dead("shared")
    assert (dead.kind, dead.reason, dead.attempt) == ("die_shared", "lease lost", 3)
    assert dead.text.startswith("nothing was heard of worker ")
    words = [line.split() for line in notes.lines()]
    poisoned = [one[1] for one in words if one[0] == "poison"]
    # In three processes: each was started in the place of one that had died.
    assert len(set(poisoned)) == len(poisoned) == 3
    # The worker whose lease was lost is named.
    assert dead.text.split("worker ")[1].split()[0].endswith(f"-{poisoned[-1]}")
    done = Counter(one[1] for one in words if one[0] == "neighbour")
    assert set(done) == {str(n) for n in range(6)}
    fleet.send_signal(signal.SIGTERM)
    assert fleet.wait(PATIENCE_S) == 0


def test_handlers_that_eat_memory_or_block_the_loop_harm_nobody(
    place: Place, start: Start, notes: Notes, tmp_path: Path
) -> None:
    enqueue(place, "shared", "eats", [{}], **TWICE)
    enqueue(place, "shared", "blocks", [{"seconds": 3.0}])
    enqueue(place, "shared", "neighbour", [{"number": n} for n in range(6)])
    worker = start("--queues", "shared", "--concurrency", "8", "--lease", "1s")
    until(lambda: place.counts("shared")["dead"] == 1)
    until(is_empty(place, "shared"))
    (dead,) = place.dead("shared")
    assert (dead.kind, dead.reason, dead.attempt) == ("eats", "failed", 2)
    assert dead.text.startswith("MemoryError")
    ran = sorted(notes.lines())
    assert ran == ["blocked 1", *(f"neighbour {n} 1" for n in range(6))]
    assert worker.poll() is None
