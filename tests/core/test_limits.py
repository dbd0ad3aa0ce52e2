"""Limits: concurrency with costs, rates, shares and caps, and what holds their units."""

from fractions import Fraction
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.commands import (
    Ack,
    Configure,
    Enqueue,
    Lease,
    Nack,
    Release,
    Reply,
    SetKind,
    SetTenant,
    Wait,
)
from headway.core.config import Concurrency, Limit, QueueConfig, Rate, Shares
from headway.core.errors import NoShare
from headway.core.job import Job
from headway.core.shares import shares_of
from headway.core.spec import JobSpec
from tests.core.machine import MINUTE_MS, START_MS, Machine, specs


def limited(*limits: Limit) -> QueueConfig:
    return QueueConfig(name="q", limits=limits, lease_ms=60 * MINUTE_MS)


def end(machine: Machine, *jobs: Job) -> None:
    machine.ask(Ack([job.token for job in jobs]))


def region(name: str, cost: int = 1) -> JobSpec:
    return JobSpec(labels={"region": name}, cost=cost)


def regions(name: str, count: int) -> list[JobSpec]:
    return [region(name)] * count


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    size=st.integers(1, 6),
    costs=st.lists(st.integers(0, 8), min_size=1, max_size=30),
    ends=st.lists(st.integers(0, 5), max_size=60),
)
def test_running_costs_never_pass_the_limit_and_all_run(
    size: int, costs: list[int], ends: list[int]
) -> None:
    """Invariants 22 and 29: a job dearer than the limit counts as all of it."""
    machine = Machine(limited(Concurrency("c", size)))
    machine.put("q", *(JobSpec(cost=cost) for cost in costs))
    running: list[Job] = []
    order = iter(ends)
    done = 0
    while done < len(costs):
        running += machine.lease(10)
        assert sum(min(job.cost, size) for job in running) <= size
        assert running, "nothing runs and nothing starts"
        end(machine, running.pop(next(order, 0) % len(running)))
        done += 1


def test_a_job_dearer_than_the_limit_runs_alone() -> None:
    """Invariants 22 and 29."""
    machine = Machine(limited(Concurrency("c", 3)))
    machine.put("q", JobSpec(), JobSpec(cost=100), JobSpec())
    (first,) = machine.lease(5)
    end(machine, first)
    (big,) = machine.lease(5)
    assert big.seq == 2
    end(machine, big)
    assert machine.starts() == [3]


def test_a_big_head_reserves_units_and_is_not_starved_by_small_ones() -> None:
    """Invariant 29: the small jobs of other regions come after it."""
    machine = Machine(limited(Concurrency("c", 4)))
    machine.put("q", *specs(5, tenant="small"))
    small = machine.lease(4)
    machine.put("q", JobSpec(tenant="big", cost=3), *specs(50, tenant="small"))
    started: list[int] = []
    for job in small[:3]:
        end(machine, job)
        started += [job.seq for job in machine.lease(5)]
    assert started[0] == 6


def test_a_reserving_strand_does_not_stop_other_values() -> None:
    """A reservation is for the value that the big job wants, and for no other."""
    machine = Machine(limited(Concurrency("c", 2, "region")))
    machine.put("q", region("east"), region("east", 2), region("west"))
    assert machine.starts() == [1, 3]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    count=st.integers(1, 9),
    period_ms=st.sampled_from([7, 10, 1_000, 60_000]),
    burst=st.none() | st.integers(1, 12),
    steps=st.lists(st.integers(0, 2_000), max_size=60),
)
def test_a_rate_is_exact(
    count: int, period_ms: int, burst: int | None, steps: list[int]
) -> None:
    """Invariant 22: refill <= rate, against a bucket in exact fractions."""
    machine = Machine(limited(Rate("r", count, period_ms, burst)))
    machine.put("q", *specs(3_000))
    most = Fraction(count if burst is None else burst)
    bucket, last_ms = most, machine.now_ms
    for step in [0, *steps]:
        machine.now_ms += step
        filled = Fraction((machine.now_ms - last_ms) * count, period_ms)
        bucket, last_ms = min(most, bucket + filled), machine.now_ms
        started = len(machine.lease(100))
        assert started == int(bucket), "no more than the rate, and no less"
        bucket -= started


