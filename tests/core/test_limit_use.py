"""History tells what limits were used for: how much, how long full, and by whom."""

import gc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import events
from headway.core.commands import Ack, Configure, SetKind, SetTenant
from headway.core.config import Concurrency, Limit, Order, QueueConfig, Rate, Shares
from headway.core.job import Job
from headway.core.part import PARTS_TOLD
from headway.core.spec import JobSpec
from headway.core.usage import PARTS_MAX, QUIET_MAX
from headway.core.use_book import USES_TOLD
from tests.core.machine import MINUTE_MS, START_MS, Machine, specs
from tests.core.recount import check_counters


def limited(*limits: Limit, **rules: Any) -> QueueConfig:
    return QueueConfig(name="q", limits=limits, lease_ms=60 * MINUTE_MS, **rules)


def of(*tenants: str) -> list[JobSpec]:
    return [JobSpec(tenant=tenant) for tenant in tenants]


def told(machine: Machine) -> list[events.LimitUsed]:
    return [event for event in machine.events if isinstance(event, events.LimitUsed)]


def end(machine: Machine, *jobs: Job) -> None:
    machine.ask(Ack([job.token for job in jobs]))


def test_a_minute_is_told_by_the_first_decision_after_it() -> None:
    machine = Machine(limited(Concurrency("c", 2)))
    machine.put("q", *of("acme", "acme", "globex"))
    machine.pass_ms(10_000)
    first, second = machine.lease(3)
    machine.pass_ms(20_000)
    end(machine, first)
    (third,) = machine.lease(3)
    machine.pass_ms(10_000)
    end(machine, second, third)
    assert told(machine) == []
    machine.pass_ms(20_000)
    (used,) = told(machine)
    assert used.at_ms == START_MS + MINUTE_MS
    assert (used.queue, used.limit, used.value) == ("q", "c", "")
    assert (used.minute_ms, used.minutes) == (START_MS, 1)
    assert (used.capacity, used.highest) == (2, 2)
    assert used.used_ms == 2 * 20_000 + 2 * 10_000
    # The third waited from the first lease to the first end.
    assert (used.stops, used.blocked_ms, used.full_ms) == (1, 20_000, 20_000)
    by_tenant = {first.spec.tenant: 0, second.spec.tenant: 0}
    by_tenant[first.spec.tenant] += 20_000
    by_tenant[second.spec.tenant] += 30_000
    by_tenant[third.spec.tenant] += 10_000
    assert {name: ms for name, ms, *_ in used.parts} == by_tenant
    machine.pass_ms(60 * MINUTE_MS)
    assert told(machine) == [used]


def test_what_nobody_uses_is_not_told() -> None:
    machine = Machine(limited(Concurrency("c", 2)), QueueConfig(name="plain"))
    machine.put("plain", *of("acme"))
    end(machine, *machine.lease(1))
    machine.put("q", JobSpec(is_critical=True))
    end(machine, *machine.lease(1))
    machine.pass_ms(30 * MINUTE_MS)
    assert told(machine) == []
    assert machine.partition.book.shared.uses._open == []


def test_minutes_in_which_nothing_happens_are_told_as_one() -> None:
    machine = Machine(limited(Concurrency("c", 1)))
    machine.put("q", *of("acme", "globex"))
    machine.pass_ms(15_000)
    (job,) = machine.lease(2)
    for _ in range(14):
        machine.pass_ms(MINUTE_MS)
    begun, quiet = told(machine)
    assert (begun.minute_ms, begun.minutes, begun.used_ms) == (START_MS, 1, 45_000)
    assert quiet.minute_ms == START_MS + MINUTE_MS
    assert quiet.minutes == QUIET_MAX
    assert (quiet.used_ms, quiet.blocked_ms) == (MINUTE_MS, MINUTE_MS)
    assert (quiet.highest, quiet.stops, quiet.full_ms) == (1, 0, MINUTE_MS)
    held, waited = (("acme", MINUTE_MS, 0, 0), ("globex", 0, 0, MINUTE_MS))
    if job.spec.tenant == "globex":
        held, waited = ("globex", MINUTE_MS, 0, 0), ("acme", 0, 0, MINUTE_MS)
    assert set(quiet.parts) == {held, waited}
    end(machine, job)
    machine.pass_ms(MINUTE_MS)
    spans = [(one.minute_ms, one.minutes) for one in told(machine)]
    for (first_ms, minutes), (next_ms, _) in pairwise(spans):
        assert first_ms + minutes * MINUTE_MS == next_ms


