"""Bugs that random histories found: jobs that could start and did not."""

import msgspec
import pytest

from headway.core.commands import (
    Ack,
    Configure,
    Judge,
    Release,
    SetKind,
    SetTenant,
    Verdict,
)
from headway.core.config import Concurrency, Order, QueueConfig, Shares
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

QUEUE = QueueConfig(name="q")


def changed(config: QueueConfig, **fields: object) -> QueueConfig:
    return msgspec.structs.replace(config, **fields)


def test_a_job_dearer_than_its_share_borrows_from_an_idle_pool() -> None:
    """Invariant 29: a value that waits for units is not owed them by itself."""
    shares = Shares("s", 10, "region", {"east": 50, "west": 50}, is_lending=True)
    machine = Machine(changed(QUEUE, limits=(shares,)))
    machine.put("q", JobSpec(labels={"region": "west"}, cost=5))
    (job,) = machine.lease()
    machine.put("q", JobSpec(labels={"region": "east"}, cost=6))
    assert machine.starts() == []
    machine.ask(Ack([job.token]))
    assert machine.starts() == [2]


def test_a_reservation_goes_when_its_jobs_move_to_another_strand() -> None:
    """Invariant 29: what an emptied strand had reserved serves the new one."""
    machine = Machine(changed(QUEUE, order=Order.PRIORITY))
    machine.ask(SetKind("q", "k", cap=2))
    machine.put("q", *specs(2, kind="k", cost=2))
    (job,) = machine.lease()
    assert machine.starts() == []
    machine.ask(Release([job.token]))
    machine.ask(SetTenant("q", "b", cap=5))
    assert len(machine.starts()) == 1


def test_a_throttler_that_is_taken_away_is_not_waited_for() -> None:
    """Invariant 29: a change of rules takes hold for the jobs already there."""
    config = changed(QUEUE, has_throttler=True)
    machine = Machine(config)
    machine.put("q", *specs(2))
    assert machine.starts() == []
    machine.ask(Configure(changed(config, has_throttler=False)))
    assert machine.starts() == [1, 2]


def test_a_verdict_for_a_job_behind_the_head_asks_nothing_twice() -> None:
    """The throttler is asked once about a job that waits for its verdict."""
    machine = Machine(changed(QUEUE, has_throttler=True))
    machine.put("q", *specs(2))
    assert machine.starts() == []
    machine.ask(Judge(2, Verdict.START))
    assert machine.starts() == []
    assert [job.seq for job in machine.asked] == [1]


def test_time_outside_a_window_that_nobody_saw_close_is_held_time() -> None:
    """Time outside a window does not count against the promise."""
    windows = WindowSet((Window(0, 10), Window(20, 30)))
    config = changed(QUEUE, windows=windows, limits=(Concurrency("c", 1),))
    machine = Machine(changed(config, lease_ms=60 * MINUTE_MS))
    machine.put("q", *specs(2))
    (job,) = machine.lease()
    machine.pass_ms(25 * MINUTE_MS)
    machine.ask(Ack([job.token]))
    assert machine.starts() == [2]
    start = machine.leased()[-1]
    assert (start.wait_ms, start.held_ms) == (15 * MINUTE_MS, 10 * MINUTE_MS)


ORDERS = [(Order.TIME, Order.FAIR), (Order.FAIR, Order.TIME)]


@pytest.mark.parametrize(("old", "new"), ORDERS)
@pytest.mark.parametrize("tenant", ["", "a"])
def test_a_paused_tenant_stays_paused_in_another_order(
    old: Order, new: Order, tenant: str
) -> None:
    """Invariant 26, for tenants: whatever becomes of the queue's order."""
    machine = Machine(changed(QUEUE, order=old))
    machine.ask(SetTenant("q", tenant, is_paused=True))
    machine.put("q", JobSpec(tenant=tenant), JobSpec(tenant="b"))
    machine.ask(Configure(changed(QUEUE, order=new)))
    machine.put("q", JobSpec(tenant=tenant), JobSpec(tenant="b"))
    assert sorted(machine.starts()) == [2, 4]
    machine.ask(SetTenant("q", tenant, is_paused=False))
    assert sorted(machine.starts()) == [1, 3]


@pytest.mark.parametrize(("old", "new"), ORDERS)
def test_held_time_is_right_after_a_change_of_order(old: Order, new: Order) -> None:
    """`held_ms` is never negative and adds up with `wait_ms`."""
    machine = Machine(changed(QUEUE, order=old))
    machine.ask(SetTenant("q", "a", is_paused=True))
    machine.pass_ms(500)
    machine.put("q", JobSpec(tenant="a"))
    machine.pass_ms(1_000)
    machine.ask(SetTenant("q", "a", is_paused=False))
    machine.ask(Configure(changed(QUEUE, order=new)))
    machine.pass_ms(300)
    machine.lease()
    assert [(e.held_ms, e.wait_ms) for e in machine.leased()] == [(1_000, 300)]


def test_a_limit_per_tenant_added_under_a_backlog_takes_hold() -> None:
    """Invariant 22."""
    machine = Machine(QUEUE)
    machine.put("q", *specs(5, tenant="a"))
    machine.lease()
    limit = Concurrency("c", 1, "tenant")
    machine.ask(Configure(changed(QUEUE, limits=(limit,))))
    assert machine.starts() == []
