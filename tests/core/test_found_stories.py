"""Stories that once failed, kept for good."""

import pytest

from tests.core.drain import drain
from tests.core.fuzz import Fuzz
from tests.core.test_partition_properties import story


@pytest.mark.parametrize("seed", [1233, 1602, 1609, 1690, 1789, 2585])
def test_a_story_that_once_failed_keeps_the_invariants(seed: int) -> None:
    """Invariants 22 and 29: borrowers, jobs without cost, windows nobody looked at."""
    fuzz = Fuzz()
    fuzz.play(story(seed, 250))
    drain(fuzz)
    assert fuzz.history.open_jobs() == []
