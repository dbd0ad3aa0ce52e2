"""Streams of jobs: their rates, their order, and that a seed says it all."""

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headway.core.config import QueueConfig
from headway.sim.scenario import (
    Arrivals,
    Burst,
    Exact,
    Label,
    Load,
    ManyTenants,
    NamedTenants,
    OneTenant,
    Poisson,
    Replies,
    RotatingTenants,
    Scenario,
    Service,
    Sine,
    Spread,
    Steady,
    Trace,
    Workers,
)
from headway.sim.workload import FAILS_ALWAYS, NEVER, Arrival, arrivals, random_of

SECOND = Service(mean_ms=1_000)


def load(name: str = "a", shape: Arrivals | None = None, **fields: Any) -> Load:
    shape = shape or Steady(per_second=10)
    fields.setdefault("service", SECOND)
    return Load(name=name, queue="q", arrivals=shape, **fields)


def scenario(*loads: Load, duration_ms: int = 100_000) -> Scenario:
    return Scenario(
        name="test",
        duration_ms=duration_ms,
        workers=(Workers(slots=1),),
        queues=(QueueConfig(name="q"),),
        loads=loads,
    )


def drawn(*loads: Load, seed: int = 1, duration_ms: int = 100_000) -> list[Arrival]:
    return list(arrivals(scenario(*loads, duration_ms=duration_ms), seed))


def times(found: list[Arrival]) -> list[int]:
    epoch_ms = scenario(load()).epoch_ms
    return [arrival.at_ms - epoch_ms for arrival in found]


def test_steady_arrivals_do_not_drift() -> None:
    found = times(drawn(load(shape=Steady(per_second=7)), duration_ms=3_600_000))
    assert len(found) == 7 * 3_600
    assert found[7 * 1_800] == 1_800_000
    assert {after - before for before, after in pairwise(found)} == {142, 143}


@pytest.mark.parametrize(
    "shape",
    [Poisson(per_second=50), Sine(per_second=50, amplitude=0.8, period_ms=20_000)],
)
def test_random_arrivals_have_their_rate(shape: Arrivals) -> None:
    found = times(drawn(load(shape=shape)))
    assert len(found) == pytest.approx(5_000, rel=0.05)
    assert found == sorted(found)


def test_sine_swings_by_its_amplitude() -> None:
    shape = Sine(per_second=100, amplitude=0.5, period_ms=100_000)
    found = times(drawn(load(shape=shape)))
    high = sum(1 for at_ms in found if at_ms < 50_000)
    assert high / len(found) == pytest.approx(0.5 + 0.5 / 3.1416, abs=0.02)


def test_bursts_come_again_until_the_end() -> None:
    shape = Burst(count=3, at_ms=10_000, every_ms=40_000)
    found = times(drawn(load(shape=shape)))
    assert Counter(found) == {10_000: 3, 50_000: 3, 90_000: 3}
    assert len(drawn(load(shape=Burst(count=5)))) == 5


def test_a_trace_gives_each_step_its_jobs() -> None:
    shape = Trace(jobs=(5, 0, 40), step_ms=1_000)
    found = times(drawn(load(shape=shape, from_ms=2_000)))
    assert Counter(at_ms // 1_000 for at_ms in found) == {2: 5, 4: 40}
    assert found == sorted(found)


def test_a_stream_keeps_within_its_bounds() -> None:
    for shape in (Steady(per_second=10), Poisson(per_second=10)):
        found = times(drawn(load(shape=shape, from_ms=20_000, until_ms=30_000)))
        assert found
        assert found[0] >= 20_000
        assert found[-1] < 30_000


def test_exact_times_keep_their_priorities() -> None:
    shape = Exact(at_ms=(0, 5, 5), priorities=(3, 1, 2))
    found = drawn(load(shape=shape, tenants=NamedTenants(names=("x", "y"))))
    assert times(found) == [0, 5, 5]
    assert [arrival.spec.priority for arrival in found] == [3, 1, 2]
    assert [arrival.spec.tenant for arrival in found] == ["x", "y", "x"]


def test_arrivals_are_in_order_and_ties_follow_the_loads() -> None:
    found = drawn(load("a"), load("b"), load("c", Poisson(per_second=20)))
    keys = [(arrival.at_ms, arrival.load) for arrival in found]
    assert keys == sorted(keys)


def test_another_load_does_not_change_the_draws_of_the_first() -> None:
    busy: dict[str, Any] = {
        "shape": Poisson(per_second=20),
        "service": Service(kind=Spread.EXPONENTIAL, mean_ms=500),
        "tenants": ManyTenants(count=50, zipf=1.0),
    }
    alone = drawn(load("a", **busy))
    beside = drawn(load("b", **busy), load("a", **busy))
    mine = [arrival for arrival in beside if arrival.load == 1]
    assert facts(alone) == facts(mine)
    assert facts(alone) != facts([arrival for arrival in beside if arrival.load == 0])


def test_seeds_differ_and_repeat() -> None:
    busy = load("a", Poisson(per_second=20))
    assert facts(drawn(busy, seed=1)) == facts(drawn(busy, seed=1))
    assert facts(drawn(busy, seed=1)) != facts(drawn(busy, seed=2))


def facts(found: list[Arrival]) -> list[tuple[Any, ...]]:
    return [(arrival.at_ms, arrival.run_ms, arrival.spec.tenant) for arrival in found]


def test_draws_are_the_same_under_every_hash_seed() -> None:
    code = (
        "import hashlib, sys; from pathlib import Path;"
        "from headway.sim.scenario_file import load_scenario;"
        "from headway.sim.workload import arrivals;"
        "digest = hashlib.sha256();"
        "[digest.update(repr(a).encode())"
        " for a in arrivals(load_scenario(Path(sys.argv[1])))];"
        "print(digest.hexdigest())"
    )
    file = Path(__file__).parents[2] / "examples" / "scenarios" / "replies.toml"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, str(file)],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4242")
    }
    assert len(digests) == 1


