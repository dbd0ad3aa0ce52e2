"""Real nodes over a real database: queues get more partitions, and fewer again."""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from headway.core.cluster import holder
from headway.server.cluster.rules import partition_of_job
from tests.cluster.nodes import ClusterOf, NodeProcess, lengths

Make = Callable[[int], ClusterOf]
QUEUE = "mail"
PATH = f"/v1/queues/{QUEUE}"


def _widen(cluster: ClusterOf, node: NodeProcess, number: int) -> list[str]:
    """Asked until the node knows so many partitions, and they are served."""

    def asked() -> Any:
        answer = node.ask("PUT", f"{PATH}/partitions", {"count": number})
        return answer.json["partitions"] if answer.status == 200 else None

    found: list[str] = cluster.until(asked)
    return found


def _leased(cluster: ClusterOf, node: NodeProcess, partition: str) -> None:
    """A job is enqueued in the partition, leased from it, and done."""

    def is_so() -> bool:
        node.ask("POST", f"{PATH}/jobs", {})
        got = node.ask("POST", "/v1/lease", {"queues": [QUEUE], "max": 10}).json["jobs"]
        tokens = [job["token"] for job in got]
        if tokens:
            node.ask("POST", "/v1/ack", {"tokens": tokens})
        return partition in {partition_of_job(job["id"]) for job in got}

    cluster.until(is_so)


def _is_claimed(cluster: ClusterOf, partition: str) -> bool:
    return cluster.holding(partition).node is not None


def _placement(cluster: ClusterOf) -> Any:
    found = cluster.tables.placement(QUEUE)
    assert found is not None
    return found


def _drained(cluster: ClusterOf, node: NodeProcess, jobs: int) -> None:
    """So many jobs are done, wherever they are, and the queue is in its home alone."""
    done = 0

    def is_done() -> bool:
        nonlocal done
        body = {"queues": [QUEUE], "max": 10}
        answer = node.ask("POST", "/v1/lease", body)
        if answer.status == 200 and answer.json["jobs"]:
            tokens = [job["token"] for job in answer.json["jobs"]]
            node.ask("POST", "/v1/ack", {"tokens": tokens})
            done += len(tokens)
        return done == jobs

    cluster.until(is_done)
    cluster.until(lambda: _placement(cluster).partitions == ("p1",))
    cluster.until(lambda: _placement(cluster).whole is None)
    told: list[Any] = []

    def is_told() -> bool:
        told.append(node.ask("GET", PATH).json["rules"]["max_length"])
        return bool(told[-1] == 90)

    # The node hears of it a moment later than the tables do.
    try:
        cluster.until(is_told)
    except AssertionError as error:
        error.add_note(f"it tells of {told[0]} … {told[-1]}: {_placement(cluster)}")
        raise


def test_a_new_partition_serves_at_once_and_leaves_when_it_is_empty(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(1)
    nodes = [cluster.start("a"), cluster.start("b")]
    assert nodes[0].ask("PUT", PATH, {"max_length": 90}).status == 200
    for new in ("p2", "p3"):
        began_s = time.monotonic()
        cluster.tables.add_partitions([new])
        cluster.until(partial(_is_claimed, cluster, new))
        claimed_s = time.monotonic() - began_s
        assert new in _widen(cluster, nodes[0], int(new[1:]))
        widened_s = time.monotonic() - began_s
        _leased(cluster, nodes[0], new)
        leased_s = time.monotonic() - began_s
        times_s = [round(one, 3) for one in (claimed_s, widened_s, leased_s)]
        sys.stdout.write(f"{new} claimed, widened, leased after {times_s} s\n")
    for number in range(9):
        answer = nodes[number % 2].ask("POST", f"{PATH}/jobs", {})
        assert answer.status == 201, answer
    told = nodes[1].ask("PUT", f"{PATH}/partitions", {"count": 1}).json
    assert sorted(told["leaving"]) == ["p2", "p3"]
    _drained(cluster, nodes[0], 9)
    # Whoever opens it again finds the queue there, and that it has left.
    mover = cluster.held()
    (now,) = [name for name, mine in mover.items() if "p2" in mine]
    (then,) = [name for name in mover if name != now]
    cluster.tables.move("p2", then)
    cluster.until(lambda: "p2" in cluster.held()[then])
    answer = cluster.nodes[then].ask("GET", "/v1/history/p2")
    assert answer.status == 200, answer
    assert _placement(cluster).partitions == ("p1",)


@pytest.mark.long
def test_partitions_leave_though_the_node_of_the_home_dies(make_cluster: Make) -> None:
    cluster = make_cluster(3)
    nodes = [cluster.start("a"), cluster.start("b")]
    cluster.until(lambda: lengths(cluster.held()) == [1, 2])
    cluster.tables.place(QUEUE, ("p1",))
    cluster.until(lambda: nodes[0].ask("PUT", PATH, {"max_length": 90}).status == 200)
    assert len(_widen(cluster, nodes[0], 3)) == 3
    for _ in range(9):
        assert nodes[0].ask("POST", f"{PATH}/jobs", {}).status == 201
    told = nodes[1].ask("PUT", f"{PATH}/partitions", {"count": 1}).json
    assert sorted(told["leaving"]) == ["p2", "p3"]
    view = cluster.view()
    home = holder(view, view.holdings["p1"])
    assert home is not None
    cluster.nodes[home].kill()
    (other,) = [one for one in nodes if one.name != home]
    cluster.until(lambda: cluster.held().get(other.name) == ["p1", "p2", "p3"])
    _drained(cluster, other, 9)
