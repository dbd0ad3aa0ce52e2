"""The reader and the connection, without a socket: any split gives the same requests."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.server.http.connection import Connection, Connections
from headway.server.http.limits import Limits
from headway.server.http.message import Request, Response
from headway.server.http.reader import Reader, Unreadable
from headway.server.problems import of_http

WORD = st.text("abcdefghij", min_size=1, max_size=9).map(str.encode)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, bytes, bytes, bytes]:
    """The method, target, body and bytes of a good request."""
    method = draw(st.sampled_from([b"GET", b"POST", b"DELETE", b"HEAD"]))
    target = b"/" + draw(WORD)
    body = draw(st.binary(max_size=60))
    lines = b"".join(b"X-%s: %s\r\n" % (draw(WORD), draw(WORD)) for _ in range(2))
    if draw(st.booleans()):
        framed = b""
        rest = body
        while rest:
            size = draw(st.integers(1, len(rest)))
            framed += b"%x%s\r\n%s\r\n" % (
                size,
                draw(st.sampled_from([b"", b";a=b"])),
                rest[:size],
            )
            rest = rest[size:]
        trailer = draw(st.sampled_from([b"", b"Host: elsewhere\r\n"]))
        framed += b"0\r\n" + trailer + b"\r\n"
        lines += b"Transfer-Encoding: chunked\r\n"
    else:
        framed = body
        if body or draw(st.booleans()):
            lines += b"Content-Length: %d\r\n" % len(body)
    empty = b"\r\n" * draw(st.integers(0, 2))
    head = b"%s%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (empty, method, target, lines)
    return method, target, body, head + framed


def pieces(data: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(cuts)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(requests(), max_size=8), st.lists(st.integers(0, 10_000), max_size=40))
def test_requests_are_the_same_however_they_are_split(
    sent: list[tuple[bytes, bytes, bytes, bytes]], places: list[int]
) -> None:
    found: list[Request] = []

    def arrived(request: Request, *, is_last: bool) -> None:
        assert not is_last
        found.append(request)

    reader = Reader(Limits(), arrived, lambda: None, "peer")
    for piece in pieces(b"".join(one[3] for one in sent), places):
        reader.feed(piece)
    got = [(one.method, one.target, one.body) for one in found]
    assert got == [one[:3] for one in sent]
    assert all(one.headers[b"host"] == b"a" for one in found)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=9))
def test_garbage_is_refused_or_waited_for_and_nothing_else(
    data: bytes, places: list[int]
) -> None:
    reader = Reader(Limits(), lambda request, is_last: None, lambda: None, "peer")
    statuses = []
    for piece in pieces(b"GET / HTTP/1.1\r\nHost: a\r\n" + data, places):
        try:
            reader.feed(piece)
        except Unreadable as error:
            statuses.append(error.status)
            break
    assert statuses in ([], [400], [415])


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and can be as full as a test likes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_reading_now = True
        self.is_shut = False

    def write(self, data: object) -> None:
        assert not self.is_shut, "written after the end"
        assert isinstance(data, bytes)
        self.written += data

    def write_eof(self) -> None:
        self.is_shut = True

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.is_shut = True

    def abort(self) -> None:
        self.is_shut = True

    def is_closing(self) -> bool:
        return self.is_shut

    def pause_reading(self) -> None:
        assert self.is_reading_now
        self.is_reading_now = False

    def resume_reading(self) -> None:
        assert not self.is_reading_now
        self.is_reading_now = True


class Later:
    """An answer that comes when the test says so."""

    is_waiting = False
    is_abandoned = False

    def abandon(self) -> None:
        self.is_abandoned = True


class Bench:
    """One connection with a handler that answers at once, or when told to."""

    def __init__(self, limits: Limits, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.open: list[Callable[[], None]] = []
        self.is_at_once = False
        self.later = Later()
        self.wire = Wire()
        self.connection = Connection(Connections(self.handle, of_http, limits), loop)
        self.connection.connection_made(self.wire)

    def handle(self, request: Request, tell: Callable[[Response], None]) -> Later:
        def answer() -> None:
            tell(Response(200, request.target, b"text/plain"))

        if self.is_at_once:
            answer()
        else:
            self.open.append(answer)
            assert len(self.open) == 1, "one request at a time"
        return self.later

    def settle(self) -> None:
        """Lets the loop turn until nothing more is written."""
        before = -1
        while before != len(self.wire.written):
            before = len(self.wire.written)
            for _ in range(3):
                self.loop.run_until_complete(asyncio.sleep(0))

    def finish(self) -> None:
        """Answers everything."""
        self.settle()
        while self.open:
            self.open.pop()()
            self.settle()


def bodies(written: bytes) -> list[bytes]:
    """The targets that were answered, in their order."""
    found = []
    while written:
        head, _, written = written.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        found.append(written[:length])
        written = written[length:]
    return found


STEP = st.sampled_from(["feed", "feed", "feed", "answer", "full", "empty", "turn"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    count=st.integers(0, 60),
    places=st.lists(st.integers(0, 10_000), max_size=30),
    steps=st.lists(STEP, max_size=80),
    pipelined=st.integers(1, 4),
    is_at_once=st.booleans(),
    has_eof=st.booleans(),
)
def test_every_request_is_answered_once_in_order_whatever_happens_between(
    count: int,
    places: list[int],
    steps: list[str],
    pipelined: int,
    is_at_once: bool,
    has_eof: bool,
) -> None:
    targets = [b"/%d" % number for number in range(count)]
    data = b"".join(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % one for one in targets)
    loop = asyncio.new_event_loop()
    try:
        bench = Bench(Limits(pipelined=pipelined), loop)
        bench.is_at_once = is_at_once
        rest = pieces(data, places)[::-1] if data else []
        is_full = False
        for step in steps:
            if step == "feed" and rest and bench.wire.is_reading_now:
                bench.connection.data_received(rest.pop())
            elif step == "answer" and bench.open:
                bench.open.pop()()
            elif step == "full" and not is_full:
                is_full = True
                bench.connection.pause_writing()
            elif step == "empty" and is_full:
                is_full = False
                bench.connection.resume_writing()
            elif step == "turn":
                bench.settle()
        if is_full:
            bench.connection.resume_writing()
        while rest:
            bench.settle()
            while not bench.wire.is_reading_now:
                bench.finish()
            bench.connection.data_received(rest.pop())
        if has_eof:
            while not bench.wire.is_reading_now:
                bench.finish()
            if not bench.connection.eof_received():
                bench.wire.close()
        bench.finish()
        assert bodies(bench.wire.written) == targets
        assert bench.wire.is_shut == has_eof
    finally:
        loop.close()


def test_more_requests_than_may_wait_stay_bytes() -> None:
    loop = asyncio.new_event_loop()
    try:
        bench = Bench(Limits(pipelined=2), loop)
        one = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        bench.connection.data_received(one * 2_000)
        assert not bench.wire.is_reading_now
        assert len(bench.connection._waiting) <= 2 + (16 << 10) // len(one)
        bench.finish()
        assert len(bodies(bench.wire.written)) == 2_000
        assert bench.wire.is_reading_now
    finally:
        loop.close()


@pytest.mark.parametrize("is_full", [False, True])
def test_stop_sends_the_answers_that_are_under_way(is_full: bool) -> None:
    loop = asyncio.new_event_loop()
    try:
        bench = Bench(Limits(), loop)
        one = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n"
        bench.connection.data_received(b"".join(one % number for number in range(3)))
        if is_full:
            bench.connection.pause_writing()
        bench.connection.finish()
        if is_full:
            bench.connection.resume_writing()
        bench.finish()
        assert bodies(bench.wire.written) == [b"/0", b"/1", b"/2"]
        assert bench.wire.is_shut
    finally:
        loop.close()


def test_deadlines_run_only_while_it_is_the_clients_turn() -> None:
    loop = asyncio.new_event_loop()
    try:
        bench = Bench(Limits(pipelined=1), loop)
        late_s = loop.time() + 10_000.0
        one = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        bench.connection.data_received(one * 2 + b"GET /half")
        bench.connection.check(late_s)
        assert (bench.wire.written, bench.wire.is_shut) == (b"", False)
        bench.finish()
        assert len(bodies(bench.wire.written)) == 2
        bench.connection.check(late_s)
        assert b" 408 " in bench.wire.written
    finally:
        loop.close()


@pytest.mark.parametrize("how", ["eof", "abort", "lost"])
def test_who_waits_for_jobs_is_given_up_before_the_transport_tells_its_end(
    how: str,
) -> None:
    """Jobs granted between the two would be handed to nobody."""
    loop = asyncio.new_event_loop()
    try:
        bench = Bench(Limits(), loop)
        bench.later.is_waiting = True
        bench.connection.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        if how == "eof":
            assert not bench.connection.eof_received()
        elif how == "abort":
            bench.connection.abort()
        else:
            bench.connection.connection_lost(None)
        assert bench.later.is_abandoned
        bench.finish()
        assert bench.wire.written == b""
    finally:
        loop.close()


def test_slow_head_behind_an_answer_is_refused_after_it() -> None:
    loop = asyncio.new_event_loop()
    try:
        bench = Bench(Limits(), loop)
        bench.connection.data_received(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /half")
        bench.connection.check(loop.time() + 10_000.0)
        assert bench.wire.written == b""
        bench.finish()
        first, second = bodies(bench.wire.written)
        assert first == b"/a"
        assert b"too_slow" in second
        assert bench.wire.is_shut
    finally:
        loop.close()
