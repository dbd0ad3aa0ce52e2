"""Bugs that were found in the core, each told as briefly as it can be."""

import msgspec

from headway.core.commands import (
    Accepted,
    Ack,
    Cancel,
    Configure,
    Enqueue,
    Hold,
    Judge,
    Lease,
    Release,
    Reply,
    SetHold,
    SetKind,
    SetTenant,
    Verdict,
    Wait,
)
from headway.core.config import Concurrency, Order, QueueConfig, Rate, Shares
from headway.core.errors import IdempotencyConflict
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

QUEUE = QueueConfig(name="q")


def changed(config: QueueConfig, **fields: object) -> QueueConfig:
    return msgspec.structs.replace(config, **fields)


def test_a_batch_with_a_conflict_in_itself_is_refused_as_a_whole() -> None:
    """Invariant 19, and "all of the jobs or none"."""
    machine = Machine(QUEUE)
    same_key = [
        JobSpec(idempotency_key="k", payload=b"a"),
        JobSpec(idempotency_key="k", payload=b"b"),
    ]
    answer = machine.ask(Enqueue("q", same_key))
    assert isinstance(answer, IdempotencyConflict)
    assert not machine.partition.book.jobs


def test_twins_in_one_batch_are_counted_as_duplicates() -> None:
    """Invariant 19."""
    machine = Machine(changed(QUEUE, max_length=1))
    answer = machine.ask(Enqueue("q", specs(2, idempotency_key="k")))
    assert isinstance(answer, Accepted)
    assert answer.seqs == [1, 1]
    assert answer.duplicates == 1


def test_a_throttler_is_asked_again_when_the_job_it_was_asked_about_is_cancelled() -> (
    None
):
    """Invariant 29: the new head of the turn must not wait for a verdict on another."""
    machine = Machine(changed(QUEUE, has_throttler=True))
    first, second = machine.put("q", JobSpec())[0], 2
    machine.ask(Lease(wait_until_ms=machine.now_ms + MINUTE_MS))
    machine.put("q", JobSpec(priority=1))
    machine.ask(Cancel(first))
    assert [job.seq for job in machine.asked] == [first, second]


def test_a_throttler_is_asked_again_when_the_job_it_was_asked_about_is_put_off() -> (
    None
):
    """Invariant 29."""
    machine = Machine(changed(QUEUE, has_throttler=True))
    machine.put("q", JobSpec())
    machine.ask(Lease(wait_until_ms=machine.now_ms + MINUTE_MS))
    machine.put("q", JobSpec(priority=1))
    machine.ask(Judge(1, Verdict.LATER, machine.now_ms + 10_000))
    assert [job.seq for job in machine.asked] == [1, 2]


def test_a_big_head_that_was_parked_goes_on_after_its_limit_got_smaller() -> None:
    """Invariant 29."""
    limit = Concurrency("c", 10)
    machine = Machine(changed(QUEUE, limits=(limit,)))
    machine.put("q", JobSpec(cost=5))
    running = machine.lease()
    machine.put("q", JobSpec(cost=8))
    assert machine.starts() == []
    machine.ask(Configure(changed(QUEUE, limits=(Concurrency("c", 4),))))
    machine.ask(Ack([running[0].token]))
    assert machine.starts() == [2]


def test_a_cancelled_big_head_reserves_nothing() -> None:
    """Invariant 29; work conservation: the units it was waiting for are free."""
    machine = Machine(changed(QUEUE, limits=(Concurrency("c", 5),)))
    machine.put("q", JobSpec())
    machine.lease()
    machine.put("q", JobSpec(cost=5), JobSpec())
    assert machine.starts() == []
    machine.ask(Cancel(2))
    assert machine.starts() == [3]


def test_a_cancelled_big_head_of_a_strand_reserves_nothing() -> None:
    """Invariant 29; work conservation, for a limit by label and for another tenant."""
    machine = Machine(changed(QUEUE, limits=(Concurrency("c", 5, "region"),)))
    machine.put("q", JobSpec(labels={"region": "east"}))
    machine.lease()
    machine.put(
        "q",
        JobSpec(cost=5, labels={"region": "east"}),
        JobSpec(labels={"region": "east"}),
    )
    assert machine.starts() == []
    machine.ask(Cancel(2))
    assert machine.starts() == [3]