def test_an_idle_partition_makes_up_for_the_minutes_that_nobody_saw() -> None:
    machine = Machine(limited(Concurrency("c", 1)))
    machine.put("q", *of("acme"))
    (job,) = machine.lease(1)
    machine.now_ms += 5 * MINUTE_MS + 1_000
    end(machine, job)
    machine.pass_ms(MINUTE_MS)
    spans = [(one.minute_ms - START_MS, one.minutes) for one in told(machine)]
    assert spans == [(0, 5), (5 * MINUTE_MS, 1)] or spans == [
        (0, 1),
        (MINUTE_MS, 4),
        (5 * MINUTE_MS, 1),
    ]
    held_ms = sum(one.used_ms * one.minutes for one in told(machine))
    assert held_ms == 5 * MINUTE_MS + 1_000


def test_a_rate_is_used_by_what_it_lets_pass() -> None:
    machine = Machine(limited(Rate("r", 2, 30_000)))
    machine.put("q", *specs(5))
    assert len(machine.lease(5)) == 2
    machine.pass_ms(MINUTE_MS)
    machine.lease(5)
    machine.pass_ms(MINUTE_MS)
    first = told(machine)[0]
    assert (first.capacity, first.highest, first.used_ms) == (2, 2, 2 * 30_000)
    assert first.full_ms == first.blocked_ms > 0
    assert first.stops >= 1


@pytest.mark.parametrize("order", [Order.FAIR, Order.TIME])
def test_tenants_are_told_in_every_order_of_a_queue(order: Order) -> None:
    machine = Machine(limited(Concurrency("c", 1), order=order))
    machine.put("q", *of("acme"))
    machine.put("q", *of("globex"))
    machine.lease(2)
    machine.pass_ms(MINUTE_MS)
    (used,) = told(machine)
    assert {name for name, *_ in used.parts} == {"acme", "globex"}


def test_only_the_greatest_are_told_by_name_and_nothing_is_lost() -> None:
    machine = Machine(limited(Concurrency("c", 1_000)))
    count = 3 * PARTS_MAX
    machine.put("q", *(JobSpec(tenant=f"t{n}") for n in range(count)))
    jobs = machine.lease(count)
    machine.pass_ms(1_000)
    end(machine, *jobs)
    machine.pass_ms(MINUTE_MS)
    (used,) = told(machine)
    assert len(used.parts) <= 2 * PARTS_TOLD + 1
    assert used.parts[-1][0] is None
    assert sum(ms for _, ms, *_ in used.parts) == used.used_ms == count * 1_000
    assert used.highest == count


def test_a_decision_tells_of_some_limits_and_the_next_of_more() -> None:
    machine = Machine(limited(Concurrency("each", 1, per="tenant")))
    count = 2 * USES_TOLD + 5
    machine.put("q", *(JobSpec(tenant=f"t{n}") for n in range(count)))
    machine.pass_ms(1)
    jobs = machine.lease(count)
    machine.now_ms = START_MS + MINUTE_MS
    decisions = [machine.decide() for _ in range(4)]
    assert [len(one.events) for one in decisions] == [USES_TOLD, USES_TOLD, 5, 0]
    assert {one.value for one in told(machine)} == {job.spec.tenant for job in jobs}


def test_a_limit_that_goes_is_told_at_once() -> None:
    machine = Machine(limited(Concurrency("c", 1)))
    machine.put("q", *of("acme", "acme"))
    (job,) = machine.lease(2)
    machine.pass_ms(7_000)
    machine.ask(Configure(limited()))
    (used,) = told(machine)
    assert (used.used_ms, used.blocked_ms, used.stops) == (7_000, 7_000, 1)
    end(machine, job)
    machine.pass_ms(2 * MINUTE_MS)
    assert told(machine) == [used]


def test_caps_and_shares_are_told_by_value() -> None:
    shares = Shares("regions", 4, "region", {"eu": 50, "us": 50})
    machine = Machine(limited(shares))
    machine.ask(SetTenant("q", "acme", cap=1))
    machine.ask(SetKind("q", "big", cap=1))
    labels = {"region": "eu"}
    job = JobSpec(tenant="acme", labels=labels)
    machine.put("q", job, job, JobSpec(kind="big", labels=labels))
    machine.pass_ms(1)
    machine.lease(3)
    machine.pass_ms(MINUTE_MS)
    found = {(one.limit, one.value): one for one in told(machine)}
    assert found["cap:tenant", "acme"].stops == 1
    assert found["cap:kind", "big"].capacity == 1
    assert found["regions", "eu"].highest == 2


