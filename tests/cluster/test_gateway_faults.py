"""Nodes that are gone, moved, wrong or hostile: what is certain is retried, only that."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.server.cluster.gateway import proof_of
from headway.server.tokens import TokenFile
from tests.cluster.gated import KEY, Gated, gated
from tests.server.process import make_token

PEER = {"headway_hop": "1", "headway_peer": proof_of(KEY).decode()}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Gated]:
    with gated(tmp_path, patience_s=5.0) as cluster:
        cluster.place(near="p1", far="p2")
        yield cluster


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Gated]:
    """Nodes without patience."""
    with gated(tmp_path, patience_s=0.2) as cluster:
        cluster.place(near="p1", far="p2")
        yield cluster


def test_a_request_waits_while_nobody_holds_its_partition(nodes: Gated) -> None:
    nodes.move("p2", None)
    back = threading.Timer(0.3, lambda: nodes.move("p2", "b"))
    back.start()
    assert nodes["a"].enqueue("far")[0] == "p2_1"
    back.join()


def test_a_partition_that_moved_is_found_at_its_new_node(nodes: Gated) -> None:
    nodes["a"].enqueue("far")
    nodes.move("p2", "a", is_told=False)
    # The other node still believes that it is not here: this one knows better.
    assert nodes["a"].enqueue("far")[0] == "p2_2"
    assert nodes["b"].enqueue("far")[0] == "p2_3"
    nodes.move("p1", "b", is_told=False)
    assert nodes["a"].enqueue("near")[0] == "p1_1"


def test_a_node_that_is_asked_for_what_it_no_longer_has_says_so(nodes: Gated) -> None:
    answer = nodes["a"].ask(
        "POST", "/v1/queues/far/jobs", {}, headway_partition="p2", **PEER
    )
    assert (answer.status, answer.code) == (503, "stopped")
    assert answer.headers["headway-elsewhere"] == "1"
    assert answer.headers["retry-after"] == "1"
    assert nodes["b"].seen == []


def test_hops_end_whatever_two_nodes_believe_of_each_other(hasty: Gated) -> None:
    hasty.move("p2", None)
    for name, other in (("a", "b"), ("b", "a")):
        hasty[name].places.believed["p2"] = other
    # `refresh` brings the truth in; here nothing does.
    for node in hasty.nodes.values():
        node.places.refresh = lambda: None  # type: ignore[method-assign]
    answer = hasty["a"].ask("POST", "/v1/queues/far/jobs", {})
    assert (answer.status, answer.code) == (503, "stopped")
    assert "nothing was done" in answer.json["detail"]
    asked = len(hasty["b"].seen)
    assert 1 <= asked < 20
    assert len(hasty["a"].seen) == 1


def test_a_client_that_claims_to_be_a_hop_gets_what_is_here_and_no_more(
    nodes: Gated,
) -> None:
    assert nodes["a"].ask("GET", "/v1/queues", headway_hop="1").status == 503
    far = nodes["a"].ask("POST", "/v1/queues/far/jobs", {}, headway_hop="1")
    assert far.headers["headway-elsewhere"] == "1"
    near = {"headway_hop": "1", "headway_partition": "p1", "headway_peer": "guess"}
    # It can't put jobs of a queue where they do not belong.
    assert nodes["a"].ask("POST", "/v1/queues/far/jobs", {}, **near).status == 503
    assert nodes["a"].ask("POST", "/v1/queues/near/jobs", {}, **near).status == 201
    assert nodes["b"].seen == []
    for path in ("/v1/cluster/urgency", "/v1/cluster/withdraw", "/v1/cluster/x"):
        assert nodes["a"].ask("POST", path, {"asks": []}).status == 404
        assert nodes["a"].ask("POST", path, {"asks": []}, headway_hop="1").status == 404


def test_nodes_ask_each_other_how_urgent_it_is(nodes: Gated) -> None:
    nodes["b"].ask("PUT", "/v1/queues/far", {"slo": "7s", "margin": "7s"})
    asks = [{"partition": "p2", "queues": ["far"]}, {"partition": "p2"}]
    asks += [{"partition": "p1"}, {"partition": "p2", "queues": ["nothing"]}]
    path = "/v1/cluster/urgency"
    empty = nodes["b"].ask("POST", path, {"asks": asks}, **PEER).json["hints"]
    assert [one and one["rank"] for one in empty] == [None, None, None, None]
    nodes["b"].enqueue("far")
    hints = nodes["b"].ask("POST", path, {"asks": asks}, **PEER).json["hints"]
    assert hints[0] == hints[1] == {"rank": 0, "measure": 7_000}
    assert hints[2] is None
    assert hints[3]["rank"] is None
    for body in (b"{", b"[]", b'{"asks": 1}'):
        assert nodes["b"].ask("POST", path, body, **PEER).code == "bad_json"
    said = nodes["b"].ask("POST", "/v1/cluster/withdraw", {"id": "unknown"}, **PEER)
    assert said.status == 200


@contextmanager
def _speaks(reply: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A node that answers everything so, and hangs up; and what it was sent."""
    heard: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            heard.append(self.request.recv(65_536))
            self.request.sendall(reply)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


