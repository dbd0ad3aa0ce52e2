"""P1-P9 end to end: a real server and real workers, killed in turn under load."""

from pathlib import Path

import pytest

from tests.endtoend.trial import Size, Trial

SMALL = Size(jobs=3_000, kills=8, gap_s=(0.4, 1.4), drain_s=120.0)
LARGE = Size(jobs=100_000, kills=62)


def check(folder: Path, size: Size, seed: int) -> None:
    trial = Trial(folder, size, seed)
    faults = trial.run()
    assert faults == [], f"seed {seed}"
    assert trial.kills == size.kills
    assert len(trial.told.accepted) == size.jobs


def test_everything_is_accounted_for_after_kills(tmp_path: Path) -> None:
    """Invariants 1, 2, 4-9, 18-22, 25, 26, 29, 31; P7."""
    check(tmp_path, SMALL, 1)


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_a_hundred_thousand_jobs_are_accounted_for_after_kills(tmp_path: Path) -> None:
    check(tmp_path, LARGE, 2)