def test_the_source_of_a_name_never_changes() -> None:
    assert random_of(1, "payment").getrandbits(32) == 1_365_927_087


def test_equal_jobs_share_one_spec() -> None:
    region = Label(name="region", values=("east", "west"), weights=(0.5, 0.5))
    busy = load(
        shape=Steady(per_second=100),
        tenants=ManyTenants(count=5),
        slos_ms=(5_000, 30_000),
        labels=(region,),
    )
    specs = [arrival.spec for arrival in drawn(busy)]
    assert len({id(spec) for spec in specs}) == 5 * 2 * 2
    assert specs[0].slo_ms == 5_000
    assert specs[1].slo_ms == 30_000


def test_delayed_jobs_have_their_own_time() -> None:
    found = drawn(load(delay_ms=5_000))
    assert all(arrival.spec.run_at_ms == arrival.at_ms + 5_000 for arrival in found)


def test_labels_follow_their_weights() -> None:
    region = Label(name="region", values=("east", "west"), weights=(0.2, 0.8))
    found = drawn(load(shape=Steady(per_second=100), labels=(region,)))
    regions = Counter((arrival.spec.labels or {})["region"] for arrival in found)
    assert regions["east"] / len(found) == pytest.approx(0.2, abs=0.02)


def test_zipf_tenants_fall_off_and_weights_are_dealt_out() -> None:
    many = ManyTenants(count=100, zipf=1.0, weights=(4.0, 2.0, 1.0))
    found = drawn(load(shape=Steady(per_second=200), tenants=many))
    jobs = Counter(arrival.spec.tenant for arrival in found)
    weights = {arrival.spec.tenant: arrival.spec.weight for arrival in found}
    assert jobs["t0"] / jobs["t9"] == pytest.approx(10, rel=0.25)
    assert [weights[f"t{n}"] for n in range(4)] == [4.0, 2.0, 1.0, 4.0]


def test_rotating_names_are_fresh_after_a_while() -> None:
    names = RotatingTenants(count=10, every_ms=50_000, prefix="n")
    found = drawn(load(tenants=names))
    early = {arrival.spec.tenant for arrival in found[:500]}
    late = {arrival.spec.tenant for arrival in found[500:]}
    assert len(early) == len(late) == 10
    assert not early & late


def test_one_tenant_carries_the_weight_of_its_load() -> None:
    found = drawn(load(tenants=OneTenant(name="gold"), weight=4.0))
    assert {(a.spec.tenant, a.spec.weight) for a in found} == {("gold", 4.0)}


@pytest.mark.parametrize("kind", list(Spread))
def test_service_times_have_their_mean(kind: Spread) -> None:
    service = Service(kind=kind, mean_ms=2_000, spread=0.5, sigma=0.5)
    found = drawn(load(shape=Steady(per_second=200), service=service))
    runs = [arrival.run_ms for arrival in found]
    assert sum(runs) / len(runs) == pytest.approx(2_000, rel=0.04)
    assert min(runs) >= 1


def test_uniform_service_stays_within_its_spread() -> None:
    service = Service(kind=Spread.UNIFORM, mean_ms=1_000, spread=0.5)
    runs = [arrival.run_ms for arrival in drawn(load(service=service))]
    assert min(runs) >= 500
    assert max(runs) <= 1_500


def test_wild_service_times_are_capped() -> None:
    service = Service(kind=Spread.LOGNORMAL, mean_ms=10**11, sigma=10.0)
    runs = [arrival.run_ms for arrival in drawn(load(service=service))]
    assert 1 <= min(runs) <= max(runs) <= 3_660 * 86_400_000


def test_failing_attempts_are_a_share_of_all() -> None:
    found = drawn(load(shape=Steady(per_second=200), fail=0.25, hang=0.1))
    fails = sum(arrival.fails for arrival in found)
    hangs = sum(arrival.hangs for arrival in found)
    assert fails / (fails + len(found)) == pytest.approx(0.25, abs=0.02)
    assert hangs / len(found) == pytest.approx(0.1, abs=0.02)
    assert {arrival.fails for arrival in drawn(load(fail=1.0))} == {FAILS_ALWAYS}


def test_replies_come_late_early_or_never() -> None:
    replies = Replies(
        share=0.5, after=Service(mean_ms=700), timeout_ms=9_000, never=0.2, early=0.5
    )
    found = drawn(load(shape=Steady(per_second=200), replies=replies))
    asked = [arrival for arrival in found if arrival.reply_after_ms is not None]
    never = [arrival for arrival in asked if arrival.reply_after_ms == NEVER]
    early = [arrival for arrival in asked if arrival.is_reply_early]
    assert len(asked) / len(found) == pytest.approx(0.5, abs=0.02)
    assert len(never) / len(asked) == pytest.approx(0.2, abs=0.02)
    assert len(early) / len(asked) == pytest.approx(0.4, abs=0.03)
    assert not any(arrival.is_reply_early for arrival in never)
    assert {arrival.reply_timeout_ms for arrival in asked} == {9_000}
