"""Real nodes over a real database: any of them takes any request, whatever happens."""

import json
import threading
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import ClusterOf, NodeProcess, cluster_of, lengths
from tests.server.process import PATIENCE_S

QUEUES = [f"q{number}" for number in range(12)]


class Callers:
    """Enqueue, lease and ack at one node until they are told to stop."""

    def __init__(self, node: NodeProcess, number: int) -> None:
        self._place = node.place
        self._stop = threading.Event()
        self.answers: Counter[tuple[str, int]] = Counter()
        self.wrong: list[bytes] = []
        self.accepted: list[str] = []
        self.done: list[str] = []
        self._threads = [
            threading.Thread(target=self._call, args=(one,)) for one in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _call(self, mine: int) -> None:
        connection = HTTPConnection(*self._place, timeout=PATIENCE_S)
        number = 0
        while not self._stop.is_set():
            number += 1
            if mine % 2:
                queue = QUEUES[(7 * number + mine) % len(QUEUES)]
                key = {"idempotency-key": f"{mine}-{number}"}
                told = self._ask(connection, f"/v1/queues/{queue}/jobs", {}, **key)
                self.accepted += [job["id"] for job in told.get("jobs", [])]
            else:
                told = self._ask(connection, "/v1/lease", {"max": 5, "wait": "100ms"})
                jobs = told.get("jobs", [])
                tokens = [job["token"] for job in jobs]
                if tokens:
                    self._ask(connection, "/v1/ack", {"tokens": tokens})
                    self.done += [job["id"] for job in jobs]
        connection.close()

    def _ask(
        self, connection: HTTPConnection, path: str, body: Any, **headers: str
    ) -> Any:
        sent = {"content-type": "application/json", **headers}
        connection.request("POST", path, json.dumps(body), sent)
        got = connection.getresponse()
        content = got.read()
        self.answers[path.rpartition("/")[2], got.status] += 1
        if got.status >= 400:
            self.wrong.append(content)
            return {}
        return json.loads(content)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with cluster_of(f"gate-{request.node.name[5:20]}", tmp_path, 4) as made:
        made.start("a")
        made.start("b")
        made.until(lambda: lengths(made.held()) == [2, 2])
        yield made


def test_every_node_takes_every_request(cluster: ClusterOf) -> None:
    nodes = list(cluster.nodes.values())
    ids = []
    for queue in QUEUES:
        for node in nodes:
            answer = node.ask("POST", f"/v1/queues/{queue}/jobs", {})
            assert answer.status == 201, answer
            ids.append(answer.json["jobs"][0]["id"])
    assert len({job.partition("_")[0] for job in ids}) > 1
    for node in nodes:
        names = [one["name"] for one in node.ask("GET", "/v1/queues").json["queues"]]
        assert set(QUEUES) <= set(names)
        for job in ids:
            assert node.ask("GET", f"/v1/jobs/{job}").status == 200
    got = nodes[0].ask("POST", "/v1/lease", {"max": 100}).json["jobs"]
    assert sorted(job["id"] for job in got) == sorted(ids)
    tokens = {"tokens": [job["token"] for job in got]}
    assert nodes[1].ask("POST", "/v1/ack", tokens).json["stale"] == []
    widened = nodes[1].ask("PUT", "/v1/queues/q1/partitions", {"count": 3})
    assert len(widened.json["partitions"]) == 3
    path = "/v1/queues/q1/partitions"
    cluster.until(lambda: nodes[0].ask("GET", path).json == widened.json)


def test_a_node_that_stops_costs_no_request(cluster: ClusterOf) -> None:
    callers = Callers(cluster.nodes["a"], 4)
    try:
        cluster.until(lambda: len(callers.done) > 50)
        assert cluster.nodes["b"].stop() == 0
        before = len(callers.done)
        cluster.until(lambda: len(callers.done) > before + 50)
    finally:
        callers.stop()
    assert callers.wrong == []
    assert len(callers.accepted) == len(set(callers.accepted))
    assert len(callers.done) == len(set(callers.done))


def test_a_node_that_dies_costs_what_may_have_been_done_and_no_more(
    cluster: ClusterOf,
) -> None:
    callers = Callers(cluster.nodes["a"], 4)
    try:
        cluster.until(lambda: len(callers.done) > 50)
        cluster.nodes["b"].kill()
        cluster.until(lambda: lengths(cluster.held()) == [4])
        before = len(callers.done)
        cluster.until(lambda: len(callers.done) > before + 50)
    finally:
        callers.stop()
    # Keys make an enqueue safe to repeat, and leases are; an ack is not.
    failed = {path for (path, status) in callers.answers if status >= 400}
    assert failed <= {"ack"}
    assert len(callers.accepted) == len(set(callers.accepted))
