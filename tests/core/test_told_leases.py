"""History names the lease that ended, and tells a first start from a repeated one."""

import msgspec

from headway.core import events
from headway.core.commands import Ack, Cancel, Nack, Release, Reply, SetTenant, Wait
from headway.core.config import QueueConfig
from headway.core.facts import QueueFact, TenantFact
from headway.core.retry import Fixed
from headway.core.spec import JobSpec
from tests.core.machine import Machine

QUEUE = QueueConfig(name="q", lease_ms=10_000, retry=Fixed(delay_ms=0))


def told(machine: Machine, *kinds: type[events.Event]) -> list[events.Event]:
    return [event for event in machine.events if isinstance(event, kinds)]


def test_each_end_of_a_lease_names_its_token() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(attempts_max=9))
    (job,) = machine.lease()
    tokens = [job.token]
    machine.ask(Release([job.token]))
    (job,) = machine.lease()
    tokens.append(job.token)
    machine.pass_ms(10_001)
    (job,) = machine.lease()
    tokens.append(job.token)
    machine.ask(Nack(job.token, "oh"))
    (job,) = machine.lease()
    tokens.append(job.token)
    machine.ask(Wait(job.token, "k", 5_000))
    machine.ask(Reply("q", "k", b"1"))
    (job,) = machine.lease()
    tokens.append(job.token)
    machine.ask(Ack([job.token]))
    ends = told(
        machine,
        events.Released,
        events.Lost,
        events.Retried,
        events.Waited,
        events.Acked,
    )
    assert [event.token for event in ends] == tokens  # type: ignore[attr-defined]


def test_what_ends_no_lease_names_none() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(attempts_max=1))
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "k", 5_000))
    machine.pass_ms(5_001)
    (buried,) = told(machine, events.Buried)
    assert isinstance(buried, events.Buried)
    assert (buried.reason, buried.token) == ("no reply", 0)


def test_a_failure_names_the_reply_that_did_not_come_and_no_other() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(attempts_max=3))
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "bank-1", 5_000))
    machine.pass_ms(5_001)
    (job,) = machine.lease()
    machine.ask(Nack(job.token, "oh"))
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "bank-2", 5_000))
    machine.pass_ms(5_001)
    failures = told(machine, events.Retried, events.Buried)
    keys = [event.reply_key for event in failures]  # type: ignore[attr-defined]
    assert keys == ["bank-1", "", "bank-2"]


def test_a_start_in_the_same_wait_is_told_as_one_again() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(attempts_max=9))
    (job,) = machine.lease()
    machine.ask(Release([job.token]))
    (job,) = machine.lease()
    machine.pass_ms(10_001)
    (job,) = machine.lease()
    machine.ask(Nack(job.token, "oh"))
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "k", 5_000))
    machine.ask(Reply("q", "k", b"1"))
    machine.lease()
    starts = told(machine, events.Leased)
    again = [event.is_again for event in starts]  # type: ignore[attr-defined]
    assert again == [False, True, True, False, False]


def test_a_changed_rule_is_told_whole() -> None:
    machine = Machine(QUEUE)
    machine.ask(SetTenant("q", "acme", weight=2.5))
    configured, weighed = (
        event for event in machine.events if isinstance(event, events.RuleChanged)
    )
    assert msgspec.msgpack.decode(configured.rule, type=QueueFact).config == QUEUE
    assert msgspec.msgpack.decode(weighed.rule, type=TenantFact).weight == 2.5


def test_a_wait_that_ends_without_a_start_is_told() -> None:
    machine = Machine(QUEUE)
    first, second = machine.put("q", JobSpec(), JobSpec(delay_ms=5_000))
    machine.ask(Cancel(second))
    (job,) = machine.lease()
    assert job.seq == first
    machine.ask(Cancel(first))
    machine.ask(Nack(job.token, "oh"))
    unstarted, started = told(machine, events.Cancelled)
    assert isinstance(unstarted, events.Cancelled)
    assert isinstance(started, events.Cancelled)
    assert unstarted.unstarted_ms == machine.now_ms + 5_000
    assert (started.token, started.unstarted_ms) == (1, 0)


def test_a_reply_tells_how_long_it_was_waited_for() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "k", 5_000))
    machine.pass_ms(1_234)
    machine.ask(Reply("q", "k", b"1"))
    (replied,) = told(machine, events.Replied)
    assert isinstance(replied, events.Replied)
    assert replied.waited_ms == 1_234


def test_a_job_that_is_put_off_ends_its_lease_and_begins_a_new_wait() -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(attempts_max=9))
    (job,) = machine.lease()
    machine.ask(Nack(job.token, "later", retry_in_ms=1_000, is_unused=True))
    machine.pass_ms(1_001)
    machine.lease()
    (released,) = told(machine, events.Released)
    assert isinstance(released, events.Released)
    assert released.token == 1
    starts = told(machine, events.Leased)
    assert [start.is_again for start in starts] == [False, False]  # type: ignore[attr-defined]
