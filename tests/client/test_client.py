"""The clients against a real server, and against one whose answers get lost."""

import asyncio
import contextlib
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import headway
from headway.client.awaited import AsyncClient
from headway.client.blocking import Client
from headway.client.errors import Refused
from headway.client.origin import Origin
from headway.core.errors import BadValue, IdempotencyConflict, QueueFull, RuleBroken
from headway.core.spec import JobSpec
from headway.wire.work import Failure
from tests.server.process import PATIENCE_S, Serve, Served, make_token

JOB = JobSpec(kind="k", payload=b'{"a":1}', is_json=True)


def counts(server: Served, queue: str) -> dict[str, int]:
    found: dict[str, int] = server.ask("GET", f"/v1/queues/{queue}").json["counts"]
    return found


@contextlib.contextmanager
def losing(server: Served, lost: int) -> Iterator[str]:
    """A way to the server on which the answers to the first requests get lost."""
    listener = socket.create_server(("127.0.0.1", 0))
    left = [lost]

    def pump(client: socket.socket) -> None:
        with client, socket.create_connection(server.place) as upstream:
            while True:
                ready, _, _ = select.select([client, upstream], [], [])
                source = ready[0]
                data = source.recv(1 << 20)
                if not data:
                    return
                if source is client:
                    upstream.sendall(data)
                elif left[0] > 0:
                    left[0] -= 1
                    return
                else:
                    client.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=pump, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # A thread that waits in accept is not woken by close alone.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_enqueue_whose_answer_is_lost_makes_one_job(
    served: Served, is_async: bool
) -> None:
    queue = f"lost-{is_async}"

    async def awaited(url: str) -> list[str]:
        client = AsyncClient(url)
        try:
            return await client.enqueue(queue, [JOB, JOB])
        finally:
            await client.close()

    with losing(served, 2) as url:
        if is_async:
            ids = asyncio.run(awaited(url))
        else:
            client = Client(url)
            ids = client.enqueue(queue, [JOB, JOB])
            client.close()
    assert len(set(ids)) == 2
    assert counts(served, queue)["ready"] == 2


def test_nobody_there_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"

    async def awaited() -> None:
        await AsyncClient(url, tries=2).ack(["x"])

    with pytest.raises(headway.Unreachable, match=url):
        asyncio.run(awaited())
    with pytest.raises(headway.Unreachable, match=url):
        Client(url).enqueue("q", [JOB])


def test_problems_become_exceptions_with_their_code(served: Served) -> None:
    client = Client(served.address)
    client.configure(headway.QueueConfig(name="small", max_length=1))
    client.enqueue("small", [JOB])
    with pytest.raises(QueueFull) as full:
        client.enqueue("small", [JOB])
    assert full.value.code == "queue_full"
    key = JobSpec(payload=b"1", is_json=True, idempotency_key="k")
    client.enqueue("keys", [key])
    other = JobSpec(payload=b"2", is_json=True, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        client.enqueue("keys", [other])
    with pytest.raises(Refused) as refused:
        client.enqueue("no such/name", [JOB])
    assert isinstance(refused.value, RuleBroken)
    assert refused.value.status in (400, 404)
    client.close()


def test_token_is_sent_and_asked_for(tmp_path: Path, serve: Serve) -> None:
    token = make_token(tmp_path / "data", "app", "enqueue:q")
    server = serve()
    nobody = Client(server.address)
    with pytest.raises(Refused) as refused:
        nobody.enqueue("q", [JOB])
    assert refused.value.code == "unauthorized"
    nobody.close()
    client = Client(server.address, token)
    assert client.enqueue("q", [JOB])
    with pytest.raises(Refused) as forbidden:
        client.enqueue("other", [JOB])
    assert forbidden.value.code == "forbidden"
    client.close()


def test_lease_that_is_cancelled_takes_no_job(served: Served) -> None:
    async def run() -> None:
        client = AsyncClient(served.address)
        lease = asyncio.ensure_future(client.lease(["left"], 1, wait_ms=60_000))
        await client.enqueue("other", [JOB])
        lease.cancel()
        await asyncio.gather(lease, return_exceptions=True)
        await client.close()
        await client.enqueue("left", [JOB])
        jobs = await client.lease(["left"], 1)
        assert [job.attempt for job in jobs] == [1]
        await client.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_jobs_granted_to_a_cancelled_lease_are_given_back(served: Served) -> None:
    """However the two race, nothing stays in nobody's hands."""

    async def run() -> None:
        client = AsyncClient(served.address)
        for turn in range(40):
            queue = f"race-{turn}"
            lease = asyncio.ensure_future(
                client.lease([queue], 1, wait_ms=60_000, lease_ms=600_000)
            )
            sent = asyncio.ensure_future(client.enqueue(queue, [JOB]))
            for _ in range(turn):
                await asyncio.sleep(0)
            lease.cancel()
            done, _ = await asyncio.gather(lease, sent, return_exceptions=True)
            if not isinstance(done, BaseException):
                await client.release([job.token for job in done])
            await client.close()
            again = await client.lease([queue], 1, wait_ms=30_000)
            assert [job.attempt for job in again] == [1]
        await client.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def test_all_that_workers_ask(served: Served) -> None:
    async def run() -> None:
        client = AsyncClient(served.address)
        await client.enqueue("verbs", [JOB] * 5)
        jobs = await client.lease(["verbs"], 5, lease_ms=60_000, worker="w")
        done, failed, back, waits, late = [job.token for job in jobs]
        assert (await client.extend([done, "p1_none.verbs"], 90_000)).stale == [
            "p1_none.verbs"
        ]
        assert (await client.ack([done])).stale == []
        assert (await client.ack([done])).stale == [done]
        bury = Failure(failed, "it broke", bury=True)
        assert (await client.nack([bury])).stale == []
        assert (await client.release([back])).stale == []
        await client.wait(waits, "key /1", 60_000)
        with pytest.raises(RuleBroken) as twice:
            await client.wait(late, "key /1", 60_000)
        assert twice.value.code == "wrong_state"
        assert await client.reply("verbs", "key /1", b"17") == "resolved"
        (more, _) = await client.lease(["verbs"], 5)
        assert more.attempt == 1
        await client.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert counts(served, "verbs")["dead"] == 1


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://h",
        "http://",
        "http://h/path",
        "http://u:p@h",
        "http://h?q=1",
        "http://h:1x",
    ],
)
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(BadValue):
        Origin(url)


@pytest.mark.parametrize("url", ["", "jobs.db", "sqlite:///", "postgres://h/x"])
def test_app_says_which_addresses_there_are(url: str) -> None:
    with pytest.raises(BadValue, match="url"):
        headway.App(url)


def test_forked_process_has_connections_of_its_own(served: Served) -> None:
    client = Client(served.address)
    client.enqueue("forked", [JOB])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for _ in range(20):
                client.enqueue("forked", [JOB])
            status = 0
        finally:
            os._exit(status)
    for _ in range(20):
        client.enqueue("forked", [JOB])
    _, status = os.waitpid(child, 0)
    client.close()
    assert status == 0
    assert counts(served, "forked")["ready"] == 41