def test_three_per_second_are_three_in_every_second() -> None:
    """Invariant 22: 3 per second is not rounded to one per 333 ms or 334 ms."""
    machine = Machine(limited(Rate("r", 3, 1_000, 1)))
    machine.put("q", *specs(4_000))
    starts: list[int] = []
    for _ in range(100_000):
        machine.now_ms += 1
        if len(machine.partition.book.timers) or machine.now_ms < START_MS + 2:
            starts += [machine.now_ms] * len(machine.lease(5))
    assert len(starts) == 300
    gaps = {later - sooner for sooner, later in pairwise(starts)}
    assert gaps <= {333, 334}


def test_a_rate_wakes_its_waiters_by_itself() -> None:
    """Invariant 29: nobody has to ask again when the next unit is due."""
    machine = Machine(limited(Rate("r", 1, 1_000, 1, "region")))
    machine.put("q", *regions("east", 3), *regions("west", 3))
    starts = [job.seq for job in machine.lease(10)]
    machine.pass_ms(1_000)
    starts += [job.seq for job in machine.lease(10)]
    machine.pass_ms(1_000)
    starts += [job.seq for job in machine.lease(10)]
    assert sorted(starts) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("size", "percent", "units"),
    [
        (100, {"a": 40, "b": 30, "c": 30}, {"a": 40, "b": 30, "c": 30}),
        (10, {"a": 40, "b": 30, "c": 30}, {"a": 4, "b": 3, "c": 3}),
        (7, {"a": 40, "b": 30, "c": 30}, {"a": 3, "b": 2, "c": 2}),
        (2, {"a": 40, "b": 30, "c": 30}, {"a": 1, "b": 1, "c": 1}),
        (10, {"a": 33, "b": 33}, {"a": 3, "b": 3, "*": 4}),
        (10, {"a": 50, "b": 0}, {"a": 5, "b": 0, "*": 5}),
        (0, {"a": 50}, {"a": 0, "*": 0}),
    ],
)
def test_percents_become_units(
    size: int, percent: dict[str, int], units: dict[str, int]
) -> None:
    assert shares_of(Shares("s", size, "region", percent)) == units


@given(
    size=st.integers(1, 50),
    percents=st.lists(st.integers(0, 40), min_size=1, max_size=5),
)
def test_units_of_shares_add_up(size: int, percents: list[int]) -> None:
    """Nothing is lost by rounding; only floors of one may go beyond the limit."""
    percent = {str(n): value for n, value in enumerate(percents)}
    if sum(percents) > 100:
        return
    units = shares_of(Shares("s", size, "region", percent))
    wanting = [value for value, share in percent.items() if share]
    assert all(units[value] >= 1 for value in wanting)
    assert sum(units.values()) >= size
    assert sum(units.values()) <= size + len(units)


EAST_WEST = {"east": 40, "north": 30, "west": 30}


def test_shares_hold_whatever_else_is_idle() -> None:
    """Invariant 22: 40/30/30 of 10 units."""
    machine = Machine(limited(Shares("s", 10, "region", EAST_WEST)))
    machine.put("q", *regions("east", 20))
    assert len(machine.starts()) == 4
    machine.put("q", *regions("west", 20), *regions("north", 20))
    assert len(machine.starts()) == 6


def test_lent_units_are_given_back_as_they_come_free() -> None:
    """Invariant 22: the owner gets every unit that ends until it has its share."""
    machine = Machine(limited(Shares("s", 10, "region", EAST_WEST, is_lending=True)))
    machine.put("q", *regions("east", 30))
    borrowed = machine.lease(20)
    assert len(borrowed) == 10
    machine.put("q", *regions("west", 20))
    labels: list[str] = []
    for job in borrowed[:6]:
        end(machine, job)
        labels += [(new.spec.labels or {})["region"] for new in machine.lease(5)]
    assert labels == ["west"] * 3 + ["east"] * 3


def test_a_job_without_a_share_is_refused() -> None:
    machine = Machine(limited(Shares("s", 10, "region", {"east": 100})))
    assert isinstance(machine.ask(Enqueue("q", [region("west")])), NoShare)
    assert machine.put("q", JobSpec(is_critical=True)) == [1]


