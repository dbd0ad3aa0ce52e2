"""Work that could stall a partition is done in pieces."""

from headway.core.commands import Ack, Configure, Enqueue, Granted, Lease, SetKind
from headway.core.config import Concurrency, QueueConfig
from headway.core.partition import Partition
from headway.core.spec import JobSpec

TENANTS = 3_000


def flooded(*limits: Concurrency) -> Partition:
    """Many tenants with one job each in the east, and one job in the west at the end."""
    partition = Partition()
    partition.decide([Configure(QueueConfig(name="q", limits=limits))], 1)
    east = [
        JobSpec(tenant=f"t{n}", kind="a", labels={"region": "east"})
        for n in range(TENANTS)
    ]
    west = JobSpec(tenant="last", kind="b", labels={"region": "west"})
    partition.decide([Enqueue("q", [*east, west])], 2)
    return partition


def test_a_limit_that_fills_under_many_tenants_is_settled_in_pieces() -> None:
    """Invariant 29: the caller behind them is served in the end, by repeated calls."""
    partition = flooded(Concurrency("region", 1, per="region"))
    (first,) = partition.decide([Lease()], 3).answers
    assert isinstance(first[1], Granted)
    lease = Lease(wait_until_ms=10_000)
    answers = partition.decide([lease], 4).answers
    calls = 0
    while not answers:
        assert partition.next_ms() == 4
        answers = partition.decide([], 4).answers
        calls += 1
    assert calls >= TENANTS // 1_000
    (_, granted) = answers[0]
    assert isinstance(granted, Granted)
    assert [job.spec.tenant for job in granted.jobs] == ["last"]


def test_a_caller_that_does_not_wait_is_never_told_a_half_truth() -> None:
    partition = flooded(Concurrency("region", 1, per="region"))
    partition.decide([Lease()], 3)
    (_, granted) = partition.decide([Lease()], 4).answers[0]
    assert isinstance(granted, Granted)
    assert [job.spec.tenant for job in granted.jobs] == ["last"]


def test_many_turns_of_a_kind_that_was_paused_all_come_back() -> None:
    partition = flooded()
    partition.decide([SetKind("q", "a", is_paused=True)], 3)
    (_, granted) = partition.decide([Lease(max=10)], 4).answers[0]
    assert isinstance(granted, Granted)
    assert [job.spec.kind for job in granted.jobs] == ["b"]
    partition.decide([SetKind("q", "a", is_paused=False)], 5)
    started = 0
    while True:
        (_, granted) = partition.decide([Lease(max=500)], 6).answers[0]
        assert isinstance(granted, Granted)
        if not granted.jobs:
            break
        started += len(granted.jobs)
        partition.decide([Ack([job.token for job in granted.jobs])], 6)
    assert started == TENANTS
