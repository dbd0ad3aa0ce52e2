"""Clients that know several servers: another one is asked when one does not answer."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import headway
from headway.cli.remote import NoAnswer, Remote
from headway.client.awaited import AsyncClient
from headway.client.blocking import Client
from headway.client.origin import Origins
from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from tests.client.test_client import counts, losing
from tests.server.process import Served

JOB = JobSpec(kind="k", payload=b'{"a":1}', is_json=True)
STOPPED = b'{"type":"","title":"stopped","status":503,"code":"stopped"}'


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two servers that know nothing of each other."""
    with ExitStack() as stack:
        first, second = (Served(tmp_path / name) for name in ("one", "two"))
        stack.callback(first.stop)
        stack.callback(second.stop)
        yield first, second


@contextmanager
def stopped() -> Iterator[tuple[str, list[str]]]:
    """A server whose partition is not served; and what it was asked."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(503)
            self.send_header("content-length", str(len(STOPPED)))
            self.end_headers()
            self.wfile.write(STOPPED)

        def log_message(self, *_: object) -> None:
            return None

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def enqueue(urls: str, is_async: bool, calls: int = 1, tries: int = 6) -> None:
    async def awaited() -> None:
        client = AsyncClient(urls, tries=tries)
        for _ in range(calls):
            await client.enqueue("q", [JOB])
        await client.close()

    if is_async:
        asyncio.run(awaited())
        return
    client = Client(urls)
    for _ in range(calls):
        client.enqueue("q", [JOB])
    client.close()


@pytest.mark.parametrize("is_async", [False, True])
def test_one_that_is_not_there_is_passed_over(
    pair: tuple[Served, Served], is_async: bool
) -> None:
    """Even by a client that sends each call once: nothing was sent."""
    first, _ = pair
    for _ in range(8):
        enqueue(f"{nobody()}, {first.address},{nobody()}", is_async, tries=1)
    assert counts(first, "q")["ready"] == 8


@pytest.mark.parametrize("is_async", [False, True])
def test_one_whose_partition_is_not_served_is_left(
    pair: tuple[Served, Served], is_async: bool
) -> None:
    first, _ = pair
    with stopped() as (url, asked):
        for _ in range(12):
            enqueue(f"{url},{first.address}", is_async, calls=3)
    assert counts(first, "q")["ready"] == 36
    # A client that was told so once does not come back.
    assert len(asked) <= 12


@pytest.mark.parametrize("is_async", [False, True])
def test_clients_stay_with_one_and_spread_over_all(
    pair: tuple[Served, Served], is_async: bool
) -> None:
    urls = ",".join(server.address for server in pair)
    sizes: Counter[int] = Counter()
    before = [0, 0]
    for _ in range(24):
        enqueue(urls, is_async, calls=3)
        known = [counts(server, "q")["ready"] if _has(server) else 0 for server in pair]
        sizes.update(now - then for now, then in zip(known, before, strict=True))
        before = known
    assert sizes == {3: 24, 0: 24}
    assert all(before)


def _has(server: Served) -> bool:
    return server.ask("GET", "/v1/queues/q").status == 200


@pytest.mark.parametrize("is_async", [False, True])
def test_a_lost_answer_makes_no_second_job_on_the_same_server(
    pair: tuple[Served, Served], is_async: bool
) -> None:
    """The call goes to the next address under the same key."""
    first, _ = pair
    with losing(first, 1) as one, losing(first, 1) as other:
        enqueue(f"{one},{other}", is_async)
    assert counts(first, "q")["ready"] == 1


def test_a_client_goes_on_when_its_server_is_killed(
    pair: tuple[Served, Served],
) -> None:
    first, second = pair
    client = Client(f"{first.address},{second.address}")
    client.enqueue("q", [JOB])
    mine, other = (first, second) if _has(first) else (second, first)
    mine.kill()
    client.enqueue("q", [JOB])
    client.close()
    assert counts(other, "q")["ready"] == 1


def test_an_app_and_the_command_line_take_several(pair: tuple[Served, Served]) -> None:
    first, second = pair
    second.kill()
    urls = f"{first.address},{second.address}"
    with headway.App(urls) as app:
        handler = app.job(queue="q", kind="k")(lambda: None)
        handler.enqueue()
    for _ in range(6):
        remote = Remote(urls, None)
        assert remote.get("v1", "queues", "q")["counts"]["ready"] == 1
        remote.close()
    first.kill()
    remote = Remote(urls, None)
    with pytest.raises(NoAnswer) as told:
        remote.get("v1", "queues", "q")
    assert not told.value.is_unknown


@pytest.mark.parametrize(
    "urls", ["http://a:1,", ",http://a:1", "http://a:1,b:2", "http://a:1,http://a:1"]
)
def test_lists_that_are_none_are_refused(urls: str) -> None:
    with pytest.raises(BadValue, match="url"):
        Origins(urls)
