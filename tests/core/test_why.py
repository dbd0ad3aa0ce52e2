"""Why is this job not running: every rule that can stop one is named."""

import pytest

from headway.core.commands import Command, Hold, Nack, SetHold, SetKind, SetTenant, Wait
from headway.core.config import Concurrency, QueueConfig, Rate
from headway.core.errors import UnknownJob
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.core.why import Rule, Why, why
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine

QUEUE = QueueConfig(name="q")


def ask(machine: Machine, seq: int) -> Why:
    return why(machine.partition.book, seq, machine.now_ms)


def rules(machine: Machine, seq: int) -> list[Rule]:
    return [reason.rule for reason in ask(machine, seq).reasons]


def test_a_job_that_waits_for_a_worker_is_told_who_is_before_it() -> None:
    machine = Machine(QUEUE)
    machine.put("q", *[JobSpec(tenant="a")] * 3, JobSpec(tenant="b"))
    answer = ask(machine, 3)
    assert [reason.rule for reason in answer.reasons] == [Rule.BUSY]
    assert answer.ahead == 3
    assert ask(machine, 1).ahead == 1
    assert answer.starts_ms is None


def test_the_start_is_estimated_from_the_newest_starts() -> None:
    machine = Machine(QUEUE)
    machine.put("q", *[JobSpec()] * 50)
    for _ in range(30):
        machine.pass_ms(100)
        machine.lease()
    starts_ms = ask(machine, 40).starts_ms
    assert starts_ms is not None
    assert 500 <= starts_ms - machine.now_ms <= 1_500


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        (SetHold("q", Hold.PAUSE, is_on=True), Rule.QUEUE_PAUSED),
        (SetHold("q", Hold.BLOCK, is_on=True), Rule.QUEUE_BLOCKED),
        (SetTenant("q", "a", is_paused=True), Rule.TENANT_PAUSED),
        (SetKind("q", "k", is_paused=True), Rule.KIND_PAUSED),
        (SetTenant("q", "a", cap=0), Rule.LIMIT),
        (SetKind("q", "k", cap=0), Rule.LIMIT),
    ],
)
def test_what_an_operator_stopped_is_named(command: Command, rule: Rule) -> None:
    machine = Machine(QUEUE)
    machine.ask(command)
    machine.put("q", JobSpec(tenant="a", kind="k"))
    assert machine.lease() == []
    assert rules(machine, 1)[0] is rule
    assert ask(machine, 1).state is JobState.READY


def test_a_block_is_named_before_a_pause() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    machine.ask(SetHold("q", Hold.PAUSE, is_on=True))
    machine.ask(SetHold("q", Hold.BLOCK, is_on=True))
    assert rules(machine, 1) == [Rule.QUEUE_BLOCKED, Rule.QUEUE_PAUSED]


@pytest.mark.parametrize("per", [None, "region", "tenant"])
def test_a_limit_is_named_with_those_who_hold_it(per: str | None) -> None:
    limits = (Concurrency("partner", 1, per),)
    machine = Machine(QueueConfig(name="q", limits=limits))
    spec = JobSpec(tenant="a", labels={"region": "east"})
    machine.put("q", spec, spec)
    machine.lease(2)
    (reason,) = ask(machine, 2).reasons
    assert reason.rule is Rule.LIMIT
    assert "partner" in reason.text
    assert "1 of 1" in reason.text
    assert reason.holders == (1,)


def test_a_rate_says_when_it_has_units_again() -> None:
    limits = (Rate("pace", 1, 1_000),)
    machine = Machine(QueueConfig(name="q", limits=limits))
    machine.put("q", JobSpec(), JobSpec())
    machine.lease(2)
    (reason,) = ask(machine, 2).reasons
    assert reason.until_ms == machine.now_ms + 1_000
    assert ask(machine, 2).starts_ms == reason.until_ms


def test_a_window_says_when_it_opens() -> None:
    windows = WindowSet((Window(0, 10),))
    machine = Machine(QueueConfig(name="q", windows=windows))
    machine.put("q", JobSpec())
    machine.pass_ms(15 * MINUTE_MS)
    assert machine.lease() == []
    (reason,) = ask(machine, 1).reasons
    assert reason.rule is Rule.WINDOW
    assert reason.until_ms == windows.opens_ms(machine.now_ms)


def test_a_throttler_that_was_asked_is_named() -> None:
    machine = Machine(QueueConfig(name="q", has_throttler=True))
    machine.put("q", JobSpec())
    machine.lease()
    assert rules(machine, 1) == [Rule.THROTTLER]


def test_jobs_that_are_not_ready_say_what_they_do() -> None:
    machine = Machine(QUEUE)
    later_ms = machine.now_ms + 5_000
    machine.put("q", JobSpec(run_at_ms=later_ms), JobSpec(), JobSpec())
    runs, waits = machine.lease(2)
    machine.ask(Wait(waits.token, "invoice-7", 1_000))
    scheduled = ask(machine, 1)
    assert scheduled.starts_ms == later_ms
    assert scheduled.reasons[0].rule is Rule.RUN_AT
    assert "'w'" in ask(machine, runs.seq).reasons[0].text
    assert "invoice-7" in ask(machine, waits.seq).reasons[0].text
    machine.ask(Nack(runs.token, "broken", is_bury=True))
    assert "failed" in ask(machine, runs.seq).reasons[0].text


def test_asking_changes_nothing() -> None:
    machine = Machine(QueueConfig(name="q", limits=(Concurrency("c", 1),)))
    machine.put("q", *[JobSpec(tenant=name) for name in "abc"])
    (first,) = machine.lease()
    for seq in (1, 2, 3):
        ask(machine, seq)
    assert machine.lease() == []
    assert first.state is JobState.LEASED


def test_a_job_that_is_gone_is_unknown() -> None:
    machine = Machine(QUEUE)
    with pytest.raises(UnknownJob):
        ask(machine, 9)