def test_caps_per_tenant_and_per_label() -> None:
    """Invariant 22."""
    both = (Concurrency("t", 2, "tenant"), Concurrency("r", 3, "region"))
    machine = Machine(limited(*both))
    for tenant in ("a", "b", "c"):
        machine.put("q", *specs(5, tenant=tenant, labels={"region": "east"}))
    machine.put("q", *specs(5, tenant="a", labels={"region": "west"}))
    jobs = machine.lease(20)
    east = [job for job in jobs if job.spec.labels == {"region": "east"}]
    assert len(east) == 3
    assert sum(job.spec.tenant == "a" for job in jobs) == 2


def test_an_own_cap_stands_beside_the_limit_per_tenant() -> None:
    """Invariant 22: the tighter one holds, and -1 lifts only the cap."""
    machine = Machine(limited(Concurrency("t", 3, "tenant")))
    machine.ask(SetTenant("q", "a", cap=1))
    machine.put("q", *specs(9, tenant="a"), *specs(9, tenant="b"))
    assert len(machine.starts()) == 1 + 3
    machine.ask(SetTenant("q", "a", cap=-1))
    assert len(machine.starts()) == 2


def test_a_job_that_waits_for_a_reply_holds_its_units_and_reuses_them() -> None:
    """Invariant 22: the outside system is still busy with it."""
    machine = Machine(limited(Concurrency("c", 1)))
    machine.put("q", *specs(2))
    (job,) = machine.lease(5)
    machine.ask(Wait(job.token, "key", 50_000))
    assert machine.starts() == []
    machine.ask(Reply("q", "key"))
    (again,) = machine.lease(5)
    assert again.seq == job.seq
    assert machine.starts() == []
    end(machine, again)
    assert machine.starts() == [2]


@pytest.mark.parametrize("how", ["ack", "nack", "release", "lose"])
def test_units_come_back_however_a_lease_ends(how: str) -> None:
    """Invariants 18 and 22."""
    machine = Machine(limited(Concurrency("c", 1)))
    machine.put("q", *specs(2))
    (job,) = machine.lease(5)
    match how:
        case "ack":
            end(machine, job)
        case "nack":
            machine.ask(Nack(job.token, retry_in_ms=500_000))
        case "release":
            machine.ask(Release([job.token]))
        case _:
            machine.pass_ms(61 * MINUTE_MS)
    assert len(machine.starts()) == 1


def test_critical_jobs_neither_wait_for_limits_nor_count() -> None:
    """Invariant 22, and the promise to critical jobs."""
    machine = Machine(limited(Concurrency("c", 1), Rate("r", 1, 60_000, 1)))
    machine.ask(SetTenant("q", "a", cap=0))
    machine.ask(SetKind("q", "k", cap=0))
    urgent = specs(5, tenant="a", kind="k", is_critical=True)
    machine.put("q", JobSpec(), *urgent, JobSpec())
    assert sorted(machine.starts()) == [1, 2, 3, 4, 5, 6]


def test_a_smaller_limit_holds_for_what_starts_from_then_on() -> None:
    """Invariant 22: what runs goes on, and counts."""
    config = limited(Concurrency("c", 5))
    machine = Machine(config)
    machine.put("q", *specs(20))
    running = machine.lease(10)
    smaller = msgspec.structs.replace(config, limits=(Concurrency("c", 2),))
    machine.ask(Configure(smaller))
    for job in running[:3]:
        end(machine, job)
        assert machine.starts() == []
    end(machine, running[3])
    assert len(machine.starts()) == 1
    machine.ask(Configure(config))
    assert len(machine.starts()) == 3


def test_a_dear_job_at_a_rate_is_looked_at_when_it_may_go_and_not_before() -> None:
    """Else the partition would be asked every millisecond until then."""
    machine = Machine(limited(Rate("r", 10, 1_000, burst=10)))
    machine.put("q", JobSpec(cost=10), JobSpec(cost=5))
    machine.ask(Lease(max=2, wait_until_ms=machine.now_ms + 60_000))
    machine.ask(Lease(max=2, wait_until_ms=machine.now_ms + 60_000))
    began_ms = machine.now_ms
    decisions = 0
    while len(machine.leased()) < 2:
        next_ms = machine.partition.next_ms()
        assert next_ms is not None
        machine.now_ms = max(machine.now_ms, next_ms)
        machine.decide()
        decisions += 1
        assert decisions < 10
    assert machine.now_ms - began_ms == 500
