"""Looking ahead changes nothing: every story goes on as if nobody had looked.

What asks the processor is machine code: `tests/ground/test_compiled.py` has it.
"""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import ahead, prefetch
from headway.core.commands import Ack, Command, Configure, Enqueue, Granted, Lease
from headway.core.config import Concurrency, QueueConfig
from headway.core.partition import Partition
from headway.core.spec import JobSpec
from tests.core.fuzz import Fuzz
from tests.core.test_partition_properties import CROWDED, WEIGHTS, story

pytestmark = pytest.mark.interpreted


def _known(known: dict[str, Any], names: list[str], *_: object) -> list[Any]:
    """As machine code answers: who is known by each of the names."""
    return [known.get(name) for name in names]


def _digest(seed: int, verbs_of: dict[str, int], *, looks: bool) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "TURNS_MIN", 0)
        patch.setattr(prefetch, "is_here", lambda: looks)
        patch.setattr(prefetch, "arrivals", _known)
        patch.setattr(ahead, "JOBS_MIN", 1)
        fuzz = Fuzz()
        fuzz.play(story(seed, 120, verbs_of))
        return fuzz.digest.hexdigest()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1 << 32), verbs_of=st.sampled_from([WEIGHTS, CROWDED]))
def test_a_story_ends_alike(seed: int, verbs_of: dict[str, int]) -> None:
    looked = _digest(seed, verbs_of, looks=True)
    assert looked == _digest(seed, verbs_of, looks=False)


LIMITS = {
    "none": (),
    "tenants": (Concurrency("each", 1, per="tenant"),),
    "strands": (Concurrency("server", 2, per="server"),),
    "two strands": (
        Concurrency("server", 2, per="server"),
        Concurrency("kind", 5, per="kind"),
    ),
}


def _started(limits: str, *, looks: bool) -> list[int]:
    """Seqs in the order of their starts, over batches of a hundred tenants' jobs."""
    partition, draw = Partition(), random.Random(7)
    config = QueueConfig(name="q", limits=LIMITS[limits])
    partition.decide([Configure(config)], 0)
    tokens: list[int] = []
    seqs: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "TURNS_MIN", 0)
        patch.setattr(prefetch, "is_here", lambda: looks)
        patch.setattr(prefetch, "arrivals", _known)
        for now_ms in range(10, 1_000, 10):
            specs = [
                JobSpec(
                    tenant=f"tenant-{draw.randrange(100)}",
                    labels={"server": str(draw.randrange(30))},
                    priority=draw.randrange(3),
                )
                for _ in range(20)
            ]
            draw.shuffle(tokens)
            done, tokens = tokens[:20], tokens[20:]
            batch: list[Command] = [Ack([*done, 1]), Enqueue("q", specs)]
            batch.append(Lease(max=20))
            for _, answer in partition.decide(batch, now_ms).answers:
                if isinstance(answer, Granted):
                    tokens += [job.token for job in answer.jobs]
                    seqs += [job.seq for job in answer.jobs]
    return seqs


@pytest.mark.parametrize("limits", LIMITS)
def test_batches_start_alike(limits: str) -> None:
    seqs = _started(limits, looks=True)
    assert len(seqs) > 400
    assert seqs == _started(limits, looks=False)


def test_calls_are_asked_for_as_they_were_looked_at_before() -> None:
    """Whose time has not come, and is not looked at, takes no room in a cache."""
    partition = Partition()
    partition.decide([Configure(QueueConfig(name="q", slo_ms=10_000))], 0)
    asked: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "TURNS_MIN", 0)
        patch.setattr(prefetch, "is_here", lambda: True)
        patch.setattr(prefetch, "starts", lambda *of: asked.append(of[-1]))
        for now_ms in (1, 2):
            specs = [JobSpec(tenant=f"tenant-{number}") for number in range(300)]
            partition.decide([Enqueue("q", specs)], now_ms)
        partition.decide([Lease(max=20)], 3)
        assert asked == [0]
        asked.clear()
        # Now all are due: each of them was called, and has taken its new seat.
        partition.decide([Lease(max=20)], 20_000)
        partition.decide([Lease(max=20)], 20_001)
    assert asked == [20, 0]
