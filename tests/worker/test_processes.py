"""Worker processes that are stopped, killed, and cut off from their server."""

import os
import signal
import socket
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.server.process import command
from tests.worker.places import PATIENCE_S, Place, ServedPlace, is_empty, until
from tests.worker.processes import Notes, Start, enqueue


def test_sigterm_gives_back_what_does_not_end_in_time(
    place: Place, start: Start, notes: Notes
) -> None:
    enqueue(place, "hang", "hang", [{}, {}])
    worker = start("--queues", "hang", "--grace", "0s", "--lease", "10m")
    until(lambda: len(notes.lines()) == 2)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
    counts = place.counts("hang")
    assert (counts["ready"], counts["leased"]) == (2, 0)
    start("--queues", "hang")
    until(lambda: len(notes.lines()) == 4)
    # Given back, not failed: it is the first attempt again.
    assert {line.split()[2] for line in notes.lines()} == {"1"}


def test_sigterm_lets_running_jobs_end(
    place: Place, start: Start, notes: Notes, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    enqueue(place, "gated", "gated", [{"gate": str(gate)}] * 2)
    worker = start("--queues", "gated", "--concurrency", "1", "--grace", "10m")
    until(lambda: notes.lines() == ["started"])
    worker.send_signal(signal.SIGTERM)
    gate.touch()
    assert worker.wait(PATIENCE_S) == 0
    assert notes.lines() == ["started", "ended"]
    counts = place.counts("gated")
    assert (counts["ready"], counts["leased"]) == (1, 0)


def test_second_sigterm_ends_at_once(place: Place, start: Start, notes: Notes) -> None:
    enqueue(place, "hang", "hang", [{}])
    worker = start("--queues", "hang", "--grace", "10m", "--lease", "10m")
    until(lambda: len(notes.lines()) == 1)
    until_s = time.monotonic() + PATIENCE_S
    while worker.poll() is None and time.monotonic() < until_s:
        # Two that come together may be one to the kernel: so again, until it ends.
        worker.send_signal(signal.SIGTERM)
        with_patience(worker)
    # One more may come when all is done and it is about to end.
    assert worker.returncode in (0, -signal.SIGTERM)
    counts = place.counts("hang")
    assert (counts["ready"], counts["leased"]) == (1, 0)


def test_signals_that_come_while_it_ends_change_nothing(
    place: Place, start: Start, notes: Notes
) -> None:
    enqueue(place, "short", "short", [{"number": 1}])
    worker = start("--queues", "short")
    until(lambda: notes.lines() == ["1"])
    until_s = time.monotonic() + PATIENCE_S
    while worker.poll() is None and time.monotonic() < until_s:
        worker.send_signal(signal.SIGTERM)
        with_patience(worker, 0.002)
    assert worker.returncode == 0


def with_patience(process: "subprocess.Popen[bytes]", wait_s: float = 0.2) -> None:
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_jobs_of_killed_workers_are_all_done(
    place: Place, start: Start, notes: Notes, count: int
) -> None:
    enqueue(place, "short", "short", [{"number": n} for n in range(count)])
    options = ("--queues", "short", "--lease", "1s", "--concurrency", "10")
    for done in (0, count // 4, count // 2):
        worker = start(*options)
        until(partial(has_done, notes, done))
        worker.kill()
    start(*options)
    until(is_empty(place, "short"))
    assert set(notes.lines()) == {str(n) for n in range(count)}
    assert place.counts("short")["dead"] == 0


def has_done(notes: Notes, count: int) -> bool:
    return len(notes.lines()) > count


def test_fleet_replaces_a_process_that_dies(
    place: Place, start: Start, notes: Notes
) -> None:
    enqueue(place, "hang", "hang", [{}] * 2)
    options = ("--concurrency", "1", "--lease", "1s", "--grace", "0s")
    fleet = start("--queues", "hang", "--processes", "2", *options)
    until(lambda: len(set(notes.pids())) == 2)
    first, second = notes.pids()
    os.kill(first, signal.SIGKILL)
    until(lambda: len(set(notes.pids())) == 3)
    fleet.send_signal(signal.SIGTERM)
    assert fleet.wait(PATIENCE_S) == 0
    until(lambda: not any(map(is_alive, {second, *notes.pids()})))
    assert place.counts("hang")["leased"] == 0


def test_members_end_when_their_fleet_is_killed(
    place: Place, start: Start, notes: Notes
) -> None:
    enqueue(place, "hang", "hang", [{}] * 2)
    options = ("--concurrency", "1", "--lease", "10m", "--grace", "0s")
    fleet = start("--queues", "hang", "--processes", "2", *options)
    until(lambda: len(set(notes.pids())) == 2)
    fleet.kill()
    fleet.wait(PATIENCE_S)
    until(lambda: not any(map(is_alive, notes.pids())))
    assert place.counts("hang")["leased"] == 0


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_worker_outlives_its_server(tmp_path: Path, notes: Notes) -> None:
    """What ends while the server is away is told when it is back."""
    gate = tmp_path / "gate"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with ServedPlace(tmp_path / "data", "--port", port) as place:
        enqueue(place, "gated", "gated", [{"gate": str(gate)}] * 2)
        variables = {"TEST_URL": place.url, "TEST_NOTES": str(notes.path)}
        arguments = ("--queues", "gated", "--concurrency", "1", "--lease", "10m")
        worker = subprocess.Popen(
            command("worker", "tests.worker.handlers:app", *arguments),
            env={**os.environ, **variables},
        )
        try:
            until(lambda: notes.lines() == ["started"])
            place.served.kill()
            gate.touch()
            until(lambda: notes.lines() == ["started", "ended"])
            place.served.stop()
            with ServedPlace(tmp_path / "data", "--port", port) as back:
                until(is_empty(back, "gated"))
                assert notes.lines() == ["started", "ended"] * 2
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(PATIENCE_S) == 0
        finally:
            worker.kill()
            worker.wait(PATIENCE_S)


def test_isolated_handlers_may_die(place: Place, start: Start, notes: Notes) -> None:
    hows = ["exit", "signal", "raise", "fine"]
    enqueue(place, "apart", "die", [{"how": how} for how in hows], attempts_max=1)
    worker = start("--queues", "apart")
    until(lambda: place.counts("apart")["dead"] == 3)
    until(is_empty(place, "apart"))
    (line,) = notes.lines()
    name, pid, kind = line.split()
    assert (name, kind) == ("apart", "die")
    assert pid != str(worker.pid)
    assert _texts(place) == [
        "ValueError: raised apart",
        "its process died: exit status 7",
        "its process died: signal SIGKILL",
    ]


def test_isolated_handlers_that_hang_are_killed(
    place: Place, start: Start, notes: Notes
) -> None:
    start("--queues", "apart")
    tries = 0
    # On a busy machine its time may be over before its process has begun with it.
    while not notes.lines():
        enqueue(place, "apart", "stuck", [{}], attempts_max=1)
        tries += 1
        until(is_empty(place, "apart"))
    (line,) = notes.lines()
    name, pid = line.split()
    assert name == "stuck"
    assert not is_alive(int(pid))
    text = "timed out: ran for longer than 3s; its process was killed"
    assert _texts(place) == [text] * tries


def _texts(place: Place) -> list[str]:
    return sorted(one.text.splitlines()[0] for one in place.dead("apart"))


@pytest.mark.parametrize(
    ("app", "text"),
    [
        ("tests.worker.handlers", "an app is named as MODULE:APP"),
        ("tests.worker.nowhere:app", "there is no module tests.worker.nowhere"),
        ("tests.worker.handlers:note", "there is no headway.App of this name"),
    ],
)
def test_command_says_what_is_wrong_with_an_app(app: str, text: str) -> None:
    done = subprocess.run(
        command("worker", app), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert text in done.stderr
