"""A cluster under faults keeps its promises to everybody who uses it."""

from pathlib import Path

import pytest

from tests.cluster.chaos.trial import Trial
from tests.postgres import shared


def check(folder: Path, seed: int, seconds: float, *, is_cluster: bool = True) -> None:
    shared.cluster()  # without a PostgreSQL, the test is left out
    trial = Trial(folder, seed, is_cluster=is_cluster)
    faults = trial.run(seconds)
    assert faults == [], f"seed {seed}"
    assert trial.checker is not None
    assert trial.checker.figures["jobs accepted"] > 0
    assert trial.checker.figures["counts checked"] > 0


@pytest.mark.timeout(300)
def test_a_cluster_keeps_its_promises_under_faults(tmp_path: Path) -> None:
    """P1-P6; invariants 1, 2, 4, 5, 8, 10-12, 19, 29."""
    check(tmp_path, 1, 12.0)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", [2, 3])
def test_a_cluster_keeps_its_promises_under_many_faults(
    tmp_path: Path, seed: int
) -> None:
    check(tmp_path, seed, 240.0)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_servers_of_one_partition_keep_their_promises_under_faults(
    tmp_path: Path,
) -> None:
    check(tmp_path, 4, 60.0, is_cluster=False)
