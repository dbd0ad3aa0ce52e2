"""Sets of queues that callers lease from: few are remembered, none is served worse."""

from itertools import combinations

from headway.core.commands import Configure, Enqueue, Granted, Lease
from headway.core.config import QueueConfig
from headway.core.partition import BOARDS_MAX, Partition
from headway.core.spec import JobSpec

NAMES = [f"q{number}" for number in range(30)]


def test_sets_that_nobody_waits_for_are_forgotten() -> None:
    partition = Partition()
    partition.decide([Configure(QueueConfig(name=name)) for name in NAMES], 0)
    waiting = Lease("patient", ("q0", "q29"), 1, wait_until_ms=10**9)
    partition.decide([waiting], 1)
    for names in combinations(NAMES[1:], 2):
        decision = partition.decide([Lease("w", names)], 2)
        (answered,) = (answer for _, answer in decision.answers)
        assert isinstance(answered, Granted)
        assert answered.jobs == []
    boards = {board for q in partition.book.queues.values() for board in q.boards}
    assert len(boards) <= BOARDS_MAX
    decision = partition.decide([Enqueue("q29", [JobSpec(), JobSpec()])], 3)
    answers = dict(decision.answers)
    granted = answers[waiting]
    assert isinstance(granted, Granted)
    assert [job.seq for job in granted.jobs] == [1]
    # A set that was forgotten shows what has come since.
    decision = partition.decide([Lease("w", ("q1", "q29"))], 4)
    _, granted = decision.answers[0]
    assert isinstance(granted, Granted)
    assert [job.seq for job in granted.jobs] == [2]
