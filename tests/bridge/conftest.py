"""A cluster for all tests of a module, and servers that stop with the test."""

import pytest

from tests.bridge.crossing import Cluster
from tests.server.conftest import serve

__all__ = ["cluster", "serve"]


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()
