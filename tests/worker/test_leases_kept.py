"""P7: killed workers lose their jobs in time, and no handler that lives loses its own.

History is read when all is over, and says when everything happened: by the server's
own clock, not by that of the test.
"""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.core import events
from tests.endtoend.account import NOTICE_MS
from tests.worker.places import PATIENCE_S, ServedPlace, is_empty, until
from tests.worker.processes import Notes, Start, enqueue
from tests.worker.stories import stories


@pytest.fixture
def app() -> str:
    return "tests.worker.steady:app"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServedPlace]:
    with ServedPlace(tmp_path / "data") as found:
        yield found


def noticed(story: list[Any]) -> Iterator[tuple[events.Leased, int]]:
    """Leases that were lost, and how long after their end that was noticed."""
    lease: events.Leased | None = None
    until_ms = 0
    for event in story:
        match event:
            case events.Leased():
                lease, until_ms = event, event.lease_until_ms
            case events.Extended():
                until_ms = event.lease_until_ms
            case events.Lost():
                assert lease is not None
                yield lease, event.at_ms - until_ms


@pytest.mark.parametrize(
    ("count", "kills"), [(400, 3), pytest.param(10_000, 12, marks=pytest.mark.long)]
)
@pytest.mark.timeout(900)
def test_jobs_of_killed_workers_are_available_in_time_and_all_are_done(
    place: ServedPlace,
    start: Start,
    notes: Notes,
    tmp_path: Path,
    *,
    count: int,
    kills: int,
) -> None:
    gate = tmp_path / "gate"
    calls = [{"gate": str(gate)}] * 3
    enqueue(place, "kills", "held", calls, attempts_max=kills + 2)
    enqueue(place, "kills", "quick", [{"number": n} for n in range(count)])
    options = ("--queues", "kills", "--lease", "2s", "--concurrency", "10")
    killed = []
    for number in range(1, kills + 1):
        worker = start(*options)

        def is_amid(worker: Any = worker, share: int = number) -> bool:
            lines = notes.lines()
            done = sum(line.startswith("done") for line in lines)
            is_holding = f"held {worker.pid}" in lines
            return is_holding and done >= count * share // (kills + 1)

        until(is_amid)
        worker.kill()
        killed.append(worker.pid)
    gate.touch()
    last = start(*options)
    until(is_empty(place, "kills"))
    assert place.counts("kills")["dead"] == 0
    last.send_signal(signal.SIGTERM)
    assert last.wait(PATIENCE_S) == 0
    assert {f"done {n}" for n in range(count)} <= set(notes.lines())
    found = stories(place)
    assert len(found) == count + 3
    assert all(isinstance(story[-1], events.Acked) for story in found.values())
    lost = [each for story in found.values() for each in noticed(story)]
    assert {int(lease.worker.rpartition("-")[2]) for lease, _ in lost} == set(killed)
    assert all(0 <= late_ms <= NOTICE_MS for _, late_ms in lost)


@pytest.mark.parametrize(
    ("lease_s", "seconds"), [(2, 7.0), pytest.param(30, 180.0, marks=pytest.mark.long)]
)
@pytest.mark.timeout(900)
def test_no_handler_that_lives_loses_its_lease(
    place: ServedPlace, start: Start, lease_s: int, seconds: float
) -> None:
    """In a thread, awaited, in a process of its own, and holding the event loop."""
    for kind in ("blocking", "awaiting", "apart"):
        enqueue(place, "long", kind, [{"seconds": seconds}])
    enqueue(place, "loop", "holding", [{"seconds": seconds}])
    workers = [
        start("--queues", queue, "--lease", f"{lease_s}s") for queue in ("long", "loop")
    ]
    until(is_empty(place, "long"), patience_s=PATIENCE_S + 2 * seconds)
    until(is_empty(place, "loop"), patience_s=PATIENCE_S + 2 * seconds)
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_S) == 0
    found = stories(place)
    assert {story[0].kind for story in found.values()} == {
        *("blocking", "awaiting", "apart", "holding")
    }
    for story in found.values():
        assert {type(event) for event in story[1:-1]} == {
            *(events.Leased, events.Extended)
        }, story
        ended = story[-1]
        assert isinstance(ended, events.Acked)
        assert ended.attempt == 1
        assert ended.run_ms > 2_000 * lease_s