class Model:
    """Units in use at every moment, by what history says of leases."""

    def __init__(self, machine: Machine) -> None:
        self.used: dict[int, int] = {}
        """Units times ms, by minute."""
        self.highest: dict[int, int] = {}
        self._units: dict[int, int] = {}
        self._since_ms = START_MS
        for event in machine.events:
            if isinstance(event, events.Leased):
                self._pass(event.at_ms)
                self._units[event.seq] = 1
            elif isinstance(event, events.Acked):
                self._pass(event.at_ms)
                del self._units[event.seq]
            if isinstance(event, events.Leased | events.Acked):
                minute = event.at_ms // MINUTE_MS
                most = max(self.highest.get(minute, 0), len(self._units))
                self.highest[minute] = most
        self._pass(machine.now_ms)

    def _pass(self, until_ms: int) -> None:
        while self._since_ms < until_ms:
            minute = self._since_ms // MINUTE_MS
            end_ms = min(until_ms, (minute + 1) * MINUTE_MS)
            held = len(self._units) * (end_ms - self._since_ms)
            self.used[minute] = self.used.get(minute, 0) + held
            most = max(self.highest.get(minute, 0), len(self._units))
            self.highest[minute] = most
            self._since_ms = end_ms


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 4),
    steps=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 100_000)),
        max_size=40,
    ),
)
def test_what_is_told_is_what_leases_say(
    size: int, steps: list[tuple[int, int, int]]
) -> None:
    machine = Machine(limited(Concurrency("c", size)))
    running: list[Job] = []
    for put, ended, wait_ms in steps:
        machine.put("q", *(JobSpec(tenant=f"t{n}") for n in range(put + 1)))
        running += machine.lease(10)
        check_counters(machine.partition.book)
        machine.pass_ms(wait_ms)
        done, running = running[:ended], running[ended:]
        end(machine, *done)
        check_counters(machine.partition.book)
    end(machine, *running)
    while running := machine.lease(10):
        end(machine, *running)
    machine.pass_ms(2 * MINUTE_MS)
    model = Model(machine)
    used: dict[int, int] = {}
    highest: dict[int, int] = {}
    for one in told(machine):
        assert one.full_ms <= MINUTE_MS
        assert sum(ms for _, ms, *_ in one.parts) == one.used_ms
        assert sum(stops for _, _, stops, _ in one.parts) == one.stops
        assert sum(ms for *_, ms in one.parts) == one.blocked_ms
        for number in range(one.minutes):
            minute = one.minute_ms // MINUTE_MS + number
            assert minute not in used
            used[minute], highest[minute] = one.used_ms, one.highest
    assert used == {minute: ms for minute, ms in model.used.items() if minute in used}
    assert all(ms == 0 for minute, ms in model.used.items() if minute not in used)
    assert all(model.highest[minute] == most for minute, most in highest.items())


def test_a_limit_that_was_quiet_is_told_of_whoever_uses_it_next() -> None:
    """What the first tenant's turn remembers to have held is not the second's part."""
    machine = Machine(limited(Concurrency("c", 9, per="server")))
    for tenants in (["acme"], ["acme"], ["globex"], ["acme"], ["globex", "acme"]):
        for tenant in tenants:
            at_server = {"server": "s"}
            machine.put("q", JobSpec(tenant=tenant, labels=at_server))
        jobs = machine.lease(2)
        machine.pass_ms(10_000)
        end(machine, *jobs)
        machine.events.clear()
        machine.pass_ms(5 * MINUTE_MS)
        used = [event for event in told(machine) if event.used_ms]
        parts = [(name, ms) for event in used for name, ms, *_ in event.parts]
        assert sorted(parts) == sorted((tenant, 10_000) for tenant in tenants)


@pytest.mark.parametrize("per", ["tenant", "server"])
def test_limits_that_come_and_go_leave_nothing_to_the_collector(per: str) -> None:
    machine = Machine(limited(Concurrency("c", 1, per=per)))

    def come_and_go(first: int) -> None:
        for number in range(first, first + 3_000):
            name = f"x{number}"
            machine.put("q", JobSpec(tenant=name, labels={"server": name}))
            end(machine, *machine.lease(1))
            if number % 100 == 0:
                machine.pass_ms(MINUTE_MS)
            machine.events.clear()

    come_and_go(0)
    gc.collect()
    gc.disable()
    try:
        come_and_go(3_000)
        assert gc.collect() < 300
    finally:
        gc.enable()
