"""Fairness between tenants and between queues."""

import random
from collections import Counter

import msgspec
import pytest

from headway.core.commands import (
    Ack,
    Configure,
    Enqueue,
    Lease,
    Nack,
    Purge,
    Release,
    SetTenant,
)
from headway.core.config import Concurrency, FairBy, QueueConfig
from headway.core.job import Job
from headway.core.spec import JobSpec
from tests.core.machine import MINUTE_MS, Machine, specs

QUEUE = QueueConfig(name="q", lease_ms=60 * MINUTE_MS)


def tenants(jobs: list[Job]) -> list[str]:
    return [job.spec.tenant for job in jobs]


def check_shares(
    order: list[str], weights: dict[str, float], window: int, tolerance: float
) -> None:
    """In every window of starts each gets its share by weight."""
    total = sum(weights.values())
    counts = Counter(order[:window])
    for start in range(len(order) - window + 1):
        for tenant, weight in weights.items():
            expected = window * weight / total
            assert abs(counts[tenant] - expected) <= tolerance * expected, start
        counts[order[start]] -= 1
        if start + window < len(order):
            counts[order[start + window]] += 1


def test_weights_hold_in_every_window_of_a_thousand_starts() -> None:
    """Invariant 23: 4:2:1 within 5 %."""
    machine = Machine(QUEUE)
    weights = {"gold": 4.0, "silver": 2.0, "bronze": 1.0}
    for tenant, weight in weights.items():
        machine.put("q", *specs(2_000, tenant=tenant, weight=weight))
    check_shares(tenants(machine.run(3_000)), weights, 1_000, 0.05)


@pytest.mark.parametrize("seed", range(3))
def test_any_weights_give_nine_tenths_of_the_share_at_least(seed: int) -> None:
    """Invariant 23, with jobs that come in any order and late starters."""
    draw = random.Random(seed)
    machine = Machine(QUEUE)
    weights = {f"t{n}": draw.choice([0.5, 1.0, 3.0, 10.0]) for n in range(12)}
    order = [tenant for tenant in weights for _ in range(2_500)]
    draw.shuffle(order)
    machine.put("q", *[JobSpec(tenant=t, weight=weights[t]) for t in order])
    starts = tenants(machine.run(3_000))
    total = sum(weights.values())
    for begin in range(0, 2_000, 250):
        counts = Counter(starts[begin : begin + 1_000])
        for tenant, weight in weights.items():
            assert counts[tenant] >= 0.9 * 1_000 * weight / total - 1


def test_a_new_weight_holds_from_the_next_start_on() -> None:
    """The backlog included: nothing is stored with the jobs."""
    machine = Machine(QUEUE)
    machine.put("q", *specs(900, tenant="a"), *specs(900, tenant="b"))
    assert Counter(tenants(machine.run(100))) == {"a": 50, "b": 50}
    machine.ask(SetTenant("q", "a", weight=3.0))
    counts = Counter(tenants(machine.run(400)))
    assert abs(counts["a"] - 300) <= 3
    machine.put("q", JobSpec(tenant="b", weight=3.0))
    counts = Counter(tenants(machine.run(400)))
    assert abs(counts["a"] - 200) <= 3


@pytest.mark.parametrize("zipf", [0.8, 1.2, 2.0])
def test_unfairness_of_zipf_tenants_is_below_one(zipf: float) -> None:
    """Sum of the places of first starts, by the number of tenants squared."""
    draw = random.Random(4)
    names = [f"t{n}" for n in range(90)]
    machine = Machine(QUEUE)
    weights = [(n + 1) ** -zipf for n in range(90)]
    drawn = draw.choices(names, weights, k=5_000)
    machine.put("q", *[JobSpec(tenant=name) for name in drawn])
    first: dict[str, int] = {}
    for place, tenant in enumerate(tenants(machine.run(5_000)), 1):
        first.setdefault(tenant, place)
    assert sum(first.values()) / len(first) ** 2 < 1


