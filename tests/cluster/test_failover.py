"""Two nodes under load: one is killed, one is drained, and all have too much to do.

`make bench ONLY=cluster` keeps the figures of the same runs.
"""

import asyncio

import pytest

from benchmarks import cluster as bench
from tests.postgres import shared

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
SIZES = bench.Sizes(before_s=6.0)


@pytest.fixture(autouse=True)
def _database() -> None:
    shared.cluster()  # without a PostgreSQL, these tests are left out


def test_queues_of_a_killed_node_are_served_by_another() -> None:
    """P7: within the lease and five seconds."""
    with bench.cluster(["n1", "n2"], SIZES.partitions) as nodes:
        back_s = asyncio.run(bench.failed_over(nodes, SIZES))
    assert back_s <= bench.LEASE_S + bench.NOTICE_S


def test_jobs_that_are_sent_during_a_drain_are_started() -> None:
    with bench.cluster(["n1", "n2"], SIZES.partitions) as nodes:
        drain = asyncio.run(bench.drained(nodes, SIZES))
    assert drain.jobs > 0


def test_urgent_work_is_in_time_on_both_nodes_when_there_is_too_much() -> None:
    """Whatever partition it is in, and whichever node the workers ask."""
    with bench.cluster(["n1", "n2"], 2) as nodes:
        started, in_time = asyncio.run(bench.overloaded(nodes))
    assert len(started) == 2, "there is urgent work in one place only"
    for place, count in started.items():
        assert in_time[place] >= bench.ATTAINED * count, (place, started, in_time)
