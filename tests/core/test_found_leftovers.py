"""Bugs of what is left behind: units, wants, clocks and accounts."""

import msgspec
import pytest

from headway.core.commands import (
    Cancel,
    Configure,
    Lease,
    Purge,
    Reply,
    SetTenant,
    Wait,
)
from headway.core.config import Concurrency, Order, QueueConfig, Rate, Shares
from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

QUEUE = QueueConfig(name="q")
PER_USER = Concurrency("c", 1, per="user")


def changed(config: QueueConfig, **fields: object) -> QueueConfig:
    return msgspec.structs.replace(config, **fields)


def test_a_new_limit_counts_a_continuation_that_is_ready() -> None:
    """Invariant 22: what came back from waiting counts where it starts again."""
    old = Concurrency("a", 5)
    machine = Machine(changed(QUEUE, limits=(old,)))
    machine.put("q", JobSpec())
    (job,) = machine.lease()
    machine.ask(Wait(job.token, "key", 5_000))
    machine.ask(Reply("q", "key"))
    machine.ask(Configure(changed(QUEUE, limits=(old, Concurrency("b", 1)))))
    assert machine.starts() == [1]
    machine.put("q", JobSpec())
    assert machine.starts() == []


def test_a_window_that_is_lifted_lets_ready_jobs_go() -> None:
    """A change of rules takes hold for the jobs already there."""
    windows = WindowSet((Window(0, 10),))
    config = changed(QUEUE, windows=windows)
    machine = Machine(config)
    machine.put("q", *specs(2))
    machine.lease()
    machine.pass_ms(20 * MINUTE_MS)
    assert 2 not in machine.starts()
    machine.ask(Configure(changed(config, windows=None)))
    assert 2 in machine.starts()


def test_a_queue_at_its_share_of_slots_goes_on_when_slots_join() -> None:
    """Invariant 29; work conservation: the share is of the slots there are now."""
    machine = Machine(changed(QUEUE, slot_share=0.5, lease_ms=3_600_000))
    machine.put("q", *specs(10))
    for _ in range(8):
        machine.ask(Lease(wait_until_ms=machine.now_ms + MINUTE_MS))
    assert len(machine.leased()) >= 4


def test_a_rate_that_is_no_whole_number_of_microseconds_is_not_passed() -> None:
    """Invariant 22: refill <= rate."""
    machine = Machine(changed(QUEUE, limits=(Rate("r", 7, 10),)))
    machine.put("q", *specs(7_100))
    started = 0
    for _ in range(10_000):
        machine.now_ms += 1
        started += len(machine.run(10))
    assert started <= 7_000 + 7


def test_a_lease_needs_a_duration() -> None:
    """Bad values are refused: a lease of no length would be lost at once."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    for lease_ms in (0, -1, 1 << 63):
        answer = machine.ask(Lease(lease_ms=lease_ms))
        assert isinstance(answer, BadValue)


def test_lent_units_are_lent_again_when_their_owner_is_cancelled() -> None:
    """Invariant 29; work conservation."""
    shares = Shares("s", 10, "region", {"east": 50, "west": 50}, is_lending=True)
    machine = Machine(changed(QUEUE, limits=(shares,)))
    machine.put("q", *specs(8, labels={"region": "west"}))
    assert len(machine.starts()) == 8
    machine.put("q", JobSpec(labels={"region": "east"}, cost=5))
    assert machine.starts() == []
    machine.put("q", JobSpec(labels={"region": "west"}))
    assert machine.starts() == []
    machine.ask(Cancel(9))
    assert machine.starts() == [10]


def test_a_change_of_order_leaves_no_want_behind() -> None:
    """Invariant 18 for the ledger: want equals a recount."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(tenant="a"))
    machine.ask(Configure(changed(QUEUE, order=Order.TIME)))
    machine.run(1)
    accounts = machine.partition.book.shared.ledger.accounts
    assert [account.want for account in accounts.values()] in ([], [0])


