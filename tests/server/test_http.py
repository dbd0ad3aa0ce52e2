"""Broken HTTP against a real server: refused, closed, and nobody else is hurt."""

from collections.abc import Iterator

import pytest

from tests.server.http_corpus import (
    ACCEPTED,
    CORPUS,
    HOST,
    JOB,
    JSON,
    LENGTH,
    Case,
    get,
    post,
)
from tests.server.serving_fixture import Serving, serving

LIMIT = 16 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with serving() as running:
        yield running
        assert running.process.poll() is None


def jobs_of(server: Serving, queue: str) -> list[object]:
    answer = server.ask("POST", "/v1/lease", {"queues": [queue], "max": 1_000})
    found = answer.json["jobs"]
    if found:
        tokens = [job["token"] for job in found]
        server.ask("POST", "/v1/ack", {"tokens": tokens})
    return [job.get("payload") for job in found]


def statuses(server: Serving, case: Case) -> None:
    with server.raw() as client:
        client.send(case.sent)
        found = [client.answer() for _ in case.statuses]
        assert tuple(answer.status for answer in found) == case.statuses
        for answer in found:
            if answer.status >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json["status"] == answer.status
        is_told = found[-1].headers.get("connection") == "close"
        assert is_told == case.is_closed
        if case.is_closed:
            assert client.rest() == b""
        else:
            client.send(get())
            assert client.answer().status == 200


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_broken_requests_are_refused_and_change_nothing(
    server: Serving, case: Case
) -> None:
    statuses(server, case)
    assert server.ask("GET", "/livez").status == 200
    assert jobs_of(server, "never") == []


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_odd_but_good_requests_are_carried_out_once(
    server: Serving, case: Case
) -> None:
    queue = f"good-{case.name}"
    sent = case.sent.replace(b"/never/", b"/%s/" % queue.encode())
    statuses(server, case._replace(sent=sent))
    assert jobs_of(server, queue) == [1]


def test_corpus_is_large_enough() -> None:
    assert len(CORPUS) + len(ACCEPTED) >= 60


