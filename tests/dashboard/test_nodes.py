"""A cluster on one page, from which its nodes are drained and its partitions moved."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.cluster.nodes import ClusterOf, cluster_of, lengths
from tests.dashboard.conftest import Open

WHY = "a new disk"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOf]:
    folder: Path = tmp_path_factory.mktemp("cluster")
    with cluster_of("dashboard-cluster", folder, 2) as made:
        for name in ("east", "west"):
            made.start(name)
        made.until(lambda: lengths(made.held()) == [1, 1])
        yield made


def test_a_node_is_drained_and_comes_back(cluster: ClusterOf, tabs: Open) -> None:
    tab = tabs(cluster.nodes["east"], "/#/nodes")
    expect(tab.page.locator("h1")).to_have_text(
        "Every node is there, and every partition is served"
    )
    expect(tab.row("east")).to_contain_text("this one")
    expect(tab.row("west")).to_contain_text("alive")
    tab.button("Drain west").click()
    expect(tab.page.locator("dialog")).to_contain_text("goes to east")
    tab.button("Leave it").click()
    assert not cluster.view().nodes["west"].is_draining
    tab.button("Drain west").click()
    tab.answer("Drain", reason=WHY)
    tab.says("west drains")
    expect(tab.row("west")).to_contain_text("draining")
    expect(tab.row("east")).to_contain_text("p1 p2")
    tab.go("/#/acts")
    tab.shows("drained node west")
    tab.shows(WHY)

    tab.go("/#/nodes")
    tab.button("Undrain west").click()
    tab.answer("Undrain")
    expect(tab.button("Drain west")).to_be_visible()
    cluster.until(lambda: lengths(cluster.held()) == [1, 1])


@pytest.mark.long
def test_a_partition_is_moved_and_stays_there(cluster: ClusterOf, tabs: Open) -> None:
    cluster.until(lambda: lengths(cluster.held()) == [1, 1])
    (moved,) = cluster.held()["east"]
    tab = tabs(cluster.nodes["east"], "/#/nodes", is_lax=True)
    tab.button(f"Move {moved}").click()
    tab.page.locator("dialog [name=node]").select_option("west")
    assert tab.barriers() == []
    tab.answer("Move", reason=WHY)
    tab.says(f"{moved} is to be at west")
    row = tab.page.locator("section", has_text="Partitions").locator(
        "tr", has_text=moved
    )
    expect(row.last).to_contain_text("west")
    cluster.until(lambda: moved in cluster.held()["west"])
    assert cluster.holding(moved).pinned == "west"
    tab.button(f"Move {moved}").click()
    tab.page.locator("dialog [name=node]").select_option("")
    tab.answer("Move")
    cluster.until(lambda: cluster.holding(moved).pinned is None)
    cluster.until(lambda: lengths(cluster.held()) == [1, 1])