def test_a_cancelled_big_head_of_a_capped_tenant_reserves_nothing() -> None:
    """Invariant 29; work conservation."""
    machine = Machine(QUEUE)
    machine.ask(SetTenant("q", "a", cap=5))
    machine.put("q", JobSpec(tenant="a"))
    machine.lease()
    machine.put("q", JobSpec(cost=5, tenant="a"), JobSpec(tenant="a"))
    assert machine.starts() == []
    machine.ask(Cancel(2))
    assert machine.starts() == [3]


def test_a_lifted_cap_of_a_kind_lets_its_jobs_go() -> None:
    """Invariant 29."""
    machine = Machine(QUEUE)
    machine.ask(SetKind("q", "k", cap=0))
    machine.put("q", JobSpec(kind="k"))
    assert machine.starts() == []
    machine.ask(SetKind("q", "k", cap=-1))
    assert machine.starts() == [1]


def test_a_raised_cap_of_a_kind_lets_its_jobs_go() -> None:
    """Invariant 29."""
    machine = Machine(QUEUE)
    machine.ask(SetKind("q", "k", cap=0))
    machine.put("q", JobSpec(kind="k"))
    assert machine.starts() == []
    machine.ask(SetKind("q", "k", cap=2))
    assert machine.starts() == [1]


def test_a_kind_resumed_after_a_new_configuration_loses_no_job() -> None:
    """Invariants 1 and 29: the strand of the old shape is let go, too."""
    machine = Machine(QUEUE)
    machine.ask(SetKind("q", "k", is_paused=True))
    machine.put("q", JobSpec(kind="k"))
    machine.ask(Configure(changed(QUEUE, lease_ms=1_000)))
    machine.put("q", JobSpec(kind="k"))
    machine.ask(SetKind("q", "k", is_paused=False))
    assert machine.starts() == [1, 2]


def test_a_rate_becomes_a_concurrency_limit_of_the_same_name() -> None:
    """Invariant 22."""
    machine = Machine(changed(QUEUE, limits=(Rate("x", 100, 1_000),)))
    machine.put("q", *specs(5))
    machine.lease()
    machine.ask(Configure(changed(QUEUE, limits=(Concurrency("x", 2),))))
    assert len(machine.starts()) == 1


def test_shares_become_a_concurrency_limit_of_the_same_name() -> None:
    """Invariant 22."""
    shares = Shares("x", 2, "region", {"east": 50})
    machine = Machine(changed(QUEUE, limits=(shares,)))
    machine.put("q", *specs(5, labels={"region": "east"}))
    assert len(machine.starts()) == 1
    machine.ask(Configure(changed(QUEUE, limits=(Concurrency("x", 4, "region"),))))
    assert len(machine.starts()) == 3


def test_a_floor_that_is_taken_away_gives_no_precedence() -> None:
    """The choice between lanes: shortest SLO first when due."""
    low = changed(QUEUE, name="low", slo_ms=60_000, floor=0.5)
    machine = Machine(changed(QUEUE, slo_ms=1_000), low)
    machine.put("q", *specs(20))
    machine.put("low", *specs(20))
    machine.run(4)
    machine.ask(Configure(changed(low, floor=0.0)))
    machine.pass_ms(2_000)
    assert [job.queue for job in machine.run(10)] == ["q"] * 10


def test_a_floor_holds_for_workers_of_every_set_of_queues() -> None:
    """A queue's floor is a share of the starts of each set of workers."""
    low = changed(QUEUE, name="low", slo_ms=60_000, floor=0.1)
    machine = Machine(changed(QUEUE, slo_ms=1_000), low)
    machine.put("q", *specs(2_000))
    machine.put("low", *specs(300))
    machine.pass_ms(2_000)
    machine.run(500)
    every, some = [], []
    for _ in range(200):
        every += machine.run(1)
        some += machine.run(1, ("low", "q"))
    for jobs in (every, some):
        assert 19 <= [job.queue for job in jobs].count("low") <= 22


def test_a_paused_tenant_of_a_queue_in_order_of_time_starts_nothing() -> None:
    """Invariant 26, for tenants."""
    machine = Machine(changed(QUEUE, order=Order.TIME))
    machine.put("q", JobSpec(tenant="a"), JobSpec(tenant="b"))
    machine.ask(SetTenant("q", "a", is_paused=True))
    assert machine.starts() == [2]
    machine.ask(SetTenant("q", "a", is_paused=False))
    assert machine.starts() == [1]


