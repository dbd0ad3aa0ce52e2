"""An owner in a process of its own: what is asked of it, and what becomes of it."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.core.commands import Accepted, Ack, Configure, Enqueue, Lease
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.apart import READY, Apart
from headway.runtime.door import Door
from headway.runtime.errors import OwnerStopped
from headway.runtime.frames import HEAD
from headway.runtime.owner import Ask
from headway.runtime.sharing import Address, Guest, LoopGuest
from headway.runtime.verify import problems
from headway.runtime.views import Handed, LeasedJob
from headway.store.errors import NotAStore, StoreFailed
from headway.store.sqlite.place import owner_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


Loop = asyncio.AbstractEventLoop | None


@pytest.fixture(params=["thread", "loop"])
def loop(request: pytest.FixtureRequest) -> Iterator[Loop]:
    """Who hears what the owner says: a thread of the door's, or a server's event loop."""
    if request.param == "thread":
        yield None
        return
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


def ask(door: Door, command: Ask) -> Any:
    return door.submit(command).result(60)


def filled(path: Path, loop: Loop) -> Apart:
    apart = Apart(path, loop=loop)
    ask(apart, Configure(QueueConfig(name="q")))
    assert isinstance(ask(apart, Enqueue("q", [JobSpec(payload=b"kept")])), Accepted)
    return apart


def test_the_owner_is_another_process_and_ends_with_this_one(
    path: Path, loop: Loop
) -> None:
    apart = filled(path, loop)
    child = apart._child
    assert child is not None
    assert not apart.is_owner
    assert owner_of(path) == str(child.pid)
    handed = ask(apart, Lease())
    assert isinstance(handed, Handed)
    assert [job.payload for job in handed.jobs] == [b"kept"]
    ask(apart, Ack([handed.jobs[0].token]))
    apart.close()
    assert child.returncode == 0
    assert owner_of(path) is None
    assert problems(path) == []
    with pytest.raises(OwnerStopped):
        apart.submit(Lease())


def test_another_owner_is_started_when_the_first_is_killed(
    path: Path, loop: Loop
) -> None:
    apart = filled(path, loop)
    first = apart._child
    assert first is not None
    first.kill()
    first.wait()
    jobs: list[LeasedJob] = []
    while not jobs:
        # What was asked of the dead one is unknown, and its caller is told so.
        try:
            jobs = ask(apart, Lease()).jobs
        except OwnerStopped:
            continue
    assert [job.payload for job in jobs] == [b"kept"]
    assert apart._child is not None
    assert apart._child.pid != first.pid
    apart.close()
    assert problems(path) == []


def test_an_owner_ends_when_whoever_started_it_is_gone(path: Path) -> None:
    command = [sys.executable, "-m", "headway.runtime.apart", str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().strip() == READY
        # Whoever stops all processes of a service means the server.
        process.terminate()
        guest = Apart(path)
        ask(guest, Configure(QueueConfig(name="q")))
        guest.close()
        process.stdin.close()
        assert process.wait(60) == 0
    assert owner_of(path) is None


def test_what_stands_against_the_file_is_told_as_it_is(path: Path) -> None:
    path.write_bytes(b"no database, " * 1_000)
    with pytest.raises(NotAStore, match="not a SQLite database"):
        Apart(path)


def test_an_owner_that_says_nothing_is_no_owner(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(StoreFailed, match="before it was ready"):
        Apart(path)


def test_a_file_that_somebody_owns_is_reached_through_them(
    path: Path, loop: Loop
) -> None:
    owner = Door(path)
    ask(owner, Configure(QueueConfig(name="q")))
    apart = Apart(path, loop=loop)
    ask(apart, Enqueue("q", [JobSpec()]))
    assert len(ask(owner, Lease()).jobs) == 1
    apart.close()
    owner.close()


def test_long_answers_and_many_at_once_are_heard_whole(path: Path, loop: Loop) -> None:
    apart = filled(path, loop)
    long = [JobSpec(payload=bytes([number]) * 900_000) for number in range(5)]
    ask(apart, Enqueue("q", long))
    short = [apart.submit(Enqueue("q", [JobSpec(payload=b"x")])) for _ in range(200)]
    assert all(isinstance(future.result(60), Accepted) for future in short)
    jobs = ask(apart, Lease(max=1_000)).jobs
    payloads = [job.payload for job in jobs]
    assert payloads == [b"kept", *(spec.payload for spec in long), *[b"x"] * 200]
    apart.close()


def test_what_no_owner_would_say_ends_the_talk(path: Path, loop: Loop) -> None:
    path.parent.mkdir(exist_ok=True)
    lost = threading.Event()
    address = Address(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as host:
        host.bind(address.address)
        host.listen()
        guest = (
            Guest(path, lost.set) if loop is None else LoopGuest(path, lost.set, loop)
        )
        peer, _ = host.accept()
        asked = guest.submit(Lease())
        with peer:
            peer.sendall(HEAD.pack(3) + b"\xc1\xc1\xc1")
            assert lost.wait(60)
        with pytest.raises(OwnerStopped):
            asked.result(60)
        assert guest.is_lost
    address.close()
