"""What becomes of jobs by the verdicts of a throttler, and without one."""

import pytest

from headway.core.commands import Ack, Cancel, Changed, Judge, Lease, Verdict
from headway.core.config import Concurrency, FailMode, QueueConfig
from headway.core.defaults import VERDICT_MS
from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.core.why import Rule, why
from tests.core.machine import MINUTE_MS, Machine

CLOSED = QueueConfig(name="q", has_throttler=True)
OPEN = QueueConfig(name="q", has_throttler=True, throttler_fails=FailMode.OPEN)


def failed(seq: int = 1, at_ms: int = 0) -> Judge:
    return Judge(seq, Verdict.FAILED, at_ms, "ValueError: no")


def text(machine: Machine, seq: int) -> tuple[Rule, str]:
    (reason,) = why(machine.partition.book, seq, machine.now_ms).reasons
    return reason.rule, reason.text


def test_closed_a_job_without_a_verdict_stays_and_nothing_is_written() -> None:
    machine = Machine(CLOSED)
    machine.put("q", JobSpec(), JobSpec())
    assert machine.starts() == []
    decision = machine.decide(failed())
    assert (decision.jobs, decision.events) == ([], [])
    no_verdict = "the throttler of its queue has no verdict on"
    assert text(machine, 1) == (Rule.THROTTLER, f"{no_verdict} it: ValueError: no")
    assert text(machine, 2)[1] == f"{no_verdict} a job before it: ValueError: no"
    machine.ask(Judge(1, Verdict.START))
    machine.ask(Judge(2, Verdict.START))
    assert machine.starts() == [1, 2]


def test_open_a_job_without_a_verdict_starts() -> None:
    machine = Machine(OPEN)
    machine.put("q", JobSpec())
    assert machine.starts() == []
    machine.ask(failed())
    assert machine.starts() == [1]


def test_closed_a_job_that_is_put_off_makes_room_and_says_why() -> None:
    machine = Machine(CLOSED)
    machine.put("q", JobSpec(), JobSpec())
    machine.ask(Lease(wait_until_ms=machine.now_ms + 10 * MINUTE_MS))
    at_ms = machine.now_ms + MINUTE_MS
    machine.ask(failed(at_ms=at_ms))
    assert [job.seq for job in machine.asked] == [1, 2]
    told = f"it is scheduled for {at_ms}: its throttler failed, ValueError: no"
    assert text(machine, 1) == (Rule.RUN_AT, told)


def test_a_failure_on_a_job_that_moved_on_changes_nothing() -> None:
    machine = Machine(CLOSED)
    machine.put("q", JobSpec(), JobSpec())
    assert machine.starts() == []
    machine.ask(Cancel(1))
    for judge in (failed(), failed(2), Judge(1, Verdict.START), failed(99)):
        answer = machine.ask(judge)
        assert isinstance(answer, Changed)
        assert answer.count == 0


def test_a_start_that_can_not_be_used_yet_is_not_asked_for_again() -> None:
    limits = (Concurrency("one", 1),)
    machine = Machine(QueueConfig(name="q", has_throttler=True, limits=limits))
    machine.put("q", JobSpec(tenant="a"), JobSpec(tenant="b"))
    machine.ask(Lease(wait_until_ms=machine.now_ms + MINUTE_MS))
    machine.decide(Judge(1, Verdict.START), Judge(2, Verdict.START))
    for _ in range(5):
        assert machine.lease() == []
    assert sorted(job.seq for job in machine.asked) == [1, 2]
    (running,) = machine.partition.book.leases
    machine.ask(Ack([running]))
    assert len(machine.starts()) == 1
    assert len(machine.asked) == 2


def test_a_start_that_was_not_used_for_long_is_asked_for_again() -> None:
    machine = Machine(CLOSED)
    machine.put("q", JobSpec())
    assert machine.starts() == []
    machine.ask(Judge(1, Verdict.START))
    machine.pass_ms(VERDICT_MS)
    assert machine.starts() == []
    assert [job.seq for job in machine.asked] == [1, 1]
    machine.ask(Judge(1, Verdict.START))
    machine.pass_ms(VERDICT_MS - 1)
    assert machine.starts() == [1]


def test_a_job_that_is_put_off_beyond_its_lifetime_expires_in_time() -> None:
    machine = Machine(QueueConfig(name="q", has_throttler=True, lifetime_ms=MINUTE_MS))
    machine.put("q", JobSpec())
    assert machine.starts() == []
    machine.ask(Judge(1, Verdict.LATER, machine.now_ms + 60 * MINUTE_MS))
    machine.pass_ms(2 * MINUTE_MS)
    job = machine.partition.book.jobs[1]
    assert job.state is JobState.DEAD
    assert job.errors[-1].reason == "expired"


@pytest.mark.parametrize("verdict", [Verdict.LATER, Verdict.FAILED])
def test_a_time_that_can_not_be_is_refused(verdict: Verdict) -> None:
    machine = Machine(CLOSED)
    machine.put("q", JobSpec())
    assert machine.starts() == []
    assert isinstance(machine.ask(Judge(1, verdict, 10**16)), BadValue)
