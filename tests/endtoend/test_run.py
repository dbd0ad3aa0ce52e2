"""P1-P9 end to end: a real server and real workers, killed in turn under load."""

from pathlib import Path

import pytest

from tests.endtoend.trial import Size, Trial

SMALL = Size(jobs=3_000, kills=8, gap_s=(0.4, 1.4), drain_s=120.0)
LARGE = Size(jobs=100_000, kills=62)


def check(folder: Path, size: Size, seed: int, *options: str) -> None:
    trial = Trial(folder, size, seed, *options)
    faults = trial.run()
    assert faults == [], f"seed {seed}"
    assert trial.kills == size.kills
    assert len(trial.told.accepted) == size.jobs


def test_everything_is_accounted_for_after_kills(tmp_path: Path) -> None:
    """Invariants 1, 2, 4-9, 18-22, 25, 26, 29, 31; P7."""
    check(tmp_path, SMALL, 1)


def test_everything_is_accounted_for_where_the_owner_is_apart(tmp_path: Path) -> None:
    """The same; the owner outlives a killed server for a moment."""
    check(tmp_path, SMALL, 3, "--apart")


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("options", [(), ("--apart",)], ids=["together", "apart"])
def test_a_hundred_thousand_jobs_are_accounted_for_after_kills(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    check(tmp_path, LARGE, 2, *options)
