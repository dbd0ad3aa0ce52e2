"""What a node tells of itself: what it has sent on, and what became of that."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.server.metric_names import NODE_METRICS
from tests.cluster.gated import Gated, gated
from tests.cluster.metered import of_node
from tests.server.process import make_token


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Gated]:
    with gated(tmp_path, patience_s=0.2) as cluster:
        cluster.place(near="p1", far="p2")
        yield cluster


def test_requests_that_are_sent_on_are_counted_and_timed(nodes: Gated) -> None:
    node = nodes["a"]
    before = of_node(node)
    assert (before["forwarded_total"], before["forward_seconds_count"]) == (0, 0)
    assert (before["partitions"], before["lease_left_seconds"]) == (1, 1.5)
    node.enqueue("near")
    node.enqueue("far")
    assert node.ask("GET", "/v1/queues").status == 200
    now = of_node(node)
    assert (now["forwarded_total"], now["forward_seconds_count"]) == (2, 2)
    assert now["forward_seconds_sum"] > 0
    assert now['forward_seconds_bucket,le="+Inf"'] == 2
    # A lease may wait at the other node, which says nothing of the way there.
    assert len(node.lease("far")) == 1
    last = of_node(node)
    assert (last["forwarded_total"], last["forward_seconds_count"]) == (3, 2)
    assert of_node(nodes["b"])["forwarded_total"] == 0


def test_nodes_that_do_not_answer_are_counted_by_what_is_known(nodes: Gated) -> None:
    node = nodes["a"]
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        nodes.map.addresses["b"] = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert node.ask("POST", "/v1/queues/far/jobs", {}).status == 503
        found = of_node(node)
        assert found['peer_errors_total,outcome="not_sent"'] >= 1
        assert found['peer_errors_total,outcome="lost"'] == 0
        assert found["forward_seconds_count"] == 0


def test_every_metric_of_a_node_is_written_with_its_kind_and_meaning(
    nodes: Gated,
) -> None:
    text = nodes["a"].ask("GET", "/metrics").body.decode()
    for name, (kind, meaning) in NODE_METRICS.items():
        assert text.count(f"# HELP {name} {meaning}\n") == 1
        assert text.count(f"# TYPE {name} {kind.value}\n") == 1
        assert meaning.endswith(".")


def test_they_need_a_token_that_is_good_for_metrics(tmp_path: Path) -> None:
    some = make_token(tmp_path, "some", "read")
    good = make_token(tmp_path, "good", "metrics")
    with gated(tmp_path, a=["p1"], idle=[]) as nodes:
        for node in nodes.nodes.values():
            path, bearer = "/metrics", f"Bearer {some}"
            assert node.ask("GET", path).code == "unauthorized"
            assert node.ask("GET", path, authorization=bearer).code == "forbidden"
            bearer = f"Bearer {good}"
            assert node.ask("GET", path, authorization=bearer).status == 200
