"""Only the lease keeps a node from answers that were true before another took over."""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.metered import of_node
from tests.cluster.nodes import ClusterOf, NodeProcess, enqueue, queue_in, ready
from tests.postgres.proxy import Proxy
from tests.server.process import Answer

Make = Callable[[int], ClusterOf]
HOP = {"headway_hop": "1"}
"""What a node sends to another: it is never passed on."""


class Careless(NodeProcess):
    """Answers for as long as it lives, whatever became of its lease."""

    module = "tests.cluster.careless"


@pytest.fixture
def cluster(make_cluster: Make) -> ClusterOf:
    return make_cluster(1)


@pytest.fixture
def way(cluster: ClusterOf) -> Iterator[Proxy]:
    """A way to the database that can be cut."""
    proxy = Proxy(int(cluster.address.rpartition(":")[2].partition("/")[0]))
    yield proxy
    proxy.close()


def left_behind(cluster: ClusterOf, way: Proxy, kind: type[NodeProcess]) -> Answer:
    """What a node says of a queue whose one job another has cancelled since.

    The node runs on, has the job in memory, and can hear nothing from the database: it
    is not told that it was replaced.
    """
    port = int(cluster.address.rpartition(":")[2].partition("/")[0])
    through = cluster.address.replace(f":{port}/", f":{way.port}/")
    old = cluster.start("old", address=through, kind=kind)
    queue = queue_in(cluster, "p1")
    job = enqueue(cluster, old, queue, "first")
    path = f"/v1/queues/{queue}"
    assert old.ask("GET", path, **HOP).json["counts"]["ready"] == 1
    new = cluster.start("new")
    assert cluster.holding("p1").node == "old"

    way.cut = "asked"
    cluster.until(lambda: cluster.holding("p1").node == "new")
    cluster.until(lambda: new.ask("DELETE", f"/v1/jobs/{job}").status in (200, 204))
    assert ready(cluster, new, queue) == 0
    return old.ask("GET", path, **HOP)


def test_a_node_that_runs_on_without_its_lease_says_nothing_of_its_jobs(
    cluster: ClusterOf, way: Proxy
) -> None:
    answer = left_behind(cluster, way, NodeProcess)
    assert (answer.status, answer.code) == (503, "stopped")
    way.cut = ""
    old = cluster.nodes["old"]
    cluster.until(lambda: old.ask("GET", "/metrics").status == 200)
    counted = of_node(old)
    assert (counted["lost_total"], counted["partitions"]) == (1, 0)
    assert counted["renewals_missed_total"] >= 1


@pytest.mark.long
def test_without_the_look_at_its_lease_it_would_tell_what_was_true_before(
    cluster: ClusterOf, way: Proxy
) -> None:
    """Or the test above would prove nothing."""
    answer = left_behind(cluster, way, Careless)
    assert (answer.status, answer.json["counts"]["ready"]) == (200, 1)
