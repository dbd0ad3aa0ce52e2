"""Queues that are full refuse at once, hold back for a while, or shed."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from headway.core import defaults
from tests.cluster.gated import Gated, gated
from tests.server.process import PATIENCE_S, Answer

_numbers = count()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    with gated(tmp_path_factory.mktemp("gated")) as cluster:
        yield cluster


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


@pytest.fixture(params=[1, 2], ids=["plain", "wide"])
def queue(nodes: Gated, request: pytest.FixtureRequest) -> str:
    """Two jobs are in it, and no more fit."""
    name = f"full-{next(_numbers)}"
    nodes.place(**{name: "p1"})
    rules = {"max_length": 2, "when_full": "wait"}
    assert nodes["a"].ask("PUT", f"/v1/queues/{name}", rules).status == 200
    width = {"count": request.param}
    told = nodes["a"].ask("PUT", f"/v1/queues/{name}/partitions", width)
    assert len(told.json["partitions"]) == request.param
    nodes["a"].enqueue(name)
    nodes["a"].enqueue(name)
    return name


def _enqueue(nodes: Gated, queue: str, *jobs: dict[str, Any], **more: str) -> Answer:
    body = list(jobs) or [{}]
    return nodes["b"].ask("POST", f"/v1/queues/{queue}/jobs", body, **more)


def test_whoever_is_held_back_goes_on_when_there_is_room(
    nodes: Gated,
    queue: str,
    aside: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(defaults, "FULL_WAIT_MS", 1_000 * PATIENCE_S)
    held: list[Future[Answer]] = [
        aside.submit(_enqueue, nodes, queue) for _ in range(2)
    ]
    assert _enqueue(nodes, queue, headway_full="refuse").code == "queue_full"
    tokens = [job["token"] for job in nodes["a"].lease(queue)]
    assert len(tokens) == 2
    nodes["a"].ask("POST", "/v1/ack", {"tokens": tokens})
    assert [one.result(PATIENCE_S).status for one in held] == [201, 201]
    assert nodes["a"].ask("GET", f"/v1/queues/{queue}").json["counts"]["ready"] == 2


def test_it_is_refused_when_there_was_no_room_in_time(
    nodes: Gated, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defaults, "FULL_WAIT_MS", 150)
    refused = _enqueue(nodes, queue)
    assert (refused.status, refused.code) == (409, "queue_full")
    assert nodes["a"].ask("GET", f"/v1/queues/{queue}").json["counts"]["ready"] == 2


def test_what_will_never_fit_and_who_is_one_too_many_are_refused_at_once(
    nodes: Gated, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defaults, "FULL_WAIT_MS", 1_000 * PATIENCE_S)
    assert _enqueue(nodes, queue, {}, {}, {}).code == "queue_full"
    monkeypatch.setattr(defaults, "FULL_WAITERS_MAX", 0)
    assert _enqueue(nodes, queue).code == "queue_full"


def test_a_queue_refuses_at_once_unless_its_rules_say_otherwise(
    nodes: Gated, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defaults, "FULL_WAIT_MS", 1_000 * PATIENCE_S)
    path = f"/v1/queues/{queue}"
    assert nodes["a"].ask("PATCH", path, {"when_full": None}).status == 200
    assert nodes["a"].ask("GET", path).json["rules"]["when_full"] == "refuse"
    assert _enqueue(nodes, queue).code == "queue_full"
    assert nodes["a"].ask("PATCH", path, {"when_full": "fold"}).code == "bad_value"


def test_a_queue_that_sheds_takes_everything_and_keeps_what_does_not_fit_as_dead(
    nodes: Gated, queue: str
) -> None:
    path = f"/v1/queues/{queue}"
    assert nodes["a"].ask("PATCH", path, {"when_full": "shed"}).status == 200
    assert _enqueue(nodes, queue, headway_full="refuse").code == "queue_full"
    taken = _enqueue(nodes, queue, {}, {})
    assert taken.status == 201
    assert taken.json["shed"] == [job["id"] for job in taken.json["jobs"]]
    counts = nodes["a"].ask("GET", path).json["counts"]
    assert (counts["ready"], counts["dead"]) == (2, 2)
    shown = nodes["a"].ask("GET", f"/v1/jobs/{taken.json['shed'][0]}").json
    assert (shown["state"], shown["errors"][0]["reason"]) == ("dead", "shed")


def test_a_queue_that_sheds_has_room_wherever_one_of_its_partitions_has(
    nodes: Gated, queue: str
) -> None:
    path = f"/v1/queues/{queue}"
    assert nodes["a"].ask("PATCH", path, {"when_full": "shed"}).status == 200
    gone, stays = nodes["a"].lease(queue)
    nodes["a"].ask("POST", "/v1/ack", {"tokens": [gone["token"]]})
    nodes["a"].ask("POST", "/v1/release", {"tokens": [stays["token"]]})
    assert "shed" not in _enqueue(nodes, queue).json
    assert len(_enqueue(nodes, queue).json["shed"]) == 1
