"""Nodes and partitions over HTTP: seen from any node, steered from any node."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headway.cli.main import headway
from headway.server.tokens import wall_ms
from tests.cluster.metered import of_node
from tests.cluster.nodes import LEASE_S, ClusterOf, NodeProcess, enqueue, queue_in
from tests.server.process import Served

Make = Callable[[int], ClusterOf]


def nodes(node: NodeProcess) -> dict[str, dict[str, Any]]:
    answer = node.ask("GET", "/v1/nodes")
    assert answer.status == 200, answer
    return {one["name"]: one for one in answer.json["nodes"]}


def partitions(node: NodeProcess) -> dict[str, dict[str, Any]]:
    answer = node.ask("GET", "/v1/partitions")
    assert answer.status == 200, answer
    return {one["partition"]: one for one in answer.json["partitions"]}


def held(node: NodeProcess) -> dict[str, list[str]]:
    return {name: one["partitions"] for name, one in nodes(node).items()}


def evenly(node: NodeProcess) -> bool:
    return sorted(map(len, held(node).values())) == [1, 1]


def acts(node: NodeProcess) -> list[tuple[str, dict[str, str], Any, str]]:
    """What is kept by a node that holds something."""
    return [
        (act["what"], act["named"], act["said"], act["reason"])
        for act in node.ask("GET", "/v1/acts").json["acts"]
    ]


def test_a_cluster_is_seen_and_a_node_drained_from_any_other(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(2)
    before_ms = wall_ms()
    one, two = cluster.start("one"), cluster.start("two")
    for node in (one, two):
        cluster.until(lambda: evenly(node))  # noqa: B023
        found = nodes(node)
        assert found["one"]["address"] == one.address
        assert {each["state"] for each in found.values()} == {"alive"}
        for each in found.values():
            assert 0 <= each["lease_left_ms"] <= LEASE_S * 1_000
            assert each["started_ms"] >= before_ms - 60_000
        assert node.ask("GET", "/v1/nodes").json["told_by"] == node.name
    cluster.until(lambda: of_node(two)["partitions"] == 1)
    before = partitions(one)
    queue = queue_in(cluster, "p1")
    cluster.until(lambda: partitions(one)["p1"]["queues"] > before["p1"]["queues"])
    enqueue(cluster, two, queue, "first")

    why = {"headway_reason": "a%20new%20disk"}
    assert one.ask("POST", "/v1/nodes/two/drain", **why).json == {"done": True}
    cluster.until(lambda: held(one) == {"one": ["p1", "p2"], "two": []})
    assert nodes(one)["two"]["state"] == "draining"
    for name, each in partitions(one).items():
        if before[name]["node"] == "two":
            assert each["since_ms"] >= before_ms - 60_000
    assert ("nodes_drain", {"name": "two"}, None, "a new disk") in acts(one)
    # Held by the tables, it may still be opened.
    cluster.until(lambda: of_node(one)["partitions"] == 2)
    counted = {node.name: of_node(node) for node in (one, two)}
    assert counted["two"]["partitions"] == 0
    assert counted["two"]["handovers_total"] == counted["two"]["opened_total"] == 1
    assert counted["one"]["opened_total"] >= 2
    for each in counted.values():
        assert 0 < each["lease_left_seconds"] <= LEASE_S
        assert each["lost_total"] == 0
    for path, body in (
        ("/v1/nodes/three/drain", None),
        ("/v1/nodes/three/undrain", None),
        ("/v1/partitions/p9/move", {"node": "two"}),
    ):
        # Over one that holds nothing, too: it passes it on.
        assert two.ask("POST", path, body).code == "not_found"
    unknown = two.ask("POST", "/v1/partitions/p1/move", {"node": "three"})
    assert (unknown.code, unknown.json["key"]) == ("bad_value", "node")

    listed = told(one, "nodes", "--json")
    assert [row["name"] for row in json.loads(listed)] == ["one", "two"]
    rows = json.loads(told(one, "partitions", "list", "--json"))
    assert [row["node"] for row in rows] == ["one", "one"]
    assert "takes partitions again" in told(one, "nodes", "undrain", "two")
    cluster.until(lambda: evenly(one))
    assert "p1 goes to two" in told(one, "partitions", "move", "p1", "two")
    assert cluster.holding("p1").pinned == "two"
    assert "no node 'x'" in told(one, "nodes", "drain", "x", status=2)
    both = told(one, "nodes", "--store", "postgresql://here/x", status=2)
    assert "not both" in both


def told(node: NodeProcess, *words: str, status: int = 0) -> str:
    done = CliRunner().invoke(headway, [*words, "--server", node.address])
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.long
def test_partitions_are_moved_and_nodes_taken_back_over_any_node(
    make_cluster: Make,
) -> None:
    cluster = make_cluster(2)
    one, two = cluster.start("one"), cluster.start("two")
    cluster.until(lambda: evenly(one))
    for partition in ("p1", "p2"):
        path = f"/v1/partitions/{partition}/move"
        assert one.ask("POST", path, {"node": "two"}).status == 200
    cluster.until(lambda: held(two) == {"one": [], "two": ["p1", "p2"]})
    assert partitions(two)["p1"]["pinned"] == "two"
    assert two.ask("POST", "/v1/partitions/p2/move", {"node": "two"}).status == 200
    assert ("nodes_move", {"partition": "p2"}, {"node": "two"}, "") in acts(two)
    assert one.ask("POST", "/v1/partitions/p1/move", {"node": None}).status == 200
    cluster.until(lambda: evenly(two))
    assert partitions(two)["p1"]["pinned"] is None

    assert two.ask("POST", "/v1/nodes/one/drain").status == 200
    cluster.until(lambda: held(two) == {"one": [], "two": ["p1", "p2"]})
    # It holds nothing, and so passes on what is to be done to itself.
    assert one.ask("POST", "/v1/nodes/one/undrain").status == 200
    cluster.until(lambda: evenly(two))

    two.kill()
    cluster.until(lambda: held(one) == {"one": ["p1", "p2"], "two": []})
    gone = nodes(one)["two"]
    assert (gone["state"], gone["lease_left_ms"]) == ("gone", 0)


def test_a_server_alone_tells_of_itself(tmp_path: Path) -> None:
    served = Served(tmp_path / "data")
    served.ask("POST", "/v1/queues/mail/jobs", {"kind": "a"})
    found = served.ask("GET", "/v1/nodes").json
    (node,) = found["nodes"]
    assert (found["is_cluster"], found["told_by"]) == (False, node["name"])
    assert (node["state"], node["partitions"]) == ("alive", ["p1"])
    assert node["lease_left_ms"] is None
    (partition,) = served.ask("GET", "/v1/partitions").json["partitions"]
    assert (partition["partition"], partition["node"]) == ("p1", node["name"])
    assert partition["queues"] == 2
    drain = served.ask("POST", f"/v1/nodes/{node['name']}/drain")
    assert (drain.status, drain.code) == (404, "not_found")
    move = served.ask("POST", "/v1/partitions/p1/move", {"node": None})
    assert (move.status, move.code) == (404, "not_found")
    assert served.ask("GET", "/v1/acts").json["acts"] == []
    served.stop()
