"""At the gate: foreign names, other sites' pages, and headers that are no text."""

import socket

import pytest

from headway.server.guard import Guard, host_name
from headway.server.http.message import Request
from headway.server.problems import Refused
from headway.server.scopes import Bearer, Verb
from tests.server.process import PATIENCE_S, Served

PATH = "/v1/queues/mail/jobs"
JOB = {"kind": "mail"}


class Tokens:
    def __init__(self, *, is_required: bool) -> None:
        self.is_required = is_required

    def find(self, secret: bytes) -> Bearer | None:
        return None


def raw(served: Served, *lines: bytes) -> bytes:
    """The status line of the answer to exactly these lines."""
    with socket.create_connection(served.place, timeout=PATIENCE_S) as client:
        client.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
        return client.makefile("rb").readline()


def guard(*hosts: str, address: str = "127.0.0.1", is_required: bool = False) -> Guard:
    return Guard(Tokens(is_required=is_required), address, hosts)


def is_let_in(guard: Guard, host: bytes) -> bool:
    request = Request(b"GET", b"/", {b"host": host})
    try:
        guard.check_host(request)
    except Refused as refused:
        return refused.code != "misdirected"
    return True


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]", "[::1]:8080"]
)
def test_names_of_this_machine_are_answered(served: Served, host: str) -> None:
    assert served.ask("POST", PATH, JOB, host=host).status == 201


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "[::2]", "127.0.0.2", "[fe80::1]"],
)
@pytest.mark.parametrize("path", ["/livez", "/record"])
def test_an_open_server_answers_to_no_foreign_name(
    served: Served, host: str, path: str
) -> None:
    answer = served.ask("GET", path, host=host)
    assert (answer.status, answer.code) == (421, "misdirected")


@pytest.mark.parametrize(
    "host",
    [
        b"localhost@evil.example",
        b"localhost:80:80",
        b"localhost:x",
        b"localhost, evil.example",
        b"a b",
        b"[::1",
        b"::1",
        b"loc\xe4lhost",
        b"localhost/x",
    ],
)
def test_what_is_no_host_is_400(served: Served, host: bytes) -> None:
    status = raw(served, b"GET /livez HTTP/1.1", b"Host: " + host)
    assert status.startswith(b"HTTP/1.1 400 ")


def test_a_missing_host_is_no_way_around_the_check(served: Served) -> None:
    assert raw(served, b"GET /livez HTTP/1.0").startswith(b"HTTP/1.1 421 ")
    assert raw(served, b"GET /livez HTTP/1.1").startswith(b"HTTP/1.1 400 ")
    named = raw(served, b"GET /livez HTTP/1.0", b"Host: localhost")
    assert named.startswith(b"HTTP/1.1 200 ")


def test_a_server_with_tokens_may_be_called_by_any_name_unless_it_is_told() -> None:
    assert is_let_in(guard(is_required=True), b"any.example")
    assert is_let_in(guard(is_required=True), b"")
    narrow = guard("Queue.example:8080", is_required=True)
    assert is_let_in(narrow, b"queue.example:443")
    assert is_let_in(narrow, b"localhost")
    assert not is_let_in(narrow, b"any.example")
    assert not is_let_in(narrow, b"")


def test_names_that_are_given_are_answered_without_tokens_too() -> None:
    assert is_let_in(guard("queue.example"), b"queue.example")
    assert not is_let_in(guard("queue.example"), b"other.example")
    assert is_let_in(guard(address="127.0.0.9"), b"127.0.0.9:80")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("::1", "[::1]"),
        ("[FD00::1]:80", "[fd00::1]"),
        ("Example.org:80", "example.org"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_host_is_named_as_its_header_would(given: str, name: str) -> None:
    assert host_name(given) == name


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "Cross-Site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://localhost:1"},
        {"origin": "http://localhost.evil.example"},
    ],
)
def test_pages_of_other_sites_change_nothing(
    served: Served, headers: dict[str, str]
) -> None:
    for method, path, body in (
        ("POST", PATH, JOB),
        ("POST", "/record", {"payload": "x"}),
        ("DELETE", "/v1/jobs/p1_1", None),
        # An image would do: it is a GET, and it takes a job away.
        ("GET", "/record", None),
    ):
        answer = served.ask(method, path, body, **headers)
        assert answer.status == 403, (method, path)
    assert served.ask("GET", "/livez", **headers).status == 200


def test_head_takes_no_job(served: Served) -> None:
    assert served.ask("HEAD", "/record").status == 405
    assert served.ask("HEAD", "/v1/queues").status == 200


def test_no_origin_is_our_own_where_there_is_no_host() -> None:
    request = Request(b"POST", b"/", {b"origin": b"null"})
    with pytest.raises(Refused, match="cross_site"):
        guard(is_required=True).check_site(request, Verb.WORK)


def test_pages_of_its_own_may_ask(served: Served) -> None:
    host, port = served.place
    headers = {"origin": f"http://{host}:{port}", "sec_fetch_site": "same-origin"}
    assert served.ask("POST", PATH, JOB, **headers).status == 201
    assert served.ask("POST", PATH, JOB, sec_fetch_site="none").status == 201


@pytest.mark.parametrize(
    "name", [b"Idempotency-Key", b"traceparent", b"tracestate", b"Host"]
)
@pytest.mark.parametrize(
    "value", [b"k\xe9y", b"\xff", b"\xc3\xa9", b"a\tb", b"a\x01b", b"a\x7fb", b"a\x00b"]
)
def test_headers_that_are_no_plain_text_are_400(
    served: Served, name: bytes, value: bytes
) -> None:
    host = b"Host: localhost"
    given = name + b": " + value
    status = raw(
        served,
        b"POST /v1/queues/mail/jobs HTTP/1.1",
        *([given] if name == b"Host" else [host, given]),
        b"Content-Type: application/json",
        b"Content-Length: 2",
        b"",
        b"{}",
    )
    assert status.startswith(b"HTTP/1.1 400 "), status


@pytest.mark.parametrize(
    ("name", "refused"),
    [(b"Origin", b"403"), (b"Sec-Fetch-Site", b"403"), (b"Content-Type", b"415")],
)
def test_other_headers_that_are_no_text_are_refused_by_their_own_rule(
    served: Served, name: bytes, refused: bytes
) -> None:
    status = raw(
        served,
        b"POST /v1/queues/mail/jobs HTTP/1.1",
        b"Host: localhost",
        name + b": \xff\xe9",
        b"Content-Length: 2",
        b"",
        b"{}",
    )
    assert status.startswith(b"HTTP/1.1 " + refused), status


@pytest.mark.parametrize("key", ["", '""', "x" * 1_025])
def test_an_idempotency_key_has_1_to_1024_characters(served: Served, key: str) -> None:
    answer = served.ask("POST", PATH, JOB, idempotency_key=key)
    assert (answer.status, answer.json["key"]) == (400, "Idempotency-Key")


def test_repeated_request_with_another_trace_is_the_same_job(served: Served) -> None:
    first, again = (
        served.ask("POST", PATH, JOB, idempotency_key="once", traceparent=trace)
        for trace in (f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'c' * 32}-{'d' * 16}-01")
    )
    assert (first.status, again.status) == (201, 201)
    assert again.json["jobs"][0]["id"] == first.json["jobs"][0]["id"]
    assert again.json["duplicates"] == 1
