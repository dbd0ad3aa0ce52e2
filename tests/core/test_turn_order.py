"""A turn hands its jobs out in their order, in whatever order they come and go."""

from hypothesis import given
from hypothesis import strategies as st

from headway.core.commands import Cancel, Release
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from tests.core.machine import Machine

PUTS = st.tuples(st.just("put"), st.sampled_from([0, 0, 0, 1, 5]))
STARTS = st.tuples(st.just("start"), st.just(0))
CANCELS = st.tuples(st.just("cancel"), st.integers(0, 40))
RETURNS = st.tuples(st.just("return"), st.just(0))


@given(st.lists(PUTS | PUTS | STARTS | CANCELS | RETURNS, max_size=60))
def test_jobs_start_by_priority_and_time_whatever_came_between(
    steps: list[tuple[str, int]],
) -> None:
    machine = Machine(QueueConfig(name="q", attempts_max=99))
    waiting: dict[int, tuple[int, int, int]] = {}
    for what, number in steps:
        machine.pass_ms(1)
        now_ms = machine.partition.now_ms
        match what:
            case "put":
                (seq,) = machine.put("q", JobSpec(priority=number))
                waiting[seq] = (number, now_ms, seq)
            case "cancel" if waiting:
                seq = sorted(waiting)[number % len(waiting)]
                machine.ask(Cancel(seq))
                del waiting[seq]
            case "start" | "return":
                expected = min(waiting, key=waiting.__getitem__, default=None)
                jobs = machine.lease()
                assert [job.seq for job in jobs] == [expected] * (expected is not None)
                if what == "return" and jobs:
                    # As if it had never left: it is before what came after it.
                    machine.ask(Release([jobs[0].token]))
                elif expected is not None:
                    del waiting[expected]
    left = sorted(waiting, key=waiting.__getitem__)
    assert [job.seq for job in machine.lease(100)] == left
