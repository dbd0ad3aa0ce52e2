"""Clients that take too long are cut off, and only they."""

import msgspec
import pytest

from headway.server.http.limits import Limits
from tests.server.http_corpus import HOST, LENGTH, get, post
from tests.server.serving_fixture import PATIENCE_S, serving

SOON_S = 0.05
UNHURRIED_S = 1.0
"""Where a slow machine must not take so long over what is in time."""


def hasty(**limits: float) -> Limits:
    """As ever but for these, which are looked at all the time."""
    return msgspec.convert({"sweep_s": 0.01, **limits}, Limits)


@pytest.mark.parametrize(
    "begun",
    [b"G", b"GET /livez HTTP/1.1\r\n", b"GET /livez HTTP/1.1\r\n" + HOST + b"X: "],
)
def test_head_that_does_not_end_is_answered_by_408(begun: bytes) -> None:
    with serving(hasty(head_s=SOON_S)) as server:
        with server.raw() as client:
            client.send(begun)
            assert client.answer().status == 408
            assert client.rest() == b""
        assert server.ask("GET", "/livez").status == 200


def test_head_that_trickles_in_is_answered_by_408() -> None:
    with serving(hasty(head_s=SOON_S)) as server, server.raw() as client:
        client.send(b"GET /livez HTTP/1.1\r\n" + HOST)
        # Each byte is news, and none of them is a reason to wait any longer.
        client.flood(b"X: y\r\n", 1 << 13)
        assert client.answer().status in (408, 431)
        assert client.rest() == b""


@pytest.mark.parametrize(
    "begun",
    [
        post(LENGTH, body=b"{"),
        post(LENGTH, body=b""),
        post(b"Transfer-Encoding: chunked", body=b"1\r\n{\r\n"),
    ],
)
def test_body_that_does_not_end_is_answered_by_408(begun: bytes) -> None:
    with serving(hasty(body_s=SOON_S)) as server:
        with server.raw() as client:
            client.send(begun)
            assert client.answer().status == 408
            assert client.rest() == b""
        lease = {"queues": ["never"]}
        assert server.ask("POST", "/v1/lease", lease).json == {"jobs": []}


@pytest.mark.parametrize("begun", [b"", b"\r\n" * 3, get()])
def test_connection_without_a_request_is_closed(begun: bytes) -> None:
    with serving(hasty(idle_s=UNHURRIED_S)) as server, server.raw() as client:
        client.send(begun)
        if begun.startswith(b"GET"):
            assert client.answer().status == 200
        assert client.rest() == b""


def test_long_poll_outlives_every_deadline_of_the_client() -> None:
    short = hasty(
        idle_s=UNHURRIED_S, head_s=UNHURRIED_S, body_s=UNHURRIED_S, write_s=SOON_S
    )
    body = b'{"queues":["later"],"wait":2500}'
    length = b"Content-Length: %d" % len(body)
    with serving(short) as server, server.raw() as client:
        client.send(post(length, body=body, path=b"/v1/lease"))
        assert client.answer().json == {"jobs": []}


def test_requests_that_wait_for_the_server_are_not_hurried() -> None:
    """So many that reading stops in the middle of one, behind a long poll."""
    limits = hasty(head_s=UNHURRIED_S, body_s=UNHURRIED_S, pipelined=2)
    body = b'{"queues":["later"],"wait":2500}'
    length = b"Content-Length: %d" % len(body)
    sent = post(length, body=body, path=b"/v1/lease") + get() * 3_000
    with serving(limits) as server, server.raw() as client:
        client.send(sent)
        assert [client.answer().status for _ in range(3_001)] == [200] * 3_001


def test_slow_head_behind_a_long_poll_does_not_cost_its_answer() -> None:
    body = b'{"queues":["later"],"wait":500}'
    length = b"Content-Length: %d" % len(body)
    limits = hasty(head_s=SOON_S)
    with serving(limits) as server, server.raw() as client:
        client.send(post(length, body=body, path=b"/v1/lease") + b"GET /livez")
        assert [client.answer().status for _ in range(2)] == [200, 408]
        assert client.rest() == b""


def test_answers_that_are_not_read_end_the_connection() -> None:
    """It asks for more than all buffers hold, and sending fails in the end."""
    with serving(hasty(write_s=SOON_S)) as server:
        with server.raw(buffer=4_096) as client:
            assert client.push(get(b"/openapi.json") * 100) > 0
        assert server.ask("GET", "/livez").status == 200


def test_slow_reader_gets_everything_in_the_end() -> None:
    count = 400
    with serving(hasty(pipelined=4)) as server, server.raw() as client:
        client.send(get(b"/openapi.json") * count)
        found = [client.answer().body for _ in range(count)]
    assert len(set(found)) == 1


def test_half_head_left_behind_unread_answers_is_still_timed() -> None:
    """A connection that was full has its deadline again when it is empty."""
    count = 200
    limits = hasty(head_s=0.5)
    with serving(limits) as server, server.raw() as client:
        client.send(get(b"/openapi.json") * count + b"GET /live")
        assert [client.answer().status for _ in range(count)] == [200] * count
        assert client.answer().status == 408
        assert client.rest() == b""


def test_refused_client_that_keeps_talking_is_cut_off() -> None:
    with serving(hasty(linger_s=SOON_S)) as server:
        with server.raw() as client:
            client.send(b"nonsense\r\n")
            assert client.answer().status == 400
            assert client.flood(b"x" * 60_000, 1 << 30) < 1 << 30
        with server.raw() as client:
            client.send(b"nonsense\r\n")
            assert client.answer().status == 400
            assert client.rest() == b""


def test_one_address_has_so_many_connections_and_no_more() -> None:
    with serving(Limits(connections_each=3)) as server:
        clients = [server.raw() for _ in range(3)]
        for client in clients:
            client.send(get())
            assert client.answer().status == 200
        with server.raw() as fourth:
            assert fourth.rest() == b""
        clients[0].send(get(b"/livez", b"Connection: close"))
        clients[0].answer()
        assert clients[0].rest() == b""
        with server.raw() as another:
            another.send(get())
            assert another.answer().status == 200
        for client in clients:
            client.socket.close()


def test_server_that_stops_answers_what_it_has_begun() -> None:
    body = b'{"queues":["later"],"wait":60000}'
    length = b"Content-Length: %d" % len(body)
    with serving() as server, server.raw() as idle, server.raw() as client:
        idle.send(get())
        assert idle.answer().status == 200
        client.send(post(length, body=body, path=b"/v1/lease"))
        server.ask("GET", "/readyz")
        server.process.terminate()
        assert client.answer().json == {"jobs": []}
        assert client.rest() == b""
        assert idle.rest() == b""
        assert server.process.wait(PATIENCE_S) == 0
