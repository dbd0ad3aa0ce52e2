"""Random histories of a partition keep the invariants that concern the core.

Every step is checked by `Fuzz.send`: states (4), identities (5), attempts (7), tokens
(8, 9), lane bases (13), counters (18), times (20), ticks (21), limits (22), holds (26),
and that nothing is left standing for which a worker waits and which could start.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.commands import Ack, Enqueue, Lease
from headway.core.spec import JobSpec
from tests.core.drain import drain
from tests.core.fuzz import VERBS, Fuzz, Step

WEIGHTS = {
    "enqueue": 14,
    "lease": 14,
    "ack": 10,
    "extend": 2,
    "nack": 4,
    "release": 3,
    "wait": 5,
    "reply": 5,
    "cancel": 3,
    "redrive": 2,
    "purge": 1,
    "configure": 3,
    "hold": 3,
    "tenant": 4,
    "kind": 4,
    "judge": 6,
    "schedule": 1,
    "pass": 10,
}
CROWDED = {
    "crowd": 12,
    "try": 12,
    "ack": 8,
    "nack": 2,
    "release": 3,
    "cancel": 4,
    "purge": 1,
    "squeeze": 6,
    "tighten": 1,
    "pass": 4,
}
"""One queue with a tight limit, and workers who are all busy when units come free."""
NUMBERS = st.integers(0, 2**60 - 1)
STEPS = st.tuples(st.sampled_from(sorted(VERBS)), NUMBERS, NUMBERS)


def story(seed: int, length: int, verbs_of: dict[str, int] = WEIGHTS) -> list[Step]:
    draw = random.Random(seed)
    verbs, weights = list(verbs_of), list(verbs_of.values())
    return [
        (draw.choices(verbs, weights)[0], draw.getrandbits(60), draw.getrandbits(60))
        for _ in range(length)
    ]


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_any_history_keeps_the_invariants_and_drains(first: int) -> None:
    """Invariants 1, 2, 4, 5, 7-9, 13, 18, 20-22, 26, 29 over forty stories."""
    for seed in range(first, first + 40):
        fuzz = Fuzz()
        fuzz.play(story(seed, 120))
        drain(fuzz)
        assert fuzz.history.open_jobs() == [], seed


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_nobody_is_left_waiting_for_units_that_are_free(first: int) -> None:
    """Invariants 22 and 29 over fifty crowded stories."""
    for seed in range(first, first + 50):
        fuzz = Fuzz()
        fuzz.play(story(seed, 100, CROWDED))
        drain(fuzz)
        assert fuzz.history.open_jobs() == [], seed


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 4_000, 100))
def test_any_long_history_keeps_the_invariants_and_drains(first: int) -> None:
    """Invariants 1, 2, 4, 5, 7-9, 13, 18, 20-22, 26, 29 over a hundred stories."""
    for seed in range(first, first + 100):
        fuzz = Fuzz()
        fuzz.play(story(seed, 250))
        drain(fuzz)
        assert fuzz.history.open_jobs() == [], seed


@settings(max_examples=40, deadline=None, derandomize=True)
@given(steps=st.lists(STEPS, max_size=40))
def test_any_short_history_keeps_the_invariants_and_drains(steps: list[Step]) -> None:
    """Invariants 1, 2, 4, 5, 7-9, 13, 18, 20-22, 26, 29; a failure is told briefly."""
    fuzz = Fuzz()
    fuzz.play(steps)
    drain(fuzz)
    assert fuzz.history.open_jobs() == []


@pytest.mark.parametrize("seed", range(500, 504))
def test_the_same_commands_give_the_same_history(seed: int) -> None:
    """Invariant 30."""
    digests = set()
    for _ in range(2):
        fuzz = Fuzz()
        fuzz.play(story(seed, 200))
        digests.add(fuzz.digest.digest())
    assert len(digests) == 1


@settings(max_examples=30, deadline=None, derandomize=True)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=60), most=st.integers(1, 7))
def test_without_faults_every_job_is_delivered_exactly_once(
    numbers: list[int], most: int
) -> None:
    """Invariants 1, 2 and 3."""
    fuzz = Fuzz()
    for number in numbers:
        tenant, queue = f"t{number % 5}", ("fair", "time", "priority")[number % 3]
        fuzz.send(Enqueue(queue, [JobSpec(tenant=tenant, priority=number % 4)]))
    while fuzz.history.open_jobs():
        fuzz.send(Lease("w", None, most))
        fuzz.pass_ms(100)
        fuzz.send(Ack(list(fuzz.book.leases)))
    assert [record.leases for record in fuzz.history.records.values()] == [1] * len(
        numbers
    )
