"""Several processes, one file: the first owns it, the others speak to it."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import headway
from headway.core.errors import BadValue, LeaseLost, UnknownBulk, UnknownQueue
from headway.runtime.sharing import Address

QUEUE = headway.QueueConfig(name="mail", limits=(headway.Rate("r", 1_000, 1_000),))
CHILD = """
import sys, headway
queue = headway.open(sys.argv[1])
queue.configure(headway.QueueConfig(name="mail"))
print(queue.enqueue("mail", b"from the child"), flush=True)
{then}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@contextmanager
def child(path: Path, then: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process that has enqueued a job; `then` is what it does after that."""
    command = [sys.executable, "-c", CHILD.format(then=then), str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_another_process_speaks_to_the_owner(path: Path) -> None:
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        with child(path, "queue.close()") as process:
            seq = int(said(process))
            (job,) = queue.lease("mail", wait="1m")
        assert (job.seq, job.payload) == (seq, b"from the child")


def test_who_is_left_takes_over_when_the_owner_dies(path: Path) -> None:
    """DESIGN 4.12: nothing accepted is lost, and the lease of the dead one holds."""
    with child(
        path, "queue.lease(lease='1h'); print('leased', flush=True); input()"
    ) as (owner):
        first = int(said(owner))
        assert said(owner) == "leased"
        with headway.open(path) as queue:
            second = queue.enqueue("mail", b"from the guest")
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            (job,) = lease_somehow(queue)
            assert job.seq == second
            assert queue.show(first).state == "leased"


def lease_somehow(queue: headway.Headway) -> list[headway.LeasedJob]:
    """What a worker does: an unknown outcome is asked again."""
    while True:
        try:
            return queue.lease("mail", wait="1m")
        except headway.OwnerStopped:
            continue


def test_callers_are_told_that_the_outcome_is_unknown(path: Path) -> None:
    """P6: and the next call finds whoever owns the file by then."""
    with child(
        path, "queue.ack(queue.lease()[0].token); print(0, flush=True); input()"
    ) as (owner):
        said(owner)
        assert said(owner) == "0"
        with headway.open(path) as queue:
            errors: list[Exception] = []

            def work() -> None:
                try:
                    queue.lease("mail", wait="10m")
                except headway.OwnerStopped as error:
                    errors.append(error)

            worker = threading.Thread(target=work)
            worker.start()
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            while worker.is_alive() and not errors:
                # It asked before the owner died, or was served by the new one.
                with suppress(headway.OwnerStopped):
                    queue.enqueue("mail")
            worker.join()
            dead = None
            while dead is None:
                # A call may still have met the owner that was dying.
                with suppress(headway.OwnerStopped):
                    dead = queue.counts("mail").dead
            assert dead == 0


def test_a_guest_has_all_verbs_and_all_errors(path: Path) -> None:
    """In one process the second to open is a guest, too."""
    with headway.open(path) as owner, headway.open(path) as guest:
        guest.configure(QUEUE)
        seq = guest.enqueue("mail", b"1", tenant="ä", labels={"a": "b"}, slo="5s")
        assert owner.show(seq) == guest.show(seq)
        assert guest.why(seq).seq == seq
        (job,) = guest.lease("mail", worker="w")
        assert job.spec.labels == {"a": "b"}
        guest.extend(job.token, lease="1m")
        guest.nack(job.token, "no", retry_in=0)
        (job,) = guest.lease("mail")
        assert job.errors[0].text == "no"
        guest.wait(job.token, "key", "1m")
        assert guest.reply("mail", "key", b"yes") == "resolved"
        (job,) = guest.lease("mail")
        assert job.reply == b"yes"
        assert guest.ack(job.token) == []
        assert guest.counts("mail") == owner.counts("mail")
        assert guest.history() == owner.history()
        guest.pause("mail")
        assert guest.lease("mail") == []
        with pytest.raises(LeaseLost):
            guest.nack(job.token)
        with pytest.raises(UnknownQueue, match="there is no queue 'x'"):
            guest.enqueue("x")
        with pytest.raises(BadValue, match="max"):
            guest.lease(most=20_000)


def test_a_guest_operates_as_the_owner_does(path: Path) -> None:
    with headway.open(path) as owner, headway.open(path) as guest:
        owner.configure(QUEUE)
        owner.enqueue_many("mail", [headway.spec(b"x", tenant="a")] * 20)
        for job in owner.lease("mail", most=5):
            owner.nack(job.token, "broken", is_bury=True)
        owner.set_tenant("mail", "a", weight=2.0)
        assert guest.operate.queues() == owner.operate.queues()
        assert guest.operate.queue("mail").counts.dead == 5
        assert guest.operate.tenants("mail") == owner.operate.tenants("mail")
        assert guest.operate.kinds("mail").kinds == []
        assert guest.operate.schedules().schedules == []
        assert guest.operate.running().jobs == []
        assert len(guest.operate.dead("mail", text="brok").jobs) == 5
        assert guest.operate.preview_bulk("discard", "mail", tenant="a").matched == 5
        started = guest.operate.start_bulk("redrive", "mail", rate_per_s=0.01)
        stopped = guest.operate.stop_bulk(started.id)
        assert stopped.state == "stopped"
        assert guest.operate.bulks() == [stopped]
        assert guest.purge("mail") == 15 + stopped.done
        with pytest.raises(UnknownBulk):
            guest.operate.stop_bulk(99)
        with pytest.raises(BadValue, match="verb"):
            guest.operate.start_bulk("shred", "mail")
        with pytest.raises(BadValue, match="seqs"):
            guest.operate.start_bulk("redrive", "mail", seqs=[])


def test_a_guest_that_is_gone_gets_no_jobs(path: Path) -> None:
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        with child(path, "queue.lease(); queue.lease(wait='10m')") as process:
            said(process)
            while queue.counts("mail").leased == 0:
                pass
            process.send_signal(signal.SIGKILL)
            process.wait()
        seq = queue.enqueue("mail")
        jobs = queue.lease("mail", wait="1m")
        assert [job.seq for job in jobs] == [seq] or queue.show(seq).attempt == 1


def test_noise_on_the_socket_hurts_nobody(path: Path) -> None:
    with headway.open(path) as queue:
        queue.configure(QUEUE)
        address = Address(path)
        for noise in (
            b"\xff" * 64,
            b"\x00\x00\x00\x05hello",
            b"\x00\x00\x00\x03\x93\x01",
        ):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.connect(address.address)
                peer.sendall(noise)
                peer.shutdown(socket.SHUT_WR)
                assert peer.recv(1) == b""
        address.close()
        assert queue.enqueue("mail") == 1


def test_only_its_user_may_speak_to_the_owner(path: Path) -> None:
    with headway.open(path):
        mode = Path(f"{path}.sock").stat().st_mode
        assert mode & 0o077 == 0


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120) / ("e" * 120)
    folder.mkdir(parents=True)
    path = folder / ("f" * 100)
    with headway.open(path) as owner, headway.open(path) as guest:
        owner.configure(QUEUE)
        assert guest.enqueue("mail") == 1
