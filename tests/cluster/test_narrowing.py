"""Queues that are given fewer partitions while they are used, and more again."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from headway.core import widths
from headway.server.cluster.rules import partition_of_job
from headway.server.scopes import parse_scopes
from headway.server.tokens import TokenFile
from tests.cluster.gated import Gated, gated
from tests.server.process import PATIENCE_S

_numbers = count()
LOOK_S = 0.02


@pytest.fixture(scope="module", autouse=True)
def brisk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headway.server.cluster.tending.TEND_S", 0.05)
        yield


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    with gated(tmp_path_factory.mktemp("gated"), a=["p1", "p3"], b=["p2"]) as cluster:
        yield cluster


class Wide:
    """A queue whose home is p1."""

    def __init__(self, nodes: Gated, rules: dict[str, Any]) -> None:
        self.nodes = nodes
        self._never = threading.Event()
        self.name = f"narrow-{next(_numbers)}"
        self.path = f"/v1/queues/{self.name}"
        nodes.place(**{self.name: "p1"})
        self.put(rules)

    def put(self, rules: dict[str, Any]) -> None:
        answer = self.nodes["a"].ask("PUT", self.path, rules)
        assert answer.status == 200, answer

    def bring(self, number: int) -> dict[str, Any]:
        body = {"count": number}
        answer = self.nodes["b"].ask("PUT", f"{self.path}/partitions", body)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json
        return found

    def partitions(self) -> list[str]:
        found: list[str] = (
            self.nodes["a"].ask("GET", f"{self.path}/partitions").json["partitions"]
        )
        return found

    def shown(self) -> Any:
        return self.nodes["b"].ask("GET", self.path).json

    def enqueue(self, number: int, **job: Any) -> Counter[str]:
        """How many jobs each partition has taken."""
        ids = [self.nodes["b"].enqueue(self.name, job)[0] for _ in range(number)]
        return Counter(map(partition_of_job, ids))

    def lease(self) -> list[str]:
        return [job["token"] for job in self.nodes["a"].lease(self.name, max=100)]

    def ack(self, tokens: list[str]) -> None:
        answer = self.nodes["a"].ask("POST", "/v1/ack", {"tokens": tokens})
        assert answer.json["stale"] == []

    def until(self, is_so: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, (self.shown(), self.partitions())
            self._never.wait(LOOK_S)

    def until_settled(self) -> None:
        marks = self.nodes.map.marks
        self.until(lambda: self.name not in marks or marks[self.name].whole is None)


def test_what_leaves_takes_no_jobs_and_goes_once_it_has_none(nodes: Gated) -> None:
    queue = Wide(nodes, {})
    queue.bring(3)
    before = queue.enqueue(6)
    assert set(before) == {"p1", "p2", "p3"}
    told = queue.bring(1)
    assert sorted(told["leaving"]) == ["p2", "p3"]
    assert sorted(told["partitions"]) == ["p1", "p2", "p3"]
    assert queue.enqueue(6) == {"p1": 6}
    assert queue.shown()["counts"]["ready"] == 12
    tokens = queue.lease()
    assert len(tokens) == 12
    assert sorted(queue.partitions()) == ["p1", "p2", "p3"]
    queue.ack(tokens)
    queue.until(lambda: queue.partitions() == ["p1"])
    assert queue.enqueue(2) == {"p1": 2}
    assert len(queue.lease()) == 2


def test_a_node_that_has_not_heard_of_it_is_refused_there(nodes: Gated) -> None:
    queue = Wide(nodes, {})
    queue.bring(2)
    queue.enqueue(4)
    gone = queue.bring(1)["leaving"][0]
    # As a node would that believes the partition to be open still.
    mark = nodes.map.marks.pop(queue.name)
    try:
        assert queue.enqueue(4) == {"p1": 4}
    finally:
        nodes.map.marks[queue.name] = mark
    assert gone in queue.partitions()


def test_no_more_runs_than_the_whole_while_parts_are_given_back(nodes: Gated) -> None:
    limit = {"type": "concurrency", "name": "smtp", "max": 6}
    queue = Wide(nodes, {"limits": [limit]})
    queue.bring(3)
    queue.enqueue(9)
    running = queue.lease()
    assert len(running) == 6
    queue.bring(1)
    queue.enqueue(12)
    done = 0
    while running:
        shown = queue.shown()
        assert shown["counts"]["leased"] <= 6
        assert sum(one["used"] for one in shown["limits"]) <= 6
        queue.ack(running[:1])
        done += 1
        running = running[1:] + queue.lease()
    assert done == 21
    queue.until(lambda: queue.partitions() == ["p1"])
    queue.until_settled()
    queue.enqueue(9)
    assert len(queue.lease()) == 6


def test_caps_of_tenants_are_given_back(nodes: Gated) -> None:
    queue = Wide(nodes, {})
    nodes["a"].ask("PUT", f"{queue.path}/tenants/ada", {"cap": 6, "weight": 2.0})
    queue.bring(3)
    queue.bring(1)
    queue.until(lambda: queue.partitions() == ["p1"])
    queue.enqueue(9, tenant="ada")
    assert len(queue.lease()) == 6
    # What is said no more is not said of one that comes back, either.
    nodes["a"].ask("PUT", f"{queue.path}/tenants/ada", {"cap": -1, "weight": 1.0})
    queue.bring(2)
    queue.enqueue(30, tenant="ada")
    assert len(queue.lease()) == 33


def test_dead_letters_keep_a_partition_until_they_are_gone(nodes: Gated) -> None:
    queue = Wide(nodes, {})
    queue.bring(2)
    queue.enqueue(4)
    failures = [{"token": token, "bury": True} for token in queue.lease()]
    assert nodes["a"].ask("POST", "/v1/nack", {"jobs": failures}).json["stale"] == []
    queue.bring(1)
    assert len(queue.partitions()) == 2
    assert nodes["b"].ask("POST", f"{queue.path}/dead/redrive", {}).status == 202
    tokens: list[str] = []
    while len(tokens) < 4:
        tokens += [job["token"] for job in nodes["a"].lease(queue.name, wait="5s")]
    assert len(queue.partitions()) == 2
    queue.ack(tokens)
    queue.until(lambda: queue.partitions() == ["p1"])


def test_what_is_leaving_can_be_taken_back(nodes: Gated) -> None:
    queue = Wide(nodes, {"max_length": 30})
    nodes["a"].ask("POST", f"{queue.path}/pause")
    queue.bring(3)
    queue.enqueue(6)
    queue.bring(1)
    nodes["a"].ask("POST", f"{queue.path}/resume")
    told = queue.bring(2)
    assert len(told["leaving"]) == 1
    assert len(queue.enqueue(6)) == 2
    queue.ack(queue.lease())
    queue.until(lambda: len(queue.partitions()) == 2)
    queue.until_settled()
    assert queue.shown()["rules"]["max_length"] == 30
    assert sorted(queue.bring(3)["partitions"]) == ["p1", "p2", "p3"]
    assert len(queue.enqueue(6)) == 3
    assert len(queue.lease()) == 6


def test_rules_can_be_set_while_partitions_leave(nodes: Gated) -> None:
    limit = {"type": "concurrency", "name": "smtp", "max": 4}
    queue = Wide(nodes, {"limits": [limit], "max_length": 40})
    queue.bring(2)
    queue.enqueue(4)
    tokens = queue.lease()
    queue.bring(1)
    change = {"limits": [{**limit, "max": 8}], "slo": "9s"}
    patched = nodes["b"].ask("PATCH", queue.path, change)
    assert patched.status == 200, patched
    assert queue.enqueue(2) == {"p1": 2}
    queue.ack(tokens)
    queue.until(lambda: queue.partitions() == ["p1"])
    queue.until_settled()
    rules = queue.shown()["rules"]
    assert (rules["limits"][0]["max"], rules["slo"]) == (8, "9s")
    assert rules["max_length"] == 40


def test_no_more_is_let_in_than_the_whole_while_it_is_widened(nodes: Gated) -> None:
    queue = Wide(nodes, {"max_length": 9})
    queue.enqueue(8)
    queue.bring(3)
    answers = [nodes["b"].ask("POST", f"{queue.path}/jobs", {}) for _ in range(6)]
    assert sum(one.status == 201 for one in answers) <= 1
    assert queue.shown()["counts"]["ready"] <= 9
    queue.ack(queue.lease())
    queue.until_settled()
    assert queue.shown()["rules"]["max_length"] == 9
    assert set(queue.enqueue(9)) == {"p1", "p2", "p3"}


def test_a_partition_with_schedules_of_the_queue_stays(nodes: Gated) -> None:
    queue = Wide(nodes, {})
    partition = queue.bring(2)["partitions"][1]
    schedule = {"cron": "0 0 1 1 *", "job": {}}
    path = f"{queue.path}/schedules/yearly"
    nodes.map.queues[queue.name] = (partition,)
    answer = nodes["a"].ask("PUT", path, schedule)
    assert answer.status in (200, 201), answer
    nodes.map.queues[queue.name] = ("p1", partition)
    refused = nodes["a"].ask("PUT", f"{queue.path}/partitions", {"count": 1})
    assert (refused.status, refused.code) == (409, "wrong_state")


def test_nodes_find_the_width_of_a_queue_by_themselves(
    nodes: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.server.cluster.tending.AUTO_S", 0.01)
    nodes.measure()
    queue = Wide(nodes, {"max_length": 30})
    path = f"{queue.path}/partitions"
    monkeypatch.setattr(widths, "HIGH", 0.0)
    told = nodes["a"].ask("PUT", path, {"count": "auto", "max": 2})
    assert (told.status, told.json["max"]) == (200, 2), told
    queue.until(lambda: len(queue.partitions()) == 2)
    assert nodes["a"].ask("PUT", path, {"count": "auto"}).json["max"] == 3
    queue.until(lambda: len(queue.partitions()) == 3)
    monkeypatch.setattr(widths, "HIGH", 9.0)
    monkeypatch.setattr(widths, "LOW", 9.0)
    monkeypatch.setattr(widths, "LOW_LOOKS", 2)
    queue.until(lambda: queue.partitions() == ["p1"])
    queue.until_settled()
    assert queue.shown()["rules"]["max_length"] == 30
    assert queue.bring(2)["max"] is None
    for wrong in ({"count": 2, "max": 3}, {"count": "auto", "max": 9}):
        assert nodes["a"].ask("PUT", path, wrong).code == "bad_value"


def test_it_goes_on_where_tokens_are_needed_and_nobody_else_is_a_node(
    tmp_path: Path,
) -> None:
    file = TokenFile(tmp_path)
    admin = f"Bearer {file.add('admin', parse_scopes(['admin']), 0)}"
    reader = f"Bearer {file.add('reader', parse_scopes(['read']), 0)}"
    with gated(tmp_path) as cluster:
        node = cluster["a"]
        for queue, at in (("here", "p1"), ("there", "p2")):
            cluster.place(**{queue: at})
            path = f"/v1/queues/{queue}"
            assert node.ask("PUT", path, {}, authorization=admin).status == 200
            said = {"headway_own": "1"}
            for more in (said, {**said, "headway_hop": "1"}):
                assert node.ask("GET", path, **more).status == 401
                refused = node.ask("PUT", path, {}, authorization=reader, **more)
                assert refused.status in (403, 503), refused
            for number in (2, 1):
                body = {"count": number}
                where = f"{path}/partitions"
                told = node.ask("PUT", where, body, authorization=admin)
                assert told.status == 200, told
            assert told.json["partitions"] == [at]
