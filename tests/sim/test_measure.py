"""Figures of a run, against a plain way to find them."""

from math import ceil
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.config import QueueConfig
from headway.sim.measure import Ending, Measure
from headway.sim.result import LimitUse, Outcomes, Result
from headway.sim.scenario import Load, Scenario, Service, Steady, Workers
from headway.sim.summary import BINS_MAX, TENANTS_SHOWN, percentile


def scenario(**fields: Any) -> Scenario:
    loads = tuple(
        Load(
            name=name,
            queue=name,
            arrivals=Steady(per_second=1),
            service=Service(mean_ms=1_000),
        )
        for name in ("mail", "calls")
    )
    given: dict[str, Any] = {
        "name": "test",
        "duration_ms": 10_000,
        "sample_ms": 1_000,
        "workers": (Workers(slots=4), Workers(slots=2, at_ms=2_500, until_ms=5_000)),
        "queues": (QueueConfig(name="mail"), QueueConfig(name="calls")),
        "loads": loads,
    }
    return Scenario(**(given | fields))


def ended(measure: Measure, at_ms: int = 10_000, **fields: Any) -> Result:
    epoch_ms = scenario().epoch_ms
    given: dict[str, Any] = {
        "policy": "headway",
        "seed": 1,
        "digest": "d",
        "ended_ms": epoch_ms + at_ms,
        "simulated_jobs": 3,
        "simulated_jobs_per_second": 1_234.567,
        "limits": {"partner": LimitUse(3, 5)},
        "outcomes": Outcomes(done=3),
    }
    return measure.result(Ending(**(given | fields)))


def start(
    measure: Measure, at_ms: int, wait_ms: int, tenant: str = "", slo_ms: int = 5_000
) -> None:
    key = ("mail", slo_ms, tenant, 0)
    measure.started(key, scenario().epoch_ms + at_ms, wait_ms)


@given(
    st.lists(st.integers(0, 10**9), min_size=1), st.sampled_from([0, 1, 50, 99, 100])
)
def test_percentiles_are_exact(values: list[int], percent: int) -> None:
    found = percentile(sorted(values), percent)
    rank = max(1, ceil(percent * len(values) / 100))
    assert found == sorted(values)[rank - 1]
    assert sum(value <= found for value in values) >= percent * len(values) / 100


