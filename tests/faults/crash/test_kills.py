"""P1-P3, P5, P6, P9: processes under load are killed, and nothing they said is lost."""

from pathlib import Path

import pytest

from tests.faults.crash.trial import Trial

CHUNKS = 8
KILLS_EACH = 13
"""On one file: 104 kills in all."""


def check(path: Path, seed: int, kills: int) -> None:
    trial = Trial(path, seed)
    trial.run(kills)
    assert trial.account.faults == [], f"seed {seed}"
    assert trial.kills == kills


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_what_was_answered_survives_a_kill_at_any_moment(
    tmp_path: Path, chunk: int
) -> None:
    """Invariants 1, 2, 5, 6, 8, 19, 25, 31."""
    check(tmp_path / "jobs.db", 1_000 + chunk, KILLS_EACH)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(40))
def test_what_was_answered_survives_a_thousand_kills(
    tmp_path: Path, chunk: int
) -> None:
    check(tmp_path / "jobs.db", 2_000 + chunk, 25)
