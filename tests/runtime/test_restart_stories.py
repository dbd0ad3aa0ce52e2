"""Random histories over owners that die: the next one goes on as if nothing had been.

The stories and the models beside them are the core's own (tests/core/fuzz.py). Every
few steps the partition is thrown away and restored from what was written; every job
must be as it was, and everything the models check must hold on both sides of it.
"""

import pytest

from headway.core.memory import Bounds
from tests.core.drain import drain
from tests.core.test_partition_properties import CROWDED, WEIGHTS, story
from tests.runtime.written import ROOMY, TIGHT, WrittenFuzz


def check(seed: int, every: int, bounds: Bounds) -> None:
    for verbs in (WEIGHTS, CROWDED):
        fuzz = WrittenFuzz(bounds)
        fuzz.play_with_restarts(story(seed, 120, verbs), every)
        drain(fuzz)
        assert fuzz.history.open_jobs() == [], seed


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_a_restart_changes_nothing(first: int) -> None:
    """Invariants 1, 2, 4, 5, 7-9, 18, 20-22, 26 and 29, with a restart every 7 steps."""
    for seed in range(first, first + 15):
        check(seed, 7, ROOMY)


@pytest.mark.parametrize("first", range(60, 120, 15))
def test_memory_for_hardly_anything_changes_nothing(first: int) -> None:
    """The same with 8 jobs and 3 turns in memory: invariants 14, 15 and 17, too."""
    for seed in range(first, first + 15):
        check(seed, 7, TIGHT)


@pytest.mark.parametrize("first", range(120, 144, 8))
def test_a_restart_after_every_step_changes_nothing(first: int) -> None:
    for seed in range(first, first + 8):
        check(seed, 1, TIGHT)


@pytest.mark.parametrize("first", (85, 476, 144, 152))
def test_memory_for_hardly_anything_needs_no_restart(first: int) -> None:
    """85 and 476: a job behind the cut of an empty turn, in a lane at rest."""
    for seed in range(first, first + 4):
        for verbs in (WEIGHTS, CROWDED):
            fuzz = WrittenFuzz(TIGHT)
            fuzz.play(story(seed, 120, verbs))
            drain(fuzz)
            assert fuzz.history.open_jobs() == [], seed


def test_counts_of_a_queue_outlive_checkpoints_of_others() -> None:
    """A story of 541 dead letters: what was counted before two restarts is known."""
    check(145, 2, TIGHT)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_many_more_restarts_change_nothing(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, 1 + seed % 11, TIGHT if seed % 2 else ROOMY)