STARTS = st.lists(
    st.tuples(
        st.sampled_from(["mail", "calls"]),
        st.sampled_from([1_000, 5_000]),
        st.sampled_from(["", "a", "b"]),
        st.integers(0, 10_000),
        st.booleans(),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STARTS)
def test_figures_are_those_of_a_plain_count(starts: list[Any]) -> None:
    measure = Measure(scenario())
    for place, (queue, slo_ms, tenant, wait_ms, is_started) in enumerate(starts):
        key = (queue, slo_ms, tenant, 0 if queue == "mail" else 1)
        if is_started:
            measure.started(key, scenario().epoch_ms + place, wait_ms)
        else:
            measure.never_started(key, wait_ms)
    result = ended(measure)
    assert result.attained == pytest.approx(plain_share(starts), abs=1e-6)
    assert sum(lane.jobs for lane in result.lanes.values()) == len(starts)
    for lane in result.lanes.values():
        own = [s for s in starts if (s[0], s[1]) == (lane.queue, lane.slo_ms)]
        assert lane.attained == pytest.approx(plain_share(own), abs=1e-6)
        assert lane.unstarted == sum(not s[4] for s in own)
        assert sum(lane.series.starts) == sum(s[4] for s in own)
        judged = [s[3] for s in own if s[4] or s[3] > s[1]]
        assert lane.wait_ms.max == max(judged, default=0)
        assert lane.wait_ms.p50 == percentile(sorted(judged), 50)
    for tenant, group in result.tenants.items():
        own = [s for s in starts if s[2] == tenant]
        assert group.jobs == len(own)
        assert group.attained == pytest.approx(plain_share(own), abs=1e-6)


def plain_share(starts: list[Any]) -> float:
    judged = [s for s in starts if s[4] or s[3] > s[1]]
    kept = [s for s in judged if s[4] and s[3] <= s[1]]
    return len(kept) / len(judged) if judged else 1.0


def test_a_wait_of_exactly_the_slo_is_kept() -> None:
    measure = Measure(scenario())
    start(measure, 0, 5_000)
    start(measure, 0, 5_001)
    assert ended(measure).lanes["mail"].attained == 0.5


def test_jobs_left_within_their_promise_are_not_judged() -> None:
    measure = Measure(scenario())
    start(measure, 0, 10)
    measure.never_started(("mail", 5_000, "", 0), 4_000)
    lane = ended(measure).lanes["mail"]
    assert (lane.jobs, lane.unstarted, lane.attained) == (2, 1, 1.0)
    assert lane.wait_ms.max == 10


def test_lanes_are_named_by_queue_and_slo_where_there_are_several() -> None:
    measure = Measure(scenario())
    start(measure, 0, 1, slo_ms=30_000)
    start(measure, 0, 1, slo_ms=5_000)
    measure.started(("calls", 60_000, "", 1), scenario().epoch_ms, 1)
    assert list(ended(measure).lanes) == ["mail/5s", "mail/30s", "calls"]


def test_a_queue_that_is_called_like_a_lane_keeps_its_own() -> None:
    measure = Measure(scenario())
    for key in (("mail", 5_000), ("mail", 30_000), ("mail/30s", 30_000)):
        measure.started((*key, "", 0), scenario().epoch_ms, 1)
    lanes = ended(measure).lanes
    assert len(lanes) == 3
    assert {lane.queue for lane in lanes.values()} == {"mail", "mail/30s"}


def test_series_follow_the_time_of_the_starts() -> None:
    measure = Measure(scenario())
    start(measure, 500, 100)
    start(measure, 600, 300)
    start(measure, 2_000, 7)
    series = ended(measure, 3_000).lanes["mail"].series
    assert series.starts == [2, 0, 1, 0]
    assert series.mean_ms == [200, None, 7, None]
    assert series.max_ms == series.p99_ms == [300, None, 7, None]


def test_load_and_slots_are_given_by_bin() -> None:
    measure = Measure(scenario())
    epoch_ms = scenario().epoch_ms
    measure.arrived(epoch_ms + 100, 2_000)
    measure.arrived(epoch_ms + 3_900, 500)
    load = ended(measure, 5_500).load
    assert load.arrivals == [1, 0, 0, 1, 0, 0]
    assert load.work_slots == [2.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    assert load.slots == [4.0, 4.0, 5.0, 6.0, 6.0, 4.0]


def test_a_long_run_has_wider_bins() -> None:
    measure = Measure(scenario())
    start(measure, 9_000_000, 5)
    measure.arrived(scenario().epoch_ms + 9_999, 1_000)
    result = ended(measure, 9_000_000)
    assert result.bin_ms % 1_000 == 0
    assert len(result.load.slots) <= BINS_MAX
    assert sum(result.load.arrivals) == 1
    assert result.lanes["mail"].series.starts[-1] == 1


def test_shares_are_of_starts_and_of_busy_time() -> None:
    measure = Measure(scenario())
    for _ in range(3):
        start(measure, 0, 0, "small")
        measure.ran(("mail", 5_000, "small", 0), 100)
    start(measure, 0, 0, "large")
    measure.ran(("mail", 5_000, "large", 0), 900)
    result = ended(measure)
    assert (result.tenants["small"].share, result.tenants["large"].share) == (
        0.75,
        0.25,
    )
    assert (result.tenants["small"].run_share, result.loads["mail"].run_share) == (
        0.25,
        1.0,
    )
    assert result.loads["calls"].jobs == 0


def test_small_tenants_are_folded_into_one_row() -> None:
    measure = Measure(scenario())
    for n in range(TENANTS_SHOWN + 5):
        start(measure, 0, n, f"t{n:05}")
    start(measure, 0, 0, "t01004")
    result = ended(measure)
    assert len(result.tenants) == TENANTS_SHOWN
    assert next(iter(result.tenants)) == "t01004"
    assert result.tenants_count == TENANTS_SHOWN + 5
    assert result.tenants_folded is not None
    assert result.tenants_folded.jobs == 5


def test_unfairness_is_the_sum_of_first_places_by_tenants_squared() -> None:
    measure = Measure(scenario())
    for tenant in ("a", "a", "b", "a", "c"):
        start(measure, 0, 0, tenant)
    assert ended(measure).lanes["mail"].unfairness == round((1 + 3 + 5) / 9, 6)


def test_json_holds_what_readers_rely_on() -> None:
    measure = Measure(scenario())
    start(measure, 0, 10, "a")
    found = msgspec.json.decode(msgspec.json.encode(ended(measure)))
    assert {"scenario", "policy", "seed", "digest", "simulated_jobs_per_second"} <= set(
        found
    )
    assert found["lanes"]["mail"]["wait_ms"] == {"p50": 10, "p99": 10, "max": 10}
    assert found["lanes"]["mail"]["slo_ms"] == 5_000
    assert {"jobs", "share", "attained", "wait_ms"} <= set(found["tenants"]["a"])
    assert found["limits"]["partner"] == {"max_used": 3, "capacity": 5}
    assert found["outcomes"]["done"] == 3


def test_a_run_without_a_start_has_figures_too() -> None:
    result = ended(Measure(scenario()), 0)
    assert result.attained == 1.0
    assert result.lanes == {}
    assert result.tenants_folded is None
