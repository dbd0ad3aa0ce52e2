"""Calls from node to node: connections are kept, bounded, and hung up on when given up."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headway.server.cluster.peers import Address, Lost, NotSent, Peers, packed
from headway.server.http.message import Request
from tests.server.process import PATIENCE_S
from tests.server.test_tls import certify, needs_openssl

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-more: 1\r\n\r\nok"
ASK = Request(b"GET", b"/livez", {b"host": b"client", b"accept": b"*/*"})


class Other:
    """A node that answers when it is told to."""

    def __init__(self) -> None:
        self.url = ""
        self.connections = 0
        self.closed = asyncio.Event()
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.reply = GOOD
        self.heard = b""

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        try:
            while True:
                self.heard = await reader.readuntil(b"\r\n\r\n")
                self.asked.set()
                waiting = asyncio.ensure_future(self.may_answer.wait())
                gone = asyncio.ensure_future(reader.read(1))
                both: set[asyncio.Future[object]] = {waiting, gone}  # type: ignore[arg-type]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                    return
                gone.cancel()
                await asyncio.wait({gone})
                writer.write(self.reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()
            self.closed.set()


@asynccontextmanager
async def other(tls: ssl.SSLContext | None = None) -> AsyncIterator[Other]:
    node = Other()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0, ssl=tls)
    scheme = "http" if tls is None else "https"
    node.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    node.may_answer.set()
    try:
        yield node
    finally:
        server.close()


def run(test: Callable[[], object]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test()  # type: ignore[misc]

    asyncio.run(bounded())


def test_a_connection_is_used_again() -> None:
    async def test() -> None:
        async with other() as node:
            peers = Peers(asyncio.get_running_loop())
            for _ in range(5):
                got = await peers.call(node.url, ASK, {b"headway-hop": b"1"}, 9.0)
                assert (got.status, got.body) == (200, b"ok")
                assert got.headers == ((b"x-more", b"1"),)
            assert node.connections == 1
            assert b"headway-hop: 1\r\n" in node.heard
            assert b"client" not in node.heard
            peers.close()
            await node.closed.wait()

    run(test)


def test_an_answer_that_closes_is_the_last_on_its_connection() -> None:
    async def test() -> None:
        async with other() as node:
            node.reply = GOOD.replace(b"x-more: 1", b"connection: close")
            peers = Peers(asyncio.get_running_loop())
            for number in range(1, 4):
                assert (await peers.call(node.url, ASK, {}, 9.0)).body == b"ok"
                assert node.connections == number
            peers.close()

    run(test)


def test_whoever_gives_a_call_up_hangs_up() -> None:
    async def test() -> None:
        async with other() as node:
            node.may_answer.clear()
            peers = Peers(asyncio.get_running_loop(), connections_max=1)
            call = asyncio.ensure_future(peers.call(node.url, ASK, {}, 60.0))
            await node.asked.wait()
            with pytest.raises(NotSent, match="busy"):
                await peers.call(node.url, ASK, {}, 9.0)
            call.cancel()
            await node.closed.wait()
            with pytest.raises(asyncio.CancelledError):
                await call
            with pytest.raises(Lost, match="did not answer"):
                await peers.call(node.url, ASK, {}, 0.05)
            node.may_answer.set()
            assert (await peers.call(node.url, ASK, {}, 9.0)).status == 200
            peers.close()

    run(test)


@needs_openssl
def test_the_scheme_of_an_address_says_whether_there_is_tls(tmp_path: Path) -> None:
    certify(tmp_path)
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

    async def test() -> None:
        async with other(here) as node:
            loop = asyncio.get_running_loop()
            trusting = ssl.create_default_context(cafile=tmp_path / "tls.crt")
            peers = Peers(loop, trusting)
            assert (await peers.call(node.url, ASK, {}, 9.0)).body == b"ok"
            peers.close()
            with pytest.raises(NotSent):
                await Peers(loop).call(node.url, ASK, {}, 9.0)

    run(test)


def test_what_belongs_to_one_connection_is_not_passed_on() -> None:
    headers = {
        b"host": b"a",
        b"connection": b"keep-alive",
        b"transfer-encoding": b"chunked",
        b"origin": b"http://a",
        b"headway-hop": b"1",
        b"headway-peer": b"guess",
        b"headway-partition": b"p1",
        b"authorization": b"Bearer x",
    }
    request = Request(b"HEAD", b"/v1/jobs/p1_1?x=1", headers, b"body")
    sent = packed(request, b"b:1", {b"headway-hop": b"2"})
    assert sent == (
        b"GET /v1/jobs/p1_1?x=1 HTTP/1.1\r\nhost: b:1\r\n"
        b"authorization: Bearer x\r\nheadway-hop: 2\r\ncontent-length: 4\r\n\r\nbody"
    )


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://10.0.0.1:8080", Address("10.0.0.1", 8080, is_tls=False)),
        ("https://node.example", Address("node.example", 443, is_tls=True)),
        ("http://[::1]:1", Address("::1", 1, is_tls=False)),
    ],
)
def test_addresses_are_read(url: str, found: Address) -> None:
    assert Address.parse(url) == found
    assert Address("::1", 1, is_tls=False).name == b"[::1]:1"