HOSTILE = [
    b"",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999999999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 500 + b"content-length: 0\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
]


@pytest.mark.parametrize("reply", HOSTILE)
def test_what_a_peer_answers_wrongly_is_never_sent_twice(
    hasty: Gated, reply: bytes
) -> None:
    with _speaks(reply) as (address, heard):
        hasty.map.addresses["b"] = address
        answer = hasty["a"].ask("POST", "/v1/queues/far/jobs", {})
        assert (answer.status, answer.code) == (503, "stopped")
        assert "p2" in answer.json["detail"]
        assert len(heard) == 1
        # To look again does no harm.
        assert hasty["a"].ask("GET", "/v1/jobs/p2_1").status == 503
        assert len(heard) >= 2
        settled = {"tokens": ["p1_00.near", "p2_00.far"]}
        partly = hasty["a"].ask("POST", "/v1/ack", settled)
        assert (partly.status, partly.code) == (503, "stopped")
        assert hasty["a"].ask("GET", "/v1/queues").status == 503
        hasty["a"].enqueue("near")
        assert len(hasty["a"].lease("near", "far")) == 1


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'{"jobs": 7}', b"\xff", b"[" * 9_000])
def test_good_answers_with_bad_bodies_are_not_believed(
    hasty: Gated, body: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    reply = head + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    with _speaks(reply) as (address, _):
        hasty.map.addresses["b"] = address
        assert hasty["a"].ask("GET", "/v1/queues").status == 503
        assert hasty["a"].ask("GET", "/v1/running").status == 503
        hasty["a"].enqueue("near")
        assert len(hasty["a"].lease("near", "far")) == 1


def test_nobody_listens_where_a_node_should_be(hasty: Gated) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        hasty.map.addresses["b"] = f"http://127.0.0.1:{taken.getsockname()[1]}"
        answer = hasty["a"].ask("POST", "/v1/queues/far/jobs", {})
        assert (answer.status, answer.code) == (503, "stopped")
        assert "nothing was done" in answer.json["detail"]
    assert hasty.map.refreshes > 0
    for address in ("ftp://x", "http://", "nonsense", "http://x:99999"):
        hasty.map.addresses["b"] = address
        assert hasty["a"].ask("POST", "/v1/queues/far/jobs", {}).status == 503


def test_tokens_of_a_partition_that_is_gone_are_named_and_others_are_done(
    hasty: Gated,
) -> None:
    for queue in ("near", "far"):
        hasty["a"].enqueue(queue)
    tokens = [hasty["a"].lease(queue)[0]["token"] for queue in ("near", "far")]
    hasty.move("p2", None)
    answer = hasty["a"].ask("POST", "/v1/ack", {"tokens": tokens})
    assert (answer.status, answer.code) == (503, "stopped")
    assert tokens[1] in answer.json["detail"]
    assert tokens[0] not in answer.json["detail"]
    hasty.move("p2", "b")
    again = hasty["a"].ask("POST", "/v1/ack", {"tokens": tokens})
    assert again.json["stale"] == [tokens[0]]


def test_nothing_is_answered_when_the_lease_of_the_node_is_over(nodes: Gated) -> None:
    job = nodes["a"].enqueue("near")[0]
    far = nodes["a"].enqueue("far")[0]
    nodes["b"].places.is_leased = False
    assert nodes["b"].ask("GET", f"/v1/jobs/{far}").code == "stopped"
    assert nodes["a"].ask("GET", f"/v1/jobs/{far}").code == "stopped"
    assert nodes["b"].ask("GET", "/livez").status == 200
    assert nodes["b"].ask("GET", "/readyz").status == 503
    assert nodes["a"].ask("GET", f"/v1/jobs/{job}").status == 200
    assert nodes["a"].ask("GET", "/readyz").status == 200


def test_a_node_without_partitions_answers_everything(tmp_path: Path) -> None:
    with gated(tmp_path, a=["p1"], idle=[]) as nodes:
        node = nodes["idle"]
        assert node.enqueue("mail") == ["p1_1"]
        assert len(node.lease("mail")) == 1
        assert node.ask("GET", "/").status == 200
        assert node.ask("GET", "/openapi.json").status == 200
        assert node.ask("GET", "/readyz").status == 200
        metrics = node.ask("GET", "/metrics").body
        assert b'headway_node_partitions{node="idle"} 0' in metrics
        assert b"partition=" not in metrics
        assert node.ask("GET", "/v1/nowhere").code == "not_found"
        assert node.ask("GET", "/v1/jobs/17").code == "unknown_job"


def test_scopes_hold_at_every_node(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    assert file.read() == []
    some = make_token(tmp_path, "some", "work:near", "read:near", "enqueue:far")
    every = make_token(tmp_path, "every", "admin")
    with gated(tmp_path, patience_s=5.0) as nodes:
        nodes.place(near="p1", far="p2")
        mine = {"authorization": f"Bearer {some}"}
        all_ = {"authorization": f"Bearer {every}"}
        node = nodes["a"]
        assert node.ask("POST", "/v1/queues/far/jobs", {}, **mine).status == 201
        assert node.ask("GET", "/v1/queues/far", **mine).code == "forbidden"
        assert node.ask("GET", "/v1/jobs/p2_1", **mine).code == "unknown_job"
        both = {"queues": ["near", "far"]}
        assert node.ask("POST", "/v1/lease", both, **mine).code == "forbidden"
        assert node.ask("POST", "/v1/lease", {}, **mine).code == "forbidden"
        assert node.ask("POST", "/v1/lease", both).code == "unauthorized"
        before = len(nodes["b"].seen)
        assert node.ask("GET", "/v1/queues").code == "unauthorized"
        assert len(nodes["b"].seen) == before
        got = node.ask("POST", "/v1/lease", both, **all_).json["jobs"]
        tokens = {"tokens": [got[0]["token"], "p1_00.near"]}
        assert node.ask("POST", "/v1/ack", tokens, **mine).code == "forbidden"
        assert node.ask("POST", "/v1/ack", tokens, **all_).status == 200
        listed = node.ask("GET", "/v1/queues", **mine).json["queues"]
        assert [one["name"] for one in listed] in ([], ["near"])


def test_pages_of_other_sites_are_turned_away_before_anything_is_forwarded(
    nodes: Gated,
) -> None:
    evil = nodes["a"].ask("POST", "/v1/queues/far/jobs", {}, origin="http://evil.org")
    assert evil.code == "cross_site"
    own = f"http://127.0.0.1:{nodes['a'].port}"
    assert nodes["a"].ask("POST", "/v1/queues/far/jobs", {}, origin=own).status == 201
    wrong = nodes["a"].ask("POST", "/v1/queues/far/jobs", {}, host="evil.org")
    assert wrong.code == "misdirected"