@pytest.mark.parametrize("size", [1, 1_000, 60_000])
def test_endless_chunks_are_cut_off_at_the_limit(server: Serving, size: int) -> None:
    head = post(b"Transfer-Encoding: chunked", body=b"")
    chunk = b"%x\r\n%s\r\n" % (size, b" " * size)
    piece = chunk * max(1, 60_000 // len(chunk))
    with server.raw() as client:
        client.send(head)
        # Beyond the limit there are only the buffers between the two processes.
        taken = client.flood(piece, LIMIT * 4)
        assert taken < LIMIT * 3
        assert client.answer().status == (413 if size > 1 else 400)
        assert client.rest() == b""
    assert jobs_of(server, "never") == []


def test_body_that_is_told_too_large_is_refused_unread(server: Serving) -> None:
    with server.raw() as client:
        client.send(
            post(b"Content-Length: 99999999", b"Expect: 100-continue", body=b"")
        )
        assert client.answer().status == 413
        assert client.rest() == b""


def test_body_is_sent_after_the_server_has_asked_for_it(server: Serving) -> None:
    with server.raw() as client:
        client.send(
            post(LENGTH, b"Expect: 100-continue", body=b"", path=QUEUE % b"asked")
        )
        # The standard library skips the interim answer, so it is looked for here.
        interim = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert client.socket.recv(len(interim)) == interim
        client.send(JOB)
        assert client.answer().status == 201
    assert jobs_of(server, "asked") == [1]


def test_answers_come_before_the_word_to_go_on(server: Serving) -> None:
    path = QUEUE % b"asked-later"
    first = post(LENGTH, path=path)
    second = post(LENGTH, b"Expect: 100-continue", body=b"", path=path)
    with server.raw() as client:
        client.send(first + second)
        assert client.answer().status == 201
        client.send(JOB)
        assert client.answer().status == 201
    assert jobs_of(server, "asked-later") == [1, 1]


QUEUE = b"/v1/queues/%s/jobs"


@pytest.mark.parametrize("count", [2, 17, 300])
def test_pipelined_requests_are_all_answered_in_order(
    server: Serving, count: int
) -> None:
    queue = f"pipelined-{count}"
    sent = b""
    for number in range(count):
        body = b'{"payload":%d}' % number
        length = b"Content-Length: %d" % len(body)
        sent += post(length, body=body, path=QUEUE % queue.encode())
    with server.raw() as client:
        client.send(sent)
        ids = [client.answer().json["jobs"][0]["id"] for _ in range(count)]
    numbers = [int(one.rpartition("_")[2]) for one in ids]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == count
    found: list[object] = []
    while more := jobs_of(server, queue):
        found += more
    assert sorted(found) == list(range(count))  # type: ignore[type-var]


def test_pipelined_answers_of_many_kinds_keep_their_order(server: Serving) -> None:
    kinds = [(get(), 200), (get(b"/no"), 404), (get(b"/readyz"), 200)]
    kinds += [(post(b"Content-Length: 1", body=b"x"), 400), (get(b"/record"), 204)]
    sent = [kinds[number * 7 % len(kinds)] for number in range(500)]
    with server.raw() as client:
        client.send(b"".join(data for data, _ in sent))
        found = [client.answer().status for _ in sent]
    assert found == [status for _, status in sent]


def test_pipeline_that_ends_in_half_close_is_answered_whole(server: Serving) -> None:
    with server.raw() as client:
        client.send((get(b"/readyz") + get()) * 100)
        client.half_close()
        assert [client.answer().status for _ in range(200)] == [200] * 200
        assert client.rest() == b""


def test_half_closed_client_still_gets_its_answer(server: Serving) -> None:
    with server.raw() as client:
        client.send(post(LENGTH, path=QUEUE % b"half"))
        client.half_close()
        answer = client.answer()
        assert answer.status == 201
        assert client.rest() == b""
    assert jobs_of(server, "half") == [1]


@pytest.mark.parametrize("cut", [10, 40, -1])
def test_request_that_ends_too_early_is_refused(server: Serving, cut: int) -> None:
    with server.raw() as client:
        client.send(post(LENGTH)[:cut])
        client.half_close()
        assert client.answer().status == 400
        assert client.rest() == b""
    assert jobs_of(server, "never") == []


def test_request_may_be_split_anywhere(server: Serving) -> None:
    request = post(LENGTH, path=QUEUE % b"split")
    for place in range(1, len(request)):
        with server.raw() as client:
            client.send(request[:place])
            client.send(request[place:])
            assert client.answer().status == 201
    assert len(jobs_of(server, "split")) == len(request) - 1


def test_request_may_come_byte_by_byte(server: Serving) -> None:
    with server.raw() as client:
        for byte in post(LENGTH, path=QUEUE % b"bytes"):
            client.send(bytes([byte]))
        assert client.answer().status == 201
    assert jobs_of(server, "bytes") == [1]


@pytest.mark.parametrize("path", [b"/livez", b"/no", b"/openapi.json", b"/v1/queues"])
def test_head_is_answered_without_a_body(server: Serving, path: bytes) -> None:
    asked = b"HEAD %s HTTP/1.1\r\n%s\r\n" % (path, HOST)
    with server.raw() as client:
        client.send(asked + get())
        head = client.answer("HEAD")
        assert head.body == b""
        assert client.answer().status == 200
    full = server.ask("GET", path.decode())
    assert head.status == full.status
    assert head.headers.get("content-length") == full.headers.get("content-length")


def test_methods_that_a_path_knows_are_named(server: Serving) -> None:
    answer = server.ask("PUT", "/record")
    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}


def test_old_client_is_told_that_its_connection_is_kept(server: Serving) -> None:
    asked = get(b"/livez", b"Connection: keep-alive", version=b"1.0")
    with server.raw() as client:
        client.send(asked)
        assert client.answer().headers["connection"] == "keep-alive"
        client.send(asked)
        assert client.answer().status == 200


def test_answer_under_way_comes_before_a_refusal(server: Serving) -> None:
    good = post(LENGTH, path=QUEUE % b"before")
    with server.raw() as client:
        client.send(good + b"GET / HTTP/1.1\nbroken")
        assert [client.answer().status for _ in range(2)] == [201, 400]
        assert client.rest() == b""
    assert jobs_of(server, "before") == [1]


def test_client_that_hangs_up_while_it_waits_leaves_the_job_to_others(
    server: Serving,
) -> None:
    body = b'{"queues":["gone"],"wait":60000}'
    length = b"Content-Length: %d" % len(body)
    for _ in range(3):
        with server.raw() as client:
            client.send(post(length, body=body, path=b"/v1/lease"))
            client.half_close()
            assert client.rest() == b""
    server.ask("POST", "/v1/queues/gone/jobs", {"payload": 1})
    assert jobs_of(server, "gone") == [1]


def test_content_type_is_looked_at(server: Serving) -> None:
    plain = post(LENGTH).replace(JSON, b"Content-Type: text/plain\r\n")
    with server.raw() as client:
        client.send(plain + get())
        assert [client.answer().status for _ in range(2)] == [415, 200]
    assert jobs_of(server, "never") == []