def test_costs_are_what_a_start_is_charged() -> None:
    machine = Machine(QUEUE)
    machine.put("q", *specs(900, tenant="dear", cost=3), *specs(900, tenant="cheap"))
    counts = Counter(tenants(machine.run(400)))
    assert abs(counts["cheap"] - 300) <= 3


def test_fair_by_time_charges_the_mean_run_time_of_the_kind() -> None:
    machine = Machine(msgspec.structs.replace(QUEUE, fair_by=FairBy.TIME))
    machine.put("q", *specs(600, tenant="slow", kind="slow"))
    machine.put("q", *specs(600, tenant="fast", kind="fast"))
    busy_ms: Counter[str] = Counter()
    for _ in range(400):
        (job,) = machine.lease()
        run_ms = 400 if job.spec.kind == "slow" else 100
        machine.now_ms += run_ms
        machine.ask(Ack([job.token]))
        busy_ms[job.spec.tenant] += run_ms
    assert abs(busy_ms["slow"] / busy_ms["fast"] - 1) < 0.1


def test_due_queues_of_one_slo_share_by_weight_whatever_their_backlog() -> None:
    """Not by age, or the longest backlog would always win."""
    machine = Machine(
        msgspec.structs.replace(QUEUE, name="bulk"),
        msgspec.structs.replace(QUEUE, name="live", weight=3.0),
    )
    machine.put("bulk", *specs(3_000))
    machine.pass_ms(10 * MINUTE_MS)
    machine.put("live", *specs(800))
    machine.pass_ms(MINUTE_MS)
    counts = Counter(job.queue for job in machine.run(400))
    assert abs(counts["live"] - 300) <= 4
    changed = msgspec.structs.replace(QUEUE, name="bulk", weight=3.0)
    machine.ask(Configure(changed))
    counts = Counter(job.queue for job in machine.run(400))
    assert abs(counts["live"] - 200) <= 4


def test_a_queue_that_becomes_due_does_not_take_the_slo_over() -> None:
    """No credit for the time in which a queue had nothing due."""
    machine = Machine(
        msgspec.structs.replace(QUEUE, name="old"),
        msgspec.structs.replace(QUEUE, name="new"),
    )
    machine.put("old", *specs(500))
    machine.pass_ms(MINUTE_MS)
    machine.run(200)
    machine.put("new", *specs(100))
    machine.pass_ms(MINUTE_MS)
    counts = Counter(job.queue for job in machine.run(100))
    assert 48 <= counts["new"] <= 52


def test_released_and_lost_leases_are_not_charged() -> None:
    """Each tenant pays for its work once, however often it was handed out."""
    calm = msgspec.structs.replace(QUEUE, slo_ms=3_600_000, attempts_max=50)
    machine = Machine(msgspec.structs.replace(calm, lease_ms=1_000))
    machine.put("q", *specs(200, tenant="a"), *specs(200, tenant="b"))
    done: Counter[str] = Counter()
    hops: Counter[int] = Counter()
    while sum(done.values()) < 100:
        (job,) = machine.lease()
        if job.spec.tenant == "a" and hops[job.seq] < 3:
            hops[job.seq] += 1
            if hops[job.seq] == 2:
                machine.pass_ms(1_000)
            else:
                machine.ask(Release([job.token]))
            continue
        machine.ask(Ack([job.token]))
        done[job.spec.tenant] += 1
    assert abs(done["a"] - done["b"]) <= 1


def test_a_retry_is_charged_again() -> None:
    """It uses a worker once more."""
    machine = Machine(msgspec.structs.replace(QUEUE, attempts_max=50))
    machine.put("q", *specs(100, tenant="a"), *specs(100, tenant="b"))
    starts: Counter[str] = Counter()
    for _ in range(60):
        (job,) = machine.lease()
        starts[job.spec.tenant] += 1
        if job.spec.tenant == "a" and job.attempt < 3:
            machine.ask(Nack(job.token, retry_in_ms=0))
        else:
            machine.ask(Ack([job.token]))
    assert starts == {"a": 30, "b": 30}


