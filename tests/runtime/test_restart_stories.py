"""Random histories over owners that die: the next one goes on as if nothing had been.

The stories and the models beside them are the core's own (tests/core/fuzz.py). Every
few steps the partition is thrown away and restored from what was written; every job
must be as it was, and everything the models check must hold on both sides of it.
"""

import pytest

from headway.core import bulk as bulk_records
from headway.core.bounds import Bounds
from headway.runtime import bulk
from tests.core.drain import drain
from tests.core.test_partition_properties import CROWDED, WEIGHTS, story
from tests.runtime.written import ROOMY, TIGHT, WrittenFuzz

BULKY = {**WEIGHTS, "enqueue": 40, "bury": 12, "bulk": 5, "stop": 1}
"""Many fail for good, and operators deal with many at once."""


def check(seed: int, every: int, bounds: Bounds) -> None:
    for verbs in (WEIGHTS, CROWDED):
        fuzz = WrittenFuzz(bounds)
        fuzz.play_with_restarts(story(seed, 120, verbs), every)
        drain(fuzz)
        assert fuzz.history.open_jobs() == [], seed


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_a_restart_changes_nothing(first: int) -> None:
    """Invariants 1, 2, 4, 5, 7-9, 18, 20-22, 26 and 29, with a restart every 7 steps."""
    for seed in range(first, first + 10):
        check(seed, 7, ROOMY)


@pytest.mark.parametrize("first", range(60, 100, 10))
def test_memory_for_hardly_anything_changes_nothing(first: int) -> None:
    """The same with 8 jobs and 3 turns in memory: invariants 14, 15 and 17, too."""
    for seed in range(first, first + 10):
        check(seed, 7, TIGHT)


@pytest.mark.parametrize("first", range(120, 135, 5))
def test_a_restart_after_every_step_changes_nothing(first: int) -> None:
    for seed in range(first, first + 5):
        check(seed, 1, TIGHT)


@pytest.mark.parametrize("first", [85, 476, 144, 152])
def test_memory_for_hardly_anything_needs_no_restart(first: int) -> None:
    """85 and 476: a job behind the cut of an empty turn, in a lane at rest."""
    for seed in range(first, first + 4):
        for verbs in (WEIGHTS, CROWDED):
            fuzz = WrittenFuzz(TIGHT)
            fuzz.play(story(seed, 120, verbs))
            drain(fuzz)
            assert fuzz.history.open_jobs() == [], seed


def check_bulks(seed: int) -> None:
    fuzz = WrittenFuzz(TIGHT if seed % 2 else ROOMY)
    fuzz.play_with_restarts(story(seed, 120, BULKY), 1 + seed % 7)
    assert fuzz.book.bulks, "the story has none"
    drain(fuzz)
    fuzz.pass_ms(600_000)
    assert fuzz.history.open_jobs() == [], seed
    assert fuzz.bulks_running() == 0, seed


@pytest.mark.parametrize("page_jobs", [1, 4])
@pytest.mark.parametrize("first", range(200, 208, 4))
def test_bulk_operations_go_on_over_restarts(
    first: int, page_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with pages so small that most stories have restarts between them."""
    monkeypatch.setattr(bulk_records, "PAGE_JOBS", page_jobs)
    monkeypatch.setattr(bulk, "PAGE_ROWS", 3 * page_jobs)
    for seed in range(first, first + 4):
        check_bulks(seed)


def test_counts_of_a_queue_outlive_checkpoints_of_others() -> None:
    """A story of 541 dead letters: what was counted before two restarts is known."""
    check(145, 2, TIGHT)


@pytest.mark.long
@pytest.mark.parametrize("first", range(3_000, 3_600, 50))
def test_many_more_bulk_operations_go_on_over_restarts(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + 50):
        page_jobs = (1, 2, 4, 500)[seed // 2 % 4]
        monkeypatch.setattr(bulk_records, "PAGE_JOBS", page_jobs)
        monkeypatch.setattr(bulk, "PAGE_ROWS", 3 * page_jobs)
        check_bulks(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_many_more_restarts_change_nothing(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed, 1 + seed % 11, TIGHT if seed % 2 else ROOMY)