def fill_with_empties(machine: Machine) -> None:
    """So many tenants come and go that the oldest empty turns are dropped."""
    machine.put("q", *specs(9, tenant="t"))
    machine.run(9)
    machine.put("q", *[JobSpec(tenant=f"t{n}") for n in range(2_000)])
    machine.run(2_000)


def test_a_tenant_seen_long_ago_has_one_clock_and_one_rule_in_a_lane() -> None:
    """Invariant 26, for tenants: the pause holds for every strand of the tenant."""
    limit = Concurrency("c", 10_000, "region")
    machine = Machine(changed(QUEUE, limits=(limit,)))
    east, west = {"region": "east"}, {"region": "west"}
    machine.put("q", JobSpec(tenant="a", labels=east))
    machine.run(1)
    machine.put("q", JobSpec(tenant="a", labels=west))
    machine.run(1)
    machine.put("q", *specs(9, tenant="t"))
    machine.run(9)
    machine.put("q", *[JobSpec(tenant=f"t{n}") for n in range(1_022)])
    machine.run(1_022)
    machine.put("q", *specs(2, tenant="a", labels=west))
    machine.put("q", *specs(2, tenant="a", labels=east))
    machine.ask(SetTenant("q", "a", is_paused=True))
    assert machine.starts() == []


def test_a_tenant_seen_long_ago_keeps_to_its_limit_in_all_lanes() -> None:
    """Invariant 22."""
    limit = Concurrency("c", 1, "tenant")
    machine = Machine(changed(QUEUE, slos_ms=(1_000,), limits=(limit,)))
    machine.put("q", JobSpec(tenant="a"), JobSpec(tenant="a", slo_ms=1_000))
    machine.run(2)
    fill_with_empties(machine)
    machine.put("q", *specs(3, tenant="a", slo_ms=1_000))
    machine.put("q", *specs(3, tenant="a"))
    assert len(machine.starts()) == 1


def test_a_tenant_seen_long_ago_has_one_account() -> None:
    """Entitlement: one tenant, one share, in all queues."""
    machine = Machine(QUEUE, changed(QUEUE, name="other"))
    machine.put("q", JobSpec(tenant="a"))
    machine.put("other", JobSpec(tenant="a"))
    machine.run(2)
    fill_with_empties(machine)
    machine.put("other", *specs(2, tenant="a"))
    machine.put("q", *specs(3, tenant="a"))
    ledger = machine.partition.book.shared.ledger
    machine.starts()
    assert ledger.accounts["a"].leased == 5


def test_a_purge_of_a_parked_big_head_reserves_nothing() -> None:
    """Invariant 29; work conservation."""
    machine = Machine(changed(QUEUE, limits=(Concurrency("c", 5),)))
    machine.put("q", JobSpec())
    machine.lease()
    machine.put("q", JobSpec(cost=5, tenant="a"))
    assert machine.starts() == []
    machine.ask(Purge("q", "a"))
    machine.put("q", JobSpec())
    assert machine.starts() == [3]


def test_a_turn_is_listed_once_however_often_it_empties() -> None:
    """What is kept of idle tenants does not grow with the jobs they have had."""
    machine = Machine(QUEUE)
    for _ in range(50):
        for tenant in range(100):
            machine.put("q", JobSpec(tenant=f"t{tenant}"))
        machine.run(100)
    queue = machine.partition.book.queues["q"]
    assert queue.empties.size <= 100


def test_idle_turns_are_dropped_oldest_first() -> None:
    """A million tenants that came once do not stay for ever."""
    machine = Machine(QUEUE)
    for tenant in range(3_000):
        machine.put("q", JobSpec(tenant=f"t{tenant}"))
        machine.run(1)
    lane = machine.partition.book.queues["q"].lanes[QUEUE.slo_ms]
    assert len(lane.tenancies) <= 1_100
    assert "t0" not in lane.tenancies
    assert "t2999" in lane.tenancies


