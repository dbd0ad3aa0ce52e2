"""The checker of a chaos run finds what it is there to find: faults, planted."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headway.core import events
from headway.runtime.recovery import TOKENS_PER_EPOCH
from tests.cluster.chaos.checker import DRAIN, Checker
from tests.cluster.chaos.history import Told
from tests.cluster.chaos.records import Delivery, Op, Outcome

T = 1_000_000
"""When the story begins, in milliseconds."""
WORK, KEPT = "work-0", "kept-0"


def token(number: int, queue: str, epoch: int = 1) -> tuple[int, str]:
    whole = epoch * TOKENS_PER_EPOCH + number
    return whole, f"p1_{whole:016x}{'0' * 16}.{queue}"


class Story:
    """Two jobs that are worked on, one that is kept, and what clients were told."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.ops: list[Op] = []
        self.leases: dict[int, str] = {}
        self._ms = T

    def job(self, number: int, queue: str) -> None:
        """Enqueued, and answered."""
        seq = number + 1
        self.happens(events.Enqueued, seq, queue, self._ms, 100, 1, None)
        self.op("enqueue", queue=queue, numbers=[number], ids=[f"p1_{seq}"])

    def lease(self, number: int, queue: str, lease: int, epoch: int = 1) -> None:
        seq = number + 1
        whole, text = token(lease, queue, epoch)
        until_ms = self._ms + 2_000
        self.happens(events.Leased, seq, queue, 1, whole, "w", 0, 0, until_ms)
        self.leases[lease] = text
        self.op("lease", jobs=[Delivery(f"p1_{seq}", text, number)])

    def ack(self, number: int, queue: str, lease: int) -> None:
        self.happens(events.Acked, number + 1, queue, 1, 1)
        self.op("ack", tokens=[self.leases[lease]])

    def happens(self, kind: type, seq: int, queue: str, *values: Any) -> None:
        self._ms += 10
        head = (self._ms, seq, 0, queue, 5_000, "", "chaos")
        self.events.append(kind(*head, *values))

    def op(self, verb: str, outcome: Outcome = "ok", **values: Any) -> None:
        began_s = float(len(self.ops))
        values = {"began_s": began_s, "ended_s": began_s + 0.5, **values}
        self.ops.append(Op(client="c", verb=verb, outcome=outcome, **values))

    def find(self, verb: str, nth: int = 0) -> Op:
        return [op for op in self.ops if op.verb == verb][nth]

    def kinds(self) -> set[str]:
        told = Told("p1")
        told.read((number, [one]) for number, one in enumerate(self.events, 1) if one)
        checker = Checker(self.ops, {"p1": told})
        checker.check()
        return {kind for kind, count in checker.kinds().items() if count}


def whole() -> Story:
    story = Story()
    story.job(0, WORK)
    story.job(1, WORK)
    story.job(2, KEPT)
    story.op("count", queue=KEPT, count=1)
    story.op("show", ids=["p1_3"], state="ready")
    story.lease(0, WORK, 1)
    story.ack(0, WORK, 1)
    story.op("show", ids=["p1_1"], state="indexed")
    story.lease(1, WORK, 1, epoch=2)
    story.ack(1, WORK, 1)
    story.op(DRAIN)
    story.lease(2, KEPT, 2, epoch=2)
    story.ack(2, KEPT, 2)
    story.op("count", queue=KEPT, count=0)
    return story


def test_a_whole_story_has_no_fault() -> None:
    assert whole().kinds() == set()


Plant = Callable[[Story], object]


def drop_job(story: Story) -> None:
    """It was accepted, and nothing of it is there."""
    story.events = [event for event in story.events if event.seq != 2]
    story.ops = [
        op
        for op in story.ops
        if [job.number for job in op.jobs] != [1] and op is not story.find("ack", 1)
    ]


def deliver_again(story: Story) -> None:
    _, text = token(9, WORK, 2)
    story.op("lease", jobs=[Delivery("p1_1", text, 0)])


def deliver_for_nobody(story: Story) -> None:
    story.op("lease", jobs=[Delivery("p1_1", token(1, WORK)[1], 77)])


def settle_twice(story: Story) -> None:
    story.op("ack", tokens=[story.leases[1]])


def lose_numbers(story: Story) -> None:
    story.events.insert(2, None)


def mix_epochs(story: Story) -> None:
    """The first owner leases again after the second."""
    story.job(3, WORK)
    story.lease(3, WORK, 8, epoch=1)
    story.ack(3, WORK, 8)


def forget_ack(story: Story) -> None:
    acked = [n for n, event in enumerate(story.events) if type(event) is events.Acked]
    del story.events[acked[0]]


def make_twice(story: Story) -> None:
    """One key, two jobs."""
    story.happens(events.Enqueued, 9, WORK, T, 100, 1, None)
    story.op("enqueue", queue=WORK, numbers=[0], ids=["p1_9"])


def change(verb: str, nth: int = 0, **values: Any) -> Plant:
    def plant(story: Story) -> None:
        op = story.find(verb, nth)
        story.ops[story.ops.index(op)] = msgspec.structs.replace(op, **values)

    return plant


PLANTED: dict[str, tuple[Plant, str]] = {
    "an acknowledged enqueue is dropped": (drop_job, "lost"),
    "an acknowledged ack is forgotten": (forget_ack, "lost"),
    "a job comes again after its ack": (deliver_again, "again"),
    "a job comes that nobody has enqueued": (deliver_for_nobody, "unexpected"),
    "a key makes two jobs": (make_twice, "unexpected"),
    "a lease is settled twice": (settle_twice, "stale write"),
    "numbers are missing in history": (lose_numbers, "stale write"),
    "a former owner writes": (mix_epochs, "stale write"),
    "a count is too low": (change("count", count=0), "stale read"),
    "a count is too high": (change("count", count=2), "stale read"),
    "a queue is not known": (
        change("count", outcome="fail", code="unknown_queue", count=-1),
        "stale read",
    ),
    "a job that is done is shown as leased": (
        change("show", 1, state="leased"),
        "stale read",
    ),
    "a job that is there is not found": (
        change("show", outcome="fail", code="unknown_job", state=""),
        "stale read",
    ),
    "a bug was answered": (
        change("count", outcome="unknown", code="internal"),
        "strange",
    ),
    "what is right was refused": (
        change("enqueue", 1, outcome="fail", code="bad_value"),
        "strange",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    plant, kind = PLANTED[name]
    story = whole()
    plant(story)
    assert kind in story.kinds()


def test_what_nobody_knows_is_no_fault() -> None:
    """An enqueue without an answer may have made its job, or none; a read may be late."""
    story = whole()
    story.op("enqueue", "unknown", queue=KEPT, numbers=[5])
    story.op("lease", "unknown")
    change("count", began_s=-1.0, count=0)(story)
    assert story.kinds() == set()
