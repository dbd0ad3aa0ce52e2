"""What becomes of jobs for which a queue that sheds has no room."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.core import events
from headway.core.commands import Accepted, Cancel, Enqueue, Redrive
from headway.core.config import QueueConfig, WhenFull
from headway.core.errors import QueueFull
from headway.core.spec import JobSpec
from headway.core.states import JobState
from tests.core.machine import Machine

QUEUE = QueueConfig(name="q")


def _queue(**fields: Any) -> QueueConfig:
    return msgspec.structs.replace(QUEUE, when_full=WhenFull.SHED, **fields)


def _taken(machine: Machine, *specs: JobSpec, **fields: bool) -> Accepted:
    answer = machine.ask(Enqueue("q", list(specs), **fields))
    assert isinstance(answer, Accepted)
    return answer


def _states(machine: Machine) -> dict[int, JobState]:
    return {seq: job.state for seq, job in machine.partition.book.jobs.items()}


def test_what_does_not_fit_is_accepted_as_a_dead_letter() -> None:
    machine = Machine(_queue(max_length=2))
    answer = _taken(machine, JobSpec(), JobSpec(), JobSpec())
    assert (answer.seqs, answer.shed) == ([1, 2, 3], (3,))
    assert _states(machine)[3] is JobState.DEAD
    told = [event for event in machine.events if isinstance(event, events.Buried)]
    assert [(one.seq, one.reason, one.attempt) for one in told] == [(3, "shed", 0)]
    assert len(machine.run(10)) == 2


def test_what_was_accepted_earlier_never_makes_room() -> None:
    machine = Machine(_queue(max_length=1))
    _taken(machine, JobSpec(priority=9, slo_ms=60_000))
    assert _taken(machine, JobSpec(is_critical=True, slo_ms=1_000)).shed == (2,)
    assert _states(machine)[1] is JobState.READY


def test_the_longest_promise_is_shed_first_and_critical_jobs_last() -> None:
    machine = Machine(_queue(max_length=3, slos_ms=(1_000, 60_000)))
    answer = _taken(
        machine,
        JobSpec(slo_ms=60_000, is_critical=True),
        JobSpec(slo_ms=60_000),
        JobSpec(slo_ms=1_000, priority=5),
        JobSpec(slo_ms=1_000, priority=7),
        JobSpec(slo_ms=1_000, priority=6),
    )
    assert answer.shed == (2, 4)


def test_a_caller_may_want_to_be_refused() -> None:
    machine = Machine(_queue(max_length=1))
    answer = machine.ask(Enqueue("q", [JobSpec(), JobSpec()], is_refusable=True))
    assert isinstance(answer, QueueFull)
    assert answer.may_shed
    assert not machine.partition.book.jobs


def test_a_shed_job_is_redriven_or_known_by_its_key_like_any_dead_letter() -> None:
    machine = Machine(_queue(max_length=1))
    keyed = JobSpec(idempotency_key="k")
    assert _taken(machine, JobSpec(), keyed).shed == (2,)
    again = _taken(machine, keyed)
    assert (again.seqs, again.duplicates, again.shed) == ([2], 1, ())
    machine.ask(Cancel(1))
    machine.ask(Redrive(2))
    assert [job.seq for job in machine.run(10)] == [2]


@given(
    room=st.integers(0, 6),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    delays_ms=st.lists(st.sampled_from([None, 5_000]), min_size=5, max_size=5),
)
def test_no_more_than_fit_are_ever_open_and_all_are_accounted_for(
    room: int, sizes: list[int], delays_ms: list[int | None]
) -> None:
    """Invariant 1, and the length of a queue."""
    machine = Machine(_queue(max_length=room))
    accepted = shed = 0
    for size in sizes:
        specs = [JobSpec(delay_ms=delays_ms[place]) for place in range(size)]
        answer = _taken(machine, *specs)
        accepted += len(answer.seqs)
        shed += len(answer.shed)
        states = list(_states(machine).values())
        assert states.count(JobState.DEAD) == shed
        assert len(states) == accepted
    assert accepted - shed == min(room, accepted)
