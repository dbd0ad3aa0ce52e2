"""Nodes share partitions, and none of them is needed."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from headway import spec
from headway.core.cluster import holder
from headway.integrations.postgres import Inbox
from tests.cluster.nodes import (
    LEASE_S,
    ClusterOf,
    Line,
    NodeProcess,
    enqueue,
    lengths,
    queue_in,
    ready,
)
from tests.postgres import shared
from tests.postgres.proxy import Proxy
from tests.server.process import Served

Make = Callable[[int], ClusterOf]
HOP = {"headway_hop": "1"}
"""What a node sends to another: it is never passed on."""


def serving(cluster: ClusterOf, partition: str) -> NodeProcess:
    """The node that holds it, once there is one."""

    def found() -> str | None:
        view = cluster.view()
        return holder(view, view.holdings[partition])

    return cluster.nodes[cluster.until(found)]


def test_three_share_six_and_go_on_when_one_is_killed_and_one_is_stopped(
    make_cluster: Make, record_property: Callable[[str, object], None]
) -> None:
    cluster = make_cluster(6)
    for name in "abc":
        cluster.start(name)
    cluster.until(lambda: lengths(cluster.held()) == [2, 2, 2])
    queues = {name: queue_in(cluster, name) for name in cluster.view().holdings}
    for partition, queue in queues.items():
        enqueue(cluster, serving(cluster, partition), queue, "first")

    killed = cluster.nodes["a"]
    mine = cluster.held()["a"]
    killed.kill()
    began_s = time.monotonic()
    for partition in mine:
        cluster.until(lambda: cluster.holding(partition).node != "a")  # noqa: B023
        node = serving(cluster, partition)
        assert ready(cluster, node, queues[partition]) == 1
    record_property("taken_over_s", round(time.monotonic() - began_s, 2))
    assert lengths(cluster.held()) == [3, 3]

    assert cluster.nodes["b"].stop() == 0
    cluster.until(lambda: lengths(cluster.held()) == [6])
    last = cluster.nodes["c"]
    for queue in queues.values():
        assert ready(cluster, last, queue) == 1

    again = cluster.start("a")
    cluster.until(lambda: lengths(cluster.held()) == [3, 3])
    for partition in cluster.held()["a"]:
        assert ready(cluster, again, queues[partition]) == 1


def test_a_node_that_was_held_past_its_lease_says_nothing_of_before(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(1)
    old = cluster.start("old")
    queue = queue_in(cluster, "p1")
    job = enqueue(cluster, old, queue, "first")
    new = cluster.start("new")
    assert cluster.holding("p1").node == "old"

    reading, writing = [Line(old) for _ in range(8)], Line(old)
    old.signal(signal.SIGSTOP)
    cluster.until(lambda: cluster.holding("p1").node == "new")
    assert ready(cluster, new, queue) == 1
    assert new.ask("DELETE", f"/v1/jobs/{job}").status in (200, 204)
    enqueue(cluster, new, queue, "second")
    enqueue(cluster, new, queue, "third")

    # They lie there when the node wakes up, and it knows of nothing.
    for line in reading:
        line.send("GET", f"/v1/queues/{queue}")
    writing.send("POST", f"/v1/queues/{queue}/jobs", b'[{"kind": "late"}]')
    old.signal(signal.SIGCONT)
    assert [line.status() for line in reading] == [503] * len(reading)
    assert writing.status() == 503

    cluster.until(lambda: "old" in cluster.held())
    assert cluster.holding("p1").node == "new"
    assert ready(cluster, new, queue) == 2
    assert "lease over" in old.log() or "partition lost" in old.log()


def test_cut_off_from_the_database_nobody_answers_when_the_lease_is_over(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(2)
    port = int(cluster.address.rpartition(":")[2].partition("/")[0])
    proxy = Proxy(port)
    try:
        through = cluster.address.replace(f":{port}/", f":{proxy.port}/")
        node = cluster.start("a", address=through)
        queue = queue_in(cluster, "p1")
        enqueue(cluster, node, queue, "first")

        proxy.cut = "asked"
        path = f"/v1/queues/{queue}"
        cluster.until(lambda: node.ask("GET", path, **HOP).status == 503)
        cluster.until(lambda: not cluster.held())
        for _ in range(20):
            assert node.ask("GET", path, **HOP).status == 503
        assert node.ask("GET", "/livez").status == 200

        proxy.cut = ""
        assert ready(cluster, node, queue) == 1
    finally:
        proxy.close()


@pytest.mark.long
def test_a_drained_node_gives_everything_away_and_gets_it_back(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(4)
    cluster.start("a")
    cluster.start("b")
    assert cluster.until(lambda: lengths(cluster.held()) == [2, 2])
    cluster.tables.drain("a", is_on=True)
    cluster.until(lambda: cluster.held() == {"a": [], "b": ["p1", "p2", "p3", "p4"]})
    cluster.tables.drain("a", is_on=False)
    assert cluster.until(lambda: lengths(cluster.held()) == [2, 2])


@pytest.mark.long
def test_a_partition_stays_where_an_operator_wants_it(make_cluster: Make) -> None:
    cluster = make_cluster(2)
    cluster.start("a")
    cluster.start("b")
    assert cluster.until(lambda: lengths(cluster.held()) == [1, 1])
    for partition in ("p1", "p2"):
        cluster.tables.move(partition, "b")
    cluster.until(lambda: cluster.held() == {"a": [], "b": ["p1", "p2"]})
    cluster.tables.move("p1", None)
    assert cluster.until(lambda: lengths(cluster.held()) == [1, 1])


@pytest.mark.long
def test_a_new_process_of_a_name_waits_for_the_lease_of_the_one_before(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(1)
    first = cluster.start("a")
    first.signal(signal.SIGSTOP)
    began_s = time.monotonic()
    second = cluster.start("a")
    assert time.monotonic() - began_s > LEASE_S / 2
    queue = queue_in(cluster, "p1")
    enqueue(cluster, second, queue, "one")
    first.signal(signal.SIGCONT)
    assert first.wait() == 2
    assert "another process is node 'a' now" in first.log()
    assert ready(cluster, second, queue) == 1


@pytest.mark.long
def test_what_a_server_had_before_there_was_a_cluster_is_found_by_its_nodes(
    make_cluster: Make, tmp_path: Path
) -> None:
    cluster = make_cluster(4)
    environment = {"HEADWAY_STORE": cluster.address}
    alone = Served(tmp_path / "a", environment=environment)
    jobs = [{"kind": "mail"}]
    for number in range(8):
        answer = alone.ask("POST", f"/v1/queues/old-{number}/jobs", jobs)
        assert answer.status == 201
    leased = alone.ask("POST", "/v1/lease", {"queues": ["old-0"], "lease": "1h"})
    token = leased.json["jobs"][0]["token"]
    assert alone.stop() == 0

    node = cluster.start("a")
    placed = cluster.until(
        lambda: {
            queue: partitions
            for queue, partitions in cluster.tables.look().placed
            if queue.startswith("old-")
        }
    )
    assert set(placed) == {f"old-{number}" for number in range(8)}
    assert set(placed.values()) == {("p1",)}
    assert ready(cluster, node, "old-5") == 1
    answer = node.ask("POST", "/v1/ack", {"tokens": [token]})
    assert answer.status == 200, answer


@pytest.mark.long
def test_a_job_left_in_the_inbox_of_another_partition_is_not_lost_from_sight(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(2)
    node = cluster.start("a")
    queue = queue_in(cluster, "p2")
    enqueue(cluster, node, queue, "over http")
    with psycopg.connect(cluster.address) as connection:
        Inbox("p1").enqueue(connection, queue, spec(b"1", kind="mail"))
    assert cluster.until(
        lambda: dict(cluster.tables.look().placed)[queue] == ("p2", "p1")
    )


@pytest.mark.long
def test_a_partition_may_be_in_another_database(
    make_cluster: Make, tmp_path: Path
) -> None:
    cluster = make_cluster(1)
    with shared.database("west") as west:
        file = tmp_path / "west"
        file.write_text(west)
        cluster.start("a")
        cluster.tables.add_partitions(["far"], database="west")
        able = cluster.start("b", "--database", f"west={file}")
        assert cluster.until(lambda: cluster.holding("far").node == "b")
        queue = queue_in(cluster, "far")
        enqueue(cluster, able, queue, "one")
        with psycopg.connect(west) as connection:
            found = connection.execute("SELECT count(*) FROM headway.jobs").fetchone()
        assert found == (1,)
        cluster.close()
