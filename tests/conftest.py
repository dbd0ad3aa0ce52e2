"""What all tests share: the order in which workers take them, and one database."""

from typing import Any

import pytest
from hypothesis import settings

from headway import compiled
from tests.postgres import shared

# How long an example takes is no matter of right or wrong, on a busy machine least.
settings.register_profile("headway", deadline=None)
settings.load_profile("headway")

TOGETHER = (
    "tests/cli/",
    "tests/cluster/",
    "tests/dashboard/",
    "tests/server/",
    "tests/sim/test_world_promises.py",
)
"""Modules whose tests share a server, a browser, or what a simulation came to."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if compiled.is_used() and item.get_closest_marker("interpreted"):
        pytest.skip("changes a module from outside, and it is compiled")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What tests have in common is made once, where that is dear; others go anywhere.

    Those on Spark go to one worker, and first: each other would start a Spark, too.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Grouped(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith("tests/spark/"):
                return "spark"
            module, _, _ = nodeid.partition("::")
            return module if module.startswith(TOGETHER) else nodeid

    return Grouped(config, log)


def pytest_sessionfinish() -> None:
    """The database that some tests share ends with them."""
    shared.stop()
