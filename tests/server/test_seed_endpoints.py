"""The four simple endpoints, to the letter of what their clients were told."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving_fixture import Answer, Serving, serving

FULL = (409, b"Could exceed queue max length")


@pytest.fixture
def server() -> Iterator[Serving]:
    """For tests that count the records they have put."""
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Serving]:
    """For tests that leave its queue as empty as they found it."""
    with serving() as running:
        yield running


def put(server: Serving, payload: str = "hey!", **more: int) -> None:
    answer = server.ask("POST", "/record", {"payload": payload, **more})
    assert (answer.status, answer.body) == (204, b"")


def take(server: Serving) -> Answer:
    return server.ask("GET", "/record")


def take_id(server: Serving) -> str:
    answer = take(server)
    assert answer.status == 200, answer
    found: str = answer.json["id"]
    return found


def is_stale(server: Serving, record: str) -> bool:
    found = [server.ask("POST", f"/{verb}/{record}") for verb in ("ack", "nack")]
    return all(one.status == 404 and one.json["code"] == "unknown_job" for one in found)


def test_record_is_put_taken_and_acknowledged(shared: Serving) -> None:
    assert (take(shared).status, take(shared).body) == (204, b"")
    put(shared, '{"as":"text"}')
    answer = take(shared)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    record = answer.json
    assert set(record) == {"id", "payload", "attempts"}
    assert record["payload"] == '{"as":"text"}'
    assert record["attempts"] == 1
    assert re.fullmatch(r"p1_[0-9A-Za-z]+", record["id"])
    assert take(shared).status == 204
    assert shared.ask("POST", f"/ack/{record['id']}").status == 200
    assert take(shared).status == 204


@pytest.mark.parametrize("payload", ["", "\x00", "\U0001f600\u202e", "a" * 100_000])
def test_payload_is_any_text(shared: Serving, payload: str) -> None:
    put(shared, payload)
    record = take(shared).json
    assert record["payload"] == payload
    assert shared.ask("POST", f"/ack/{record['id']}").status == 200


def test_attempts_count_every_delivery(server: Serving) -> None:
    put(server)
    for attempt in range(1, 5):
        record = take(server).json
        assert record["attempts"] == attempt
        answer = server.ask("POST", f"/nack/{record['id']}", {"delay_ms": 0})
        assert answer.status == 200


def test_id_is_of_no_use_when_its_delivery_is_over(shared: Serving) -> None:
    put(shared)
    first = take_id(shared)
    assert shared.ask("POST", f"/nack/{first}", {"delay_ms": 0}).status == 200
    assert is_stale(shared, first)
    second = take_id(shared)
    assert second != first
    assert is_stale(shared, first)
    assert shared.ask("POST", f"/ack/{second}").status == 200
    assert is_stale(shared, second)
    assert take(shared).status == 204


def test_id_is_of_no_use_when_its_lease_has_ended(shared: Serving) -> None:
    put(shared)
    body = {"queues": ["default"], "lease": 1}
    leased = shared.ask("POST", "/v1/lease", body).json["jobs"][0]
    first = leased["token"].removesuffix(".default")
    waited = {"queues": ["default"], "wait": "60s"}
    again = shared.ask("POST", "/v1/lease", waited).json["jobs"][0]
    assert again["attempt"] == 2
    assert is_stale(shared, first)
    second = again["token"].removesuffix(".default")
    assert shared.ask("POST", f"/ack/{second}").status == 200


def test_made_up_ids_are_unknown(shared: Serving) -> None:
    put(shared)
    good = take_id(shared)
    proof = good.removeprefix("p1_")
    flipped = proof[:-1] + ("0" if proof[-1] != "0" else "1")
    for made_up in (
        f"p2_{proof}",
        f"p1_{flipped}",
        f"p1_{proof.upper()}0",
        f"p1_{'0' * len(proof)}",
        proof,
        "p1_1",
        "p1_",
        "x",
        "%00",
        "..",
        "partition1_21yFbkxyFx6AjihUA2CN0WkrfJD",
    ):
        assert is_stale(shared, made_up), made_up
    assert shared.ask("POST", f"/ack/{good}").status == 200


def test_delay_in_the_past_is_now(server: Serving) -> None:
    put(server, delay_ms=-60_000)
    record = take_id(server)
    assert server.ask("POST", f"/nack/{record}", {"delay_ms": -1}).status == 200
    assert take(server).json["attempts"] == 2


def test_delayed_record_is_not_there_yet(server: Serving) -> None:
    put(server, "later", delay_ms=3_600_000)
    put(server, "soon", delay_ms=1)
    body = {"queues": ["default"], "wait": "60s"}
    job = server.ask("POST", "/v1/lease", body).json["jobs"][0]
    assert (job["id"], job["attempt"]) == ("p1_2", 1)
    assert take(server).status == 204
    shown = server.ask("GET", "/v1/jobs/p1_1").json
    assert shown["state"] == "scheduled"
    assert shown["run_at_ms"] - shown["enqueued_ms"] == 3_600_000


@pytest.mark.parametrize("body", [None, {}, {"delay_ms": None}])
def test_nack_without_a_delay_follows_the_back_off(
    server: Serving, body: object
) -> None:
    put(server)
    record = take_id(server)
    assert server.ask("POST", f"/nack/{record}", body).status == 200
    shown = server.ask("GET", "/v1/jobs/p1_1").json
    # A second, of which chance takes at most half.
    assert shown["run_at_ms"] - shown["enqueued_ms"] >= 500


def test_nack_with_a_delay_overrides_the_back_off(server: Serving) -> None:
    put(server)
    record = take_id(server)
    body = {"delay_ms": 3_600_000}
    assert server.ask("POST", f"/nack/{record}", body).status == 200
    shown = server.ask("GET", "/v1/jobs/p1_1").json
    assert shown["run_at_ms"] - shown["enqueued_ms"] >= 3_600_000


def test_plain_clients_are_understood(server: Serving) -> None:
    """As `http post` sends it: JSON, and nothing at all where no body is given."""
    kinds = {
        "content-type": "application/json",
        "accept": "application/json, */*;q=0.5",
        "accept-encoding": "gzip, deflate",
        "user-agent": "HTTPie/3.2",
    }
    body = json.dumps({"payload": "hey!"}).encode()
    assert server.ask("POST", "/record", body, kinds).status == 204
    record = take_id(server)
    plain = {"content-length": "0", "accept": "*/*"}
    assert server.ask("POST", f"/nack/{record}", headers=plain).status == 200
    kinds["content-type"] = "application/json; charset=utf-8"
    assert server.ask("POST", "/record", body, kinds).status == 204


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"payload": 1},
        {"payload": None},
        {"payload": "x", "delay_ms": "soon"},
        {"payload": "x", "delay_ms": 2**63},
        {"payload": "x", "delay_ms": 1.5},
        [],
        "x",
    ],
)
def test_records_that_are_none_are_refused(shared: Serving, body: object) -> None:
    assert shared.ask("POST", "/record", body).status == 400
    assert take(shared).status == 204


def test_record_above_the_limit_is_refused(shared: Serving) -> None:
    body = {"payload": "\u00e9" * (1 << 20)}
    assert shared.ask("POST", "/record", body).status in (400, 413)
    assert take(shared).status == 204


@pytest.mark.parametrize("length", [1, 2, 4])
def test_queue_refuses_what_would_reach_its_length(length: int) -> None:
    """Queued, delayed and in flight, and one more, stay below the length."""
    with serving(environment={"QUEUE_LEN": str(length)}) as server:
        for number in range(length - 1):
            # One of each: in flight, delayed, queued.
            put(server, str(number), delay_ms=3_600_000 if number == 1 else 0)
            if number == 0:
                record = take_id(server)
        answer = server.ask("POST", "/record", {"payload": "more"})
        assert (answer.status, answer.body) == FULL
        assert answer.headers["content-type"].startswith("text/plain")
        if length > 1:
            assert server.ask("POST", f"/ack/{record}").status == 200
            put(server, "in its place")
            answer = server.ask("POST", "/record", {"payload": "more"})
            assert (answer.status, answer.body) == FULL


def test_environment_is_honoured(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = {"HTTP_PORT": str(port), "PARTITION": "part1", "QUEUE_LEN": "3"}
    with serving(data=tmp_path, environment=names) as server:
        assert server.port == port
        put(server)
        put(server)
        answer = server.ask("POST", "/record", {"payload": "x"})
        assert (answer.status, answer.body) == FULL
        record = take_id(server)
        assert record.startswith("part1_")
    with serving(data=tmp_path, environment={**names, "HTTP_PORT": "0"}) as server:
        # The delivery outlives the process that made it.
        assert server.ask("POST", f"/ack/{record}").status == 200
        assert take(server).status == 200