@pytest.mark.interpreted
def test_idle_turns_are_dropped_though_the_lane_is_never_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A backlog keeps the lane's base where it is, and so everyone else ahead of it."""
    monkeypatch.setattr("headway.core.queue.EMPTIES_MAX", 2_000)
    machine = Machine(QUEUE)
    for tenant in range(5_000):
        machine.put("q", JobSpec(tenant=f"t{tenant}"))
        if tenant:
            machine.run(1)
    lane = machine.partition.book.queues["q"].lanes[QUEUE.slo_ms]
    assert len(lane.tenancies) <= 2_100


@pytest.mark.interpreted
@pytest.mark.parametrize("is_rate", [False, True], ids=["units", "rate"])
def test_values_of_a_limit_that_came_once_do_not_stay_for_ever(
    monkeypatch: pytest.MonkeyPatch, *, is_rate: bool
) -> None:
    """Though they are all of one tenant, of whom something always runs."""
    monkeypatch.setattr("headway.core.queue.EMPTIES_MAX", 300)
    monkeypatch.setattr("headway.core.queue.EMPTIES", 100)
    limit = Rate("r", 1, MINUTE_MS, per="user") if is_rate else PER_USER
    machine = Machine(changed(QUEUE, limits=(limit,)))
    machine.put("q", JobSpec(timeout_ms=100 * MINUTE_MS))
    machine.starts(1)
    sizes: list[tuple[int, int, int]] = []
    for number in range(2_000):
        machine.put("q", JobSpec(labels={"user": f"u{number}"}))
        machine.run(1)
        machine.pass_ms(1_000)
        queue = machine.partition.book.queues["q"]
        strands = queue.lanes[QUEUE.slo_ms].strands
        turns = machine.partition.book.shared.turns
        sizes.append((turns, len(strands), len(queue.rules.book.all())))
    turns, strands, gauges = map(max, zip(*sizes, strict=True))
    assert turns <= 310
    assert strands <= 310
    # Those of some three minutes besides: until it is told what was used of them.
    assert gauges <= 310 + 3 * 60


def test_a_value_that_is_in_use_keeps_its_limit_without_a_strand() -> None:
    """It is dropped when it is at rest: who comes meanwhile meets the same limit."""
    machine = Machine(changed(QUEUE, limits=(PER_USER,)))
    book = machine.partition.book.queues["q"].rules.book
    gauge = book.gauge(PER_USER, "u")
    book.join((gauge,))
    gauge.used = 1
    book.leave((gauge,))
    for _ in range(3):
        book.tidy(machine.now_ms)
    assert book.gauge(PER_USER, "u") is gauge
    gauge.used = 0
    book.tidy(machine.now_ms)
    assert gauge not in book.all()


@pytest.mark.parametrize("per", ["tenant", "user"])
def test_a_rate_holds_for_one_that_was_forgotten_meanwhile(per: str) -> None:
    """Invariant 22: what it has used of its hour stays used until that is over."""
    rate = Rate("r", 1, 60 * MINUTE_MS, per=per)
    machine = Machine(changed(QUEUE, limits=(rate,)))

    def come(name: str) -> int:
        machine.put("q", JobSpec(tenant=name, labels={"user": name}))
        return len(machine.run(9))

    assert come("acme") == 1
    for number in range(2_000):
        come(f"t{number}")
    rules = machine.partition.book.queues["q"].rules
    assert "acme" not in rules.tenants
    assert come("acme") == 0
    machine.pass_ms(60 * MINUTE_MS)
    assert len(machine.run(9)) == 1
    for number in range(2_000):
        come(f"u{number}")
    machine.pass_ms(62 * MINUTE_MS)
    for number in range(3_000):
        come(f"v{number}")
    # Of those of the first two hours nothing is unpaid any more.
    assert len(rules.book.all()) < 4_000
