"""Leases over several partitions: in the order in which promises need their jobs."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.gated import Gated, gated
from tests.server.process import PATIENCE_S


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    with gated(tmp_path_factory.mktemp("gated")) as cluster:
        yield cluster


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def _until(is_so: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until_s


def _counts(nodes: Gated, queue: str) -> dict[str, int]:
    counts: dict[str, int] = nodes["a"].ask("GET", f"/v1/queues/{queue}").json["counts"]
    return counts


def _idle(nodes: Gated) -> int:
    """Leases that wait at owners, as of a turn of the loop."""
    apps = nodes.map.apps.values()
    found: int = nodes.call(lambda: sum(len(app._desk._held) for app in apps))
    return found


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_remote_payment_that_is_due_goes_before_a_local_webhook(
    nodes: Gated, name: str
) -> None:
    here, there = ("p1", "p2") if name == "a" else ("p2", "p1")
    queues = (f"webhook-{name}", f"payment-{name}")
    nodes.place(**{queues[0]: here, queues[1]: there})
    node = nodes[name]
    # All are due at once: the margin is as long as the promise.
    for queue, slo in zip(queues, ("10m", "5s"), strict=True):
        rules = {"slo": slo, "margin": slo}
        assert node.ask("PUT", f"/v1/queues/{queue}", rules).status == 200
        node.enqueue(queue, {}, {})
    order = [node.lease(*queues, max=1)[0]["queue"] for _ in range(4)]
    assert order == [queues[1], queues[1], queues[0], queues[0]]


@pytest.mark.parametrize("name", ["a", "b"])
def test_if_nothing_is_due_the_earliest_aim_goes_first(nodes: Gated, name: str) -> None:
    here, there = ("p1", "p2") if name == "a" else ("p2", "p1")
    queues = (f"later-{name}", f"sooner-{name}")
    nodes.place(**{queues[0]: here, queues[1]: there})
    node = nodes[name]
    node.enqueue(queues[0], {"slo": "2h"})
    node.enqueue(queues[1], {"slo": "1h"})
    got = node.lease(*queues, max=2)
    assert [job["queue"] for job in got] == [queues[1], queues[0]]


def test_what_is_due_goes_before_what_is_not_however_soon_that_is(nodes: Gated) -> None:
    nodes.place(soon="p1", due="p2")
    node = nodes["a"]
    node.ask("PUT", "/v1/queues/due", {"slo": "1h", "margin": "1h"})
    node.ask("PUT", "/v1/queues/soon", {"slo": "1m", "margin": "0s"})
    node.enqueue("soon")
    node.enqueue("due")
    assert [job["queue"] for job in node.lease("soon", "due")] == ["due", "soon"]


def test_partitions_that_are_equally_urgent_take_turns(nodes: Gated) -> None:
    nodes.place(even1="p1", even2="p2")
    for queue in ("even1", "even2"):
        nodes["a"].ask("PUT", f"/v1/queues/{queue}", {"slo": "6s", "margin": "6s"})
        nodes["a"].enqueue(queue, *[{}] * 6)
    order = [nodes["a"].lease("even1", "even2", max=1)[0]["queue"] for _ in range(8)]
    assert order[0] == "even1"
    assert order.count("even2") == 4


def test_a_lease_of_all_queues_takes_from_all_partitions(nodes: Gated) -> None:
    nodes.place(each1="p1", each2="p2")
    nodes["b"].enqueue("each1", {}, {})
    nodes["b"].enqueue("each2", {}, {})
    got = nodes["b"].lease(max=100)
    assert {"each1", "each2"} <= {job["queue"] for job in got}
    tokens = [job["token"] for job in got]
    assert nodes["b"].ask("POST", "/v1/ack", {"tokens": tokens}).json["stale"] == []


def test_no_more_is_granted_than_was_asked_for(nodes: Gated) -> None:
    nodes.place(most1="p1", most2="p2")
    nodes["a"].enqueue("most1", *[{}] * 5)
    nodes["a"].enqueue("most2", *[{}] * 5)
    assert len(nodes["a"].lease("most1", "most2", max=7)) == 7
    assert len(nodes["a"].lease("most1", "most2", max=7)) == 3
    assert nodes["a"].lease("most1", "most2") == []


@pytest.mark.parametrize("where", ["wait1", "wait2"])
def test_a_lease_waits_on_all_partitions_at_once(
    nodes: Gated, workers: ThreadPoolExecutor, where: str
) -> None:
    nodes.place(wait1="p1", wait2="p2")
    waiting = workers.submit(nodes["a"].lease, "wait1", "wait2", wait="60s")
    _until(lambda: _idle(nodes) == 2)
    job = nodes["b"].enqueue(where)[0]
    got = waiting.result(PATIENCE_S)
    assert [one["id"] for one in got] == [job]
    # The other wait was called off: what comes now stays where it is.
    _until(lambda: _idle(nodes) == 0)
    other = "wait1" if where == "wait2" else "wait2"
    nodes["b"].enqueue(other)
    assert _counts(nodes, other)["ready"] == 1
    assert len(nodes["a"].lease(other)) == 1


def test_what_was_granted_in_the_same_moment_is_taken_or_goes_back(
    nodes: Gated, workers: ThreadPoolExecutor
) -> None:
    nodes.place(both1="p1", both2="p2")
    for most in (1, 4):
        for _ in range(5):
            waiting = workers.submit(
                nodes["a"].lease, "both1", "both2", wait="60s", max=most
            )
            _until(lambda: _idle(nodes) == 2)
            puts = [
                workers.submit(nodes[name].enqueue, queue)
                for name, queue in (("a", "both1"), ("b", "both2"))
            ]
            for put in puts:
                put.result(PATIENCE_S)
            got = waiting.result(PATIENCE_S)
            assert 1 <= len(got) <= most
            if len(got) < 2:
                rest = nodes["a"].lease("both1", "both2", wait="30s")
                assert len(rest) == 1
                assert rest[0]["attempt"] == 1  # going back was not counted
                got += rest
            tokens = [job["token"] for job in got]
            acked = nodes["a"].ask("POST", "/v1/ack", {"tokens": tokens})
            assert acked.json["stale"] == []


def test_who_waits_longest_is_served_first(
    nodes: Gated, workers: ThreadPoolExecutor
) -> None:
    nodes.place(fair1="p1", fair2="p2")
    waits = []
    for _ in range(3):
        waits.append(workers.submit(nodes["a"].lease, "fair1", "fair2", wait="60s"))
        _until(lambda: _idle(nodes) == 2 * len(waits))
    for wait in waits:
        assert sum(one.done() for one in waits) == waits.index(wait)
        nodes["b"].enqueue("fair2")
        assert len(wait.result(PATIENCE_S)) == 1


def _hung_up(node: Any, body: bytes) -> socket.socket:
    """A lease whose client may go at any time."""
    connection = socket.create_connection(("127.0.0.1", node.port))
    head = "POST /v1/lease HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.parametrize("queues", [b'["gone2"]', b'["gone1","gone2"]'])
def test_jobs_of_a_poll_that_was_hung_up_on_go_back(
    nodes: Gated, queues: bytes
) -> None:
    nodes.place(gone1="p1", gone2="p2")
    connection = _hung_up(nodes["a"], b'{"queues": %s, "wait": "60s"}' % queues)
    _until(lambda: _idle(nodes) == queues.count(b",") + 1)
    connection.close()
    _until(lambda: _idle(nodes) == 0)
    job = nodes["b"].enqueue("gone2")[0]
    assert _counts(nodes, "gone2")["ready"] == 1
    got = nodes["b"].lease("gone2")
    assert [one["id"] for one in got] == [job]
    assert got[0]["attempt"] == 1


def test_polls_that_end_without_a_job_leave_nothing_behind(nodes: Gated) -> None:
    nodes.place(none1="p1", none2="p2")
    assert nodes["a"].lease("none1", "none2", wait="50ms") == []
    _until(lambda: _idle(nodes) == 0)
    gateways = [node.gateway for node in nodes.nodes.values()]
    _until(lambda: not nodes.call(lambda: any(one._held for one in gateways)))


def test_a_partition_that_is_nowhere_does_not_hold_up_the_others(nodes: Gated) -> None:
    nodes.place(here1="p1", away2="p2")
    nodes["a"].enqueue("here1")
    nodes["a"].enqueue("away2")
    nodes.move("p2", None)
    try:
        assert [job["queue"] for job in nodes["a"].lease("here1", "away2")] == ["here1"]
        assert nodes["a"].lease("here1", "away2") == []
        back = threading.Timer(0.2, lambda: nodes.move("p2", "b"))
        back.start()
        got = nodes["a"].lease("here1", "away2", wait="30s")
        assert [job["queue"] for job in got] == ["away2"]
        back.join()
    finally:
        nodes.move("p2", "b")
