"""The hint of how urgent a partition is says what its next lease is served from."""

from random import Random

import pytest

from headway.core.commands import Configure, Enqueue, Granted, Hold, Lease, SetHold
from headway.core.config import QueueConfig
from headway.core.partition import Partition
from headway.core.spec import JobSpec
from headway.core.urgency import Urgent

SLOS_MS = (1_000, 5_000, 60_000)


def _partition() -> Partition:
    partition = Partition()
    queues = [QueueConfig(name=name, slo_ms=60_000) for name in ("a", "b", "c")]
    partition.decide([Configure(config) for config in queues], 0)
    return partition


def test_nothing_to_start_is_no_hint() -> None:
    partition = _partition()
    assert partition.urgency(("a",)) is None
    assert partition.urgency(None) is None


def test_it_is_ahead_first_and_then_due() -> None:
    partition = _partition()
    partition.decide([Enqueue("a", [JobSpec(slo_ms=5_000)])], 1_000)
    ahead = partition.urgency(("a", "b"))
    assert ahead is not None
    assert ahead.rank == 1
    assert 0 < ahead.measure <= 5_000
    assert partition.urgency(("b",)) is None
    partition.decide([], 1_000 + ahead.measure)
    assert partition.urgency(("a", "b")) == Urgent(0, 5_000)
    assert partition.urgency(None) == Urgent(0, 5_000)


def test_of_many_that_became_due_unseen_the_shortest_promise_counts() -> None:
    partition = _partition()
    specs = [JobSpec(slo_ms=slo_ms) for slo_ms in SLOS_MS]
    partition.decide([Enqueue("a", specs[2:]), Enqueue("b", specs[:2])], 0)
    assert partition.urgency(None) is not None
    partition.decide([], 100_000)
    assert partition.urgency(None) == Urgent(0, 1_000)


def test_a_queue_that_is_held_is_not_urgent() -> None:
    partition = _partition()
    partition.decide([Enqueue("a", [JobSpec(slo_ms=1_000)])], 0)
    partition.decide([SetHold("a", Hold.PAUSE, is_on=True)], 1)
    partition.decide([], 100_000)
    assert partition.urgency(("a",)) is None


@pytest.mark.parametrize("seed", range(30))
def test_the_next_lease_is_what_the_hint_says(seed: int) -> None:
    random = Random(seed)
    partition = _partition()
    now_ms = 0
    for _ in range(60):
        now_ms += random.randrange(3_000)
        specs = [
            JobSpec(slo_ms=random.choice(SLOS_MS)) for _ in range(random.randrange(3))
        ]
        commands = [Enqueue(random.choice("abc"), specs)] if specs else []
        partition.decide(commands, now_ms)
        queues = random.choice([None, ("a",), ("a", "b"), ("b", "c")])
        hint = partition.urgency(queues)
        assert partition.urgency(queues) == hint
        lease = Lease("w", queues, 1)
        answers = dict(partition.decide([lease], now_ms).answers)
        granted = answers[lease]
        assert isinstance(granted, Granted)
        if hint is None:
            assert granted.jobs == []
        elif hint.rank == 0:
            assert granted.jobs[0].slo_ms == hint.measure
        else:
            assert granted.jobs
