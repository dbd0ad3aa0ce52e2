"""Random histories over owners that die: the next one goes on as if nothing had been.

The stories and the models beside them are the core's own (tests/core/fuzz.py). Every
few steps the partition is thrown away and restored from what was written; every job
must be as it was, and everything the models check must hold on both sides of it.
"""

import pytest

from tests.core.drain import drain
from tests.core.test_partition_properties import CROWDED, WEIGHTS, story
from tests.runtime.written import WrittenFuzz


def check(seed: int, every: int) -> None:
    for verbs in (WEIGHTS, CROWDED):
        fuzz = WrittenFuzz()
        fuzz.play_with_restarts(story(seed, 120, verbs), every)
        drain(fuzz)
        assert fuzz.history.open_jobs() == [], seed


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_a_restart_changes_nothing(first: int) -> None:
    """Invariants 1, 2, 4, 5, 7-9, 18, 20-22, 26 and 29, with a restart every 7 steps."""
    for seed in range(first, first + 25):
        check(seed, 7)


@pytest.mark.parametrize("first", range(100, 140, 20))
def test_a_restart_after_every_step_changes_nothing(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed, 1)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_many_more_restarts_change_nothing(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, 1 + seed % 11)
