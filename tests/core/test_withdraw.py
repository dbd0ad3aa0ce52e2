"""A caller that is gone gets no jobs."""

from headway.core.commands import Changed, Granted, Lease, Withdraw
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from tests.core.machine import MINUTE_MS, Machine


def test_a_caller_that_is_gone_gets_no_jobs() -> None:
    machine = Machine(QueueConfig(name="q"))
    lease = Lease(wait_until_ms=machine.now_ms + MINUTE_MS)
    assert machine.ask(lease) is None
    withdraw = Withdraw(lease)
    answers = dict(machine.decide(withdraw).answers)
    granted, changed = answers[lease], answers[withdraw]
    assert isinstance(granted, Granted)
    assert isinstance(changed, Changed)
    assert granted.jobs == []
    assert changed.count == 1
    machine.put("q", JobSpec())
    assert machine.leased() == []
    answers = dict(machine.pass_ms(2 * MINUTE_MS).answers)
    assert lease not in answers


def test_a_caller_that_was_served_already_is_told_so() -> None:
    machine = Machine(QueueConfig(name="q"))
    lease = Lease(wait_until_ms=machine.now_ms + MINUTE_MS)
    machine.ask(lease)
    machine.put("q", JobSpec())
    assert len(machine.leased()) == 1
    changed = machine.ask(Withdraw(lease))
    assert isinstance(changed, Changed)
    assert changed.count == 0