def test_pausing_no_tenant_leaves_the_others_of_an_ordered_queue_alone() -> None:
    """Invariant 26, for tenants."""
    machine = Machine(changed(QUEUE, order=Order.PRIORITY))
    machine.put("q", JobSpec(tenant="a"), JobSpec())
    machine.ask(SetTenant("q", "", is_paused=True))
    assert machine.starts() == [1]


def test_a_capped_tenant_of_a_queue_in_order_of_time_keeps_to_its_cap() -> None:
    """Invariant 22."""
    machine = Machine(changed(QUEUE, order=Order.TIME))
    machine.put("q", *specs(3, tenant="a"), JobSpec(tenant="b"))
    machine.ask(SetTenant("q", "a", cap=1))
    assert machine.starts() == [1, 4]


def test_priorities_rank_across_the_strands_of_an_ordered_queue() -> None:
    """The order of a queue holds whatever its limits tell apart."""
    limit = Concurrency("c", 100, "region")
    machine = Machine(changed(QUEUE, order=Order.PRIORITY, limits=(limit,)))
    machine.put("q", JobSpec(priority=50, labels={"region": "east"}))
    machine.put("q", JobSpec(priority=20, labels={"region": "west"}))
    machine.put("q", JobSpec(priority=10, labels={"region": "east"}))
    machine.put("q", JobSpec(priority=30, labels={"region": "west"}))
    assert machine.starts() == [3, 2, 4, 1]


def test_a_hold_before_a_release_still_does_not_count_against_the_promise() -> None:
    """Held time stays to the job's credit when its lease is given back."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    machine.ask(SetHold("q", Hold.PAUSE, is_on=True))
    machine.pass_ms(10_000)
    machine.ask(SetHold("q", Hold.PAUSE, is_on=False))
    (job,) = machine.lease()
    machine.ask(Release([job.token]))
    machine.lease()
    assert [event.wait_ms for event in machine.leased()] == [0, 0]


def test_holds_of_a_kind_and_of_a_tenant_at_once_never_exceed_the_time() -> None:
    """`held_ms` and `wait_ms` add up to the time since the job was ready.

    Overlapping holds of its kind and its tenant count twice, up to all of the time.
    """
    machine = Machine(QUEUE)
    machine.ask(SetKind("q", "k", is_paused=True))
    machine.put("q", JobSpec(kind="k", tenant="a"))
    machine.ask(SetTenant("q", "a", is_paused=True))
    machine.pass_ms(10_000)
    machine.ask(SetKind("q", "k", is_paused=False))
    machine.ask(SetTenant("q", "a", is_paused=False))
    machine.pass_ms(500)
    machine.lease()
    (leased,) = machine.leased()
    assert leased.held_ms + leased.wait_ms == 10_500
    assert leased.held_ms >= 10_000
    assert leased.wait_ms >= 0


def test_a_window_that_closes_in_a_pause_is_not_held_twice() -> None:
    """`held_ms` and `wait_ms` add up to the time since the job was ready."""
    windows = WindowSet((Window(0, 10),))
    limits = (Concurrency("c", 1),)
    config = changed(QUEUE, windows=windows, limits=limits, lease_ms=60 * MINUTE_MS)
    machine = Machine(config)
    machine.put("q", *specs(2))
    (job,) = machine.lease()
    machine.pass_ms(5 * MINUTE_MS)
    machine.ask(SetHold("q", Hold.PAUSE, is_on=True))
    machine.pass_ms(15 * MINUTE_MS)
    machine.ask(SetHold("q", Hold.PAUSE, is_on=False))
    machine.ask(Ack([job.token]))
    assert machine.starts() == []
    machine.pass_ms(24 * 60 * MINUTE_MS - 20 * MINUTE_MS)
    assert machine.starts() == [2]
    start = machine.leased()[-1]
    assert start.held_ms + start.wait_ms == 24 * 60 * MINUTE_MS
    assert start.wait_ms == 5 * MINUTE_MS


def test_time_ready_is_no_part_of_the_time_of_an_attempt() -> None:
    """`timeout_ms` is how long a job may be leased and waiting for one attempt."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(timeout_ms=10_000))
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "key", 5_000))
    machine.ask(Reply("q", "key"))
    machine.pass_ms(20_000)
    (job,) = machine.lease()
    machine.pass_ms(1_000)
    assert job.token in machine.partition.book.leases
