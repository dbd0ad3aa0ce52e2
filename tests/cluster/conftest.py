"""Clusters for tests: each has a database of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from tests.cluster.nodes import ClusterOf, cluster_of

_numbers = count(1)


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[Callable[[int], ClusterOf]]:
    """Makes a cluster that begins with so many partitions; nodes are started later."""
    with ExitStack() as stack:

        def make(partitions: int) -> ClusterOf:
            name = f"cluster-{next(_numbers)}"
            return stack.enter_context(cluster_of(name, tmp_path, partitions))

        yield make