def test_priorities_rank_only_within_a_tenant() -> None:
    """A tenant's own jobs by priority, then time; other tenants are not outranked."""
    machine = Machine(QUEUE)
    machine.put("q", *specs(10, tenant="modest", priority=900))
    machine.put("q", *specs(5, tenant="bold", priority=5))
    machine.put("q", *specs(5, tenant="bold", priority=-5))
    jobs = machine.run(20)
    assert Counter(tenants(jobs[:10])) == {"modest": 5, "bold": 5}
    bold = [job.priority for job in jobs if job.spec.tenant == "bold"]
    assert bold == [-5] * 5 + [5] * 5


def test_a_purged_flood_leaves_its_tenant_where_it_was() -> None:
    """Neither behind, for jobs that never ran, nor ahead of the others."""
    machine = Machine(QUEUE)
    machine.put("q", *specs(5_000, tenant="a"), *specs(300, tenant="b"))
    machine.run(100)
    machine.ask(Purge("q", "a"))
    machine.run(50)
    machine.put("q", *specs(200, tenant="a"))
    counts = Counter(tenants(machine.run(100)))
    assert 49 <= counts["a"] <= 51


def test_a_tenant_that_comes_late_gets_its_share_and_no_more() -> None:
    """Invariant 23: it starts at the base, not at zero."""
    machine = Machine(QUEUE)
    machine.put("q", *specs(2_000, tenant="a"))
    machine.run(1_000)
    machine.put("q", *specs(500, tenant="b"))
    counts = Counter(tenants(machine.run(100)))
    assert 49 <= counts["b"] <= 51


def test_a_floor_saves_a_sacrificed_queue_from_starving() -> None:
    """A share of all starts, whatever is due; no more than that."""
    low = msgspec.structs.replace(QUEUE, name="low", slo_ms=3_600_000, floor=0.1)
    machine = Machine(msgspec.structs.replace(QUEUE, slo_ms=100), low)
    machine.put("q", *specs(3_000))
    machine.put("low", *specs(500))
    machine.pass_ms(1_000)
    order = [job.queue for job in machine.run(1_000)]
    for start in range(0, 901, 50):
        assert 9 <= order[start : start + 100].count("low") <= 12


def test_a_floor_is_not_saved_up() -> None:
    """Starts that it had nothing for are not made up for later."""
    low = msgspec.structs.replace(QUEUE, name="low", slo_ms=3_600_000, floor=0.1)
    machine = Machine(msgspec.structs.replace(QUEUE, slo_ms=100), low)
    machine.put("q", *specs(3_000))
    machine.pass_ms(1_000)
    machine.run(1_000)
    machine.put("low", *specs(500))
    order = [job.queue for job in machine.run(200)]
    assert order.count("low") <= 22


@pytest.mark.parametrize(("share", "most"), [(0.5, 10), (0.25, 5), (0.01, 1)])
def test_a_queue_holds_its_share_of_the_slots_at_most(share: float, most: int) -> None:
    """Of 20 slots that are there, busy or waiting."""
    long = msgspec.structs.replace(QUEUE, slot_share=share)
    machine = Machine(long, msgspec.structs.replace(QUEUE, name="other"))
    for _ in range(20):
        machine.ask(Lease(wait_until_ms=machine.now_ms + MINUTE_MS))
    machine.put("q", *specs(50))
    assert machine.partition.book.queues["q"].leased == most
    machine.ask(Enqueue("other", specs(50)))
    assert machine.partition.book.queues["other"].leased == 20 - most


def test_of_tenants_that_had_as_much_whoever_was_let_go_first_goes_first() -> None:
    """Not the one who was known first."""
    each = Concurrency("each", 1, per="tenant")
    machine = Machine(QueueConfig(name="q", limits=(each,)))
    names = ["a", "b", "c", "d"]
    machine.put("q", *[JobSpec(tenant=name) for name in names * 2])
    jobs = {job.tenant: job for job in machine.lease(4)}
    # Each has a job more, which is parked when it is looked at.
    assert not machine.lease(4)
    for name in ("c", "a", "d", "b"):
        machine.ask(Ack([jobs[name].token]))
    assert tenants(machine.lease(4)) == ["c", "a", "d", "b"]
