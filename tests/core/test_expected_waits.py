"""Whoever enqueues a job is told how long it is expected to wait."""

import pytest

from headway.core.commands import (
    Accepted,
    Ack,
    Command,
    Enqueue,
    Hold,
    Lease,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from tests.core.machine import Machine

QUEUE = QueueConfig(name="q")


def waits(machine: Machine, *specs: JobSpec) -> list[int | None]:
    answer = machine.ask(Enqueue("q", list(specs)))
    assert isinstance(answer, Accepted)
    assert len(answer.waits_ms) == len(answer.seqs) == len(specs)
    return answer.waits_ms


def busy(*specs: JobSpec) -> Machine:
    """A start every 100 ms for long enough to be known, and then these stand there."""
    machine = Machine(QUEUE)
    machine.put("q", *[JobSpec()] * 200)
    for _ in range(200):
        machine.pass_ms(100)
        machine.lease()
    assert machine.partition.book.queues["q"].ready == 0
    machine.put("q", *specs)
    return machine


def test_a_job_that_is_handed_out_at_once_waits_for_nothing() -> None:
    machine = Machine(QUEUE)
    lease = Lease(max=2, wait_until_ms=machine.now_ms + 1_000)
    assert machine.ask(lease) is None
    assert waits(machine, *[JobSpec()] * 3) == [0, 0, None]


def test_a_scheduled_job_waits_for_its_time() -> None:
    machine = Machine(QUEUE)
    specs = (JobSpec(delay_ms=700), JobSpec(run_at_ms=machine.now_ms + 90_000))
    assert waits(machine, *specs) == [700, 90_000]


def test_nothing_is_said_before_anything_has_started() -> None:
    machine = Machine(QUEUE)
    assert waits(machine, JobSpec()) == [None]


def test_a_job_behind_others_waits_for_their_starts() -> None:
    machine = busy(*[JobSpec()] * 49)
    (wait_ms,) = waits(machine, JobSpec())
    assert wait_ms is not None
    assert 4_900 <= wait_ms <= 5_000


def test_a_quiet_tenant_waits_for_its_turn_and_not_for_a_flood() -> None:
    machine = busy(*[JobSpec(tenant="flood")] * 500)
    flood_ms, quiet_ms = waits(machine, JobSpec(tenant="flood"), JobSpec(tenant="q"))
    assert flood_ms is not None
    assert quiet_ms is not None
    assert flood_ms >= 49_000
    assert quiet_ms <= 500


def test_jobs_of_many_places_are_told_apart_in_one_call() -> None:
    machine = busy(*[JobSpec(tenant="a")] * 30)
    specs = [JobSpec(tenant=name) for name in "abab"] + [JobSpec(delay_ms=5)]
    first, second, third, fourth, later = waits(machine, *specs)
    assert (first, second, later) == (third, fourth, 5)
    assert first is not None
    assert second is not None
    assert first > second


@pytest.mark.parametrize(
    "command",
    [
        SetHold("q", Hold.PAUSE, is_on=True),
        SetHold("q", Hold.BLOCK, is_on=True),
        SetTenant("q", "a", is_paused=True),
        SetKind("q", "k", is_paused=True),
    ],
)
def test_nothing_is_said_of_what_is_held(command: Command) -> None:
    machine = busy(JobSpec(tenant="a", kind="k"))
    machine.ask(command)
    assert waits(machine, JobSpec(tenant="a", kind="k")) == [None]


def test_one_that_is_known_by_its_key_is_told_of_as_it_stands() -> None:
    machine = Machine(QUEUE)
    spec = JobSpec(idempotency_key="k", delay_ms=1_000)
    assert waits(machine, spec) == [1_000]
    machine.pass_ms(400)
    assert waits(machine, spec, spec) == [600, 600]
    machine.pass_ms(600)
    (job,) = machine.lease()
    assert waits(machine, spec) == [0]
    machine.ask(Ack([job.token]))
    assert waits(machine, spec) == [None]
