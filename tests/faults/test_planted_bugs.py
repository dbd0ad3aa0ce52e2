"""A simulation that finds nothing proves nothing: planted bugs must be found.

Each is planted alone. Some seed must fail within the bound, as the kind of failure
that the bug is, and the same seed must pass when the bug is gone.
"""

import pytest

from headway.sim.faults.verdict import CORRECTNESS, CRASH, LIVENESS, OK, Result
from headway.sim.faults.world import run_seed
from tests.faults import bugs, bugs_of_files
from tests.faults.bugs import Plant

SEEDS_MAX = 400
REFUSED_OR_SEEN = (CRASH, CORRECTNESS)
"""The store itself may refuse what such a bug has written; then the owner stops."""
PLANTED: list[tuple[Plant, tuple[int, ...], str]] = [
    (bugs.answers_before_the_flush, (CORRECTNESS,), "history"),
    (bugs.drops_some_commits, (CORRECTNESS,), "P1"),
    (bugs_of_files.does_not_flush, REFUSED_OR_SEEN, ""),
    (bugs_of_files.does_not_renew_the_log, (CRASH, CORRECTNESS), ""),
    (bugs.writes_after_being_replaced, (CORRECTNESS,), "invariant"),
    (bugs_of_files.forgets_what_is_pending, REFUSED_OR_SEEN, ""),
    (bugs_of_files.drops_what_is_pending, REFUSED_OR_SEEN, ""),
    (bugs_of_files.thins_too_much, (CORRECTNESS,), ""),
    (bugs_of_files.forgets_who_has_left_a_bundle, REFUSED_OR_SEEN, ""),
    (bugs_of_files.ends_bundles_early, REFUSED_OR_SEEN, ""),
    (bugs_of_files.forgets_that_members_are_held, REFUSED_OR_SEEN, ""),
    (bugs_of_files.reads_past_members, (LIVENESS, CORRECTNESS), ""),
    (bugs_of_files.keeps_its_epoch, (CORRECTNESS,), "invariant 10"),
    (bugs.turns_the_clock_back, (CORRECTNESS,), "time went back"),
    (bugs.forgets_leases, (CORRECTNESS,), "rows"),
    (bugs.forgets_acks, (CORRECTNESS,), "invariant"),
    (bugs.forgets_keys, (CORRECTNESS,), "invariant 19"),
    (bugs.forgets_pauses, (CORRECTNESS,), "invariant 26"),
    (bugs.forgets_paused_tenants, (CORRECTNESS,), "invariant 26"),
    (bugs.forgets_early_replies, (CORRECTNESS,), "P9"),
    (bugs.forgets_ticks, (CORRECTNESS,), "invariant 21"),
    (bugs.forgets_attempts, (CORRECTNESS,), "invariant 7"),
    (bugs.forgets_when_leases_end, (LIVENESS,), "invariant 29"),
    (bugs.forgets_delays, (LIVENESS,), "invariant 29"),
    (bugs.forgets_what_it_left_in_the_store, (LIVENESS,), "invariant 29"),
    (bugs.ends_leases_at_a_restart, (CORRECTNESS,), "P3"),
    (bugs.frees_units_at_a_restart, (CORRECTNESS,), "invariant 22"),
    (bugs.bursts_after_a_restart, (CORRECTNESS,), "invariant 22"),
    (bugs.leaves_gaps_in_history, (CORRECTNESS,), "history"),
    (bugs.miscounts_in_history, (CORRECTNESS,), "invariant 18"),
    (bugs.counts_dead_jobs_twice, (CORRECTNESS,), "invariant 18"),
    (bugs.reuses_tokens, (CORRECTNESS,), "invariant 8"),
    (bugs.reuses_identities, REFUSED_OR_SEEN, ""),
    (bugs.takes_stale_tokens, (CORRECTNESS,), "token"),
    (bugs.mixes_payloads_up, (CORRECTNESS,), "invariant"),
]


def first_failure(plant: Plant) -> Result | None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        results = (run_seed(seed) for seed in range(SEEDS_MAX))
        return next((result for result in results if result.code != OK), None)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("plant", "codes", "text"),
    PLANTED,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_bug_is_found(
    plant: Plant, codes: tuple[int, ...], text: str
) -> None:
    result = first_failure(plant)
    assert result is not None, f"not found within {SEEDS_MAX} seeds"
    assert result.code in codes, result.text
    assert text in result.text
    assert run_seed(result.seed).code == OK
