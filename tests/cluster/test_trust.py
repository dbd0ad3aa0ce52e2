"""Between nodes: certificates that are trusted, and tokens that all of them know."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.core.errors import BadValue
from headway.server.cluster.peers import trusted
from tests.cluster.nodes import ClusterOf, NodeProcess, lengths, queue_in
from tests.server.process import make_token
from tests.server.test_tls import certify, needs_openssl, refused

Make = Callable[[int], ClusterOf]


def first_and_other(cluster: ClusterOf) -> tuple[NodeProcess, NodeProcess, str]:
    """Two nodes, and a queue whose partition the second holds."""
    cluster.until(lambda: lengths(cluster.held()) == [1, 1])
    (far,) = cluster.held()["b"]
    return cluster.nodes["a"], cluster.nodes["b"], queue_in(cluster, far)


@needs_openssl
def test_requests_are_sent_on_over_tls_to_nodes_whose_certificate_is_trusted(
    make_cluster: Make, tmp_path: Path
) -> None:
    secret = make_token(tmp_path / "a", "admin", "admin")
    some = make_token(tmp_path / "a", "some", "enqueue:*", "read:other")
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "a" / "tokens.json", tmp_path / "b")
    certify(tmp_path / "a")
    certify(tmp_path / "b")
    cluster = make_cluster(2)
    for name, other in (("a", "b"), ("b", "a")):
        own = tmp_path / name
        cluster.start(
            name,
            *("--certificate", str(own / "tls.crt")),
            *("--private-key", str(own / "tls.key")),
            *("--peer-ca", str(tmp_path / other / "tls.crt")),
        )
    first, second, queue = first_and_other(cluster)
    assert first.address.startswith("https://")
    path = f"/v1/queues/{queue}"
    jobs = f"{path}/jobs"

    def accepted() -> bool:
        return first.ask("POST", jobs, {"kind": "a"}, token=secret).status == 201

    cluster.until(accepted)
    found = second.ask("GET", path, token=secret)
    assert found.json["counts"]["ready"] >= 1
    # Scopes are those of the caller, at whichever node it is carried out.
    assert first.ask("POST", jobs, {"kind": "a"}, token=some).status == 201
    assert first.ask("GET", path, token=some).code == "forbidden"
    lease = {"queues": [queue]}
    assert first.ask("POST", "/v1/lease", lease, token=some).code == "forbidden"
    assert "not trusted" not in cluster.logs()


@needs_openssl
@pytest.mark.long
def test_a_node_with_another_certificate_is_told_nothing(
    make_cluster: Make, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        certify(tmp_path / name)
    cluster = make_cluster(2)
    for name in ("a", "b"):
        own = tmp_path / name
        cluster.start(
            name,
            *("--certificate", str(own / "tls.crt")),
            *("--private-key", str(own / "tls.key")),
            *("--peer-ca", str(tmp_path / "c" / "tls.crt")),
        )
    first, second, queue = first_and_other(cluster)
    answer = first.ask("POST", f"/v1/queues/{queue}/jobs", {"kind": "a"})
    assert (answer.status, answer.code) == (503, "stopped")
    assert "certificate that is not trusted" in answer.json["detail"]
    assert "nothing was done" in answer.json["detail"]
    assert second.ask("GET", f"/v1/queues/{queue}").status == 404


def test_a_token_that_one_node_alone_knows_is_refused_by_others_who_say_so(
    make_cluster: Make, tmp_path: Path
) -> None:
    shared = make_token(tmp_path / "a", "shared", "admin")
    (tmp_path / "b").mkdir()
    shutil.copy(tmp_path / "a" / "tokens.json", tmp_path / "b")
    mine = make_token(tmp_path / "a", "mine", "admin")
    cluster = make_cluster(2)
    for name in ("a", "b"):
        cluster.start(name)
    first, second, queue = first_and_other(cluster)
    path = f"/v1/queues/{queue}/jobs"
    job = {"kind": "a"}
    cluster.until(lambda: first.ask("POST", path, job, token=shared).status == 201)
    before = second.ask("GET", f"/v1/queues/{queue}", token=shared).json["counts"]
    for _ in range(3):
        answer = first.ask("POST", path, job, token=mine)
        assert (answer.status, answer.code) == (401, "unauthorized")
    assert first.ask("GET", "/v1/me", token=mine).status == 200
    assert second.ask("GET", "/v1/me", token=mine).status == 401
    lines = [
        line for line in second.events() if line["event"] == "forwarded token not known"
    ]
    # Once, however often it is tried; what a stranger brings along is no news.
    assert [line["level"] for line in lines] == ["warning"]
    assert "tokens.json" in lines[0]["why"]
    assert mine not in second.log()
    after = second.ask("GET", f"/v1/queues/{queue}", token=shared).json["counts"]
    assert before == after


def test_certificates_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for file in (empty, tmp_path / "gone.pem"):
        with pytest.raises(BadValue, match=file.name):
            trusted(file)
    assert trusted(None) is None
    said = refused(tmp_path / "data", "--peer-ca", str(empty))
    assert "give it a --node" in said
