"""The throttler of a queue runs beside its owner, on whichever node that is."""

from collections.abc import Callable
from typing import Any

from tests.cluster.nodes import ClusterOf, NodeProcess

BY_KIND = ("--throttler", "q=tests.runtime.throttlers:by_kind")
Make = Callable[[int], ClusterOf]


def test_the_next_owner_asks_its_own(make_cluster: Make) -> None:
    cluster = make_cluster(1)
    first = cluster.start("a", *BY_KIND)
    assert asked(cluster, first, "PUT", "/v1/queues/q", {})["has_throttler"]
    asked(cluster, first, "POST", "/v1/queues/q/jobs", jobs("refuse", "start"))
    assert leased(cluster, first) == ["start"]
    first.kill()
    second = cluster.start("b", *BY_KIND)
    asked(cluster, second, "POST", "/v1/queues/q/jobs", jobs("refuse", "class"))
    assert leased(cluster, second) == ["class"]
    counts = asked(cluster, second, "GET", "/v1/queues/q")["counts"]
    assert (counts["dead"], counts["ready"]) == (2, 0)


def jobs(*kinds: str) -> list[dict[str, str]]:
    return [{"kind": kind, "tenant": kind} for kind in kinds]


def asked(
    cluster: ClusterOf, node: NodeProcess, method: str, path: str, body: object = None
) -> Any:
    """The answer, once the node has the partition."""

    def answered() -> Any:
        answer = node.ask(method, path, body)
        assert answer.status in (200, 201, 503), answer
        return None if answer.status == 503 else answer.json

    return cluster.until(answered)


def leased(cluster: ClusterOf, node: NodeProcess) -> list[str]:
    body = {"queues": ["q"], "max": 1, "wait": "20s"}
    found = asked(cluster, node, "POST", "/v1/lease", body)["jobs"]
    return [job["kind"] for job in found]
