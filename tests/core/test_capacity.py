"""How many slots are wanted: what arrives, what waits, and what limits forbid."""

from math import ceil, exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.capacity import (
    SLOTS_MAX,
    Figures,
    LaneFigures,
    QueueFigures,
    Scaler,
    Wanted,
    wanted,
)

START_MS = 20_000


def lane(queue: str = "q", slo_ms: int = 60_000, **fields: float) -> LaneFigures:
    """Runs take a second, spread as by the exponential law, if nothing else is said."""
    known = {"run_ms": 1_000.0, "run_sq_ms": 2_000_000.0, **fields}
    return LaneFigures(queue=queue, slo_ms=slo_ms, **known)  # type: ignore[arg-type]


def advice(
    *lanes: LaneFigures, slots: int = 0, queues: tuple[QueueFigures, ...] = ()
) -> Wanted:
    named = {queue.name for queue in queues}
    others = {one.queue for one in lanes} - named
    told = (*queues, *(QueueFigures(name=name) for name in sorted(others)))
    return wanted(Figures(lanes=lanes, queues=told, slots=slots), START_MS)


def waits_longer(load: float, slots: int, slo_s: float) -> float:
    """Erlang's C: the share that waits longer than the SLO for one of the slots."""
    blocked = 1.0
    for n in range(1, slots + 1):
        blocked = load * blocked / (n + load * blocked)
    queued = blocked / (1 - load / slots * (1 - blocked))
    return queued * exp(-(slots - load) * slo_s)


def test_nothing_is_wanted_where_nothing_happens() -> None:
    told = advice(lane())
    assert (told.slots, told.load) == (0, 0.0)
    assert "nothing" in told.reason


@pytest.mark.parametrize("load", [0.3, 1.0, 5.0, 40.0, 300.0])
@pytest.mark.parametrize("slo_ms", [10, 300, 1_000, 10_000, 300_000])
def test_what_is_wanted_keeps_a_promise_by_erlangs_formula(
    load: float, slo_ms: int
) -> None:
    told = advice(lane(slo_ms=slo_ms, per_s=load))
    assert waits_longer(load, told.slots, slo_ms / 1_000) < 0.02
    # Half of the reserve would be nearly too little already.
    fewer = told.slots - max(1, ceil((told.slots - load) / 2))
    assert fewer <= load or waits_longer(load, fewer, slo_ms / 1_000) > 0.002


def test_a_long_promise_needs_hardly_more_than_its_load() -> None:
    assert advice(lane(slo_ms=300_000, per_s=100.0)).slots == 101
    assert advice(lane(slo_ms=10, per_s=100.0)).slots >= 120


def test_a_short_promise_needs_no_reserve_where_others_can_wait() -> None:
    """Longer promises give way: their slots are the reserve of the shorter."""
    short = lane("short", 10, per_s=50.0)
    alone = advice(short).slots
    both = advice(short, lane("long", 300_000, per_s=50.0)).slots
    assert alone > 60
    assert both == 101


def test_irregular_runs_need_more_reserve() -> None:
    calm = advice(lane(slo_ms=2_000, per_s=9.0, run_sq_ms=1e6))
    wild = advice(lane(slo_ms=2_000, per_s=9.0, run_sq_ms=9e6))
    assert wild.slots > calm.slots


def test_a_backlog_is_cleared_before_it_is_due() -> None:
    told = advice(lane(slo_ms=300_000, ready=28_000, oldest_ms=0), slots=1)
    # 28,000 s of work, and 250 s from when new ones are there until its aim.
    assert told.slots == 112
    late = advice(lane(slo_ms=300_000, ready=28_000, oldest_ms=290_000), slots=1)
    assert late.slots > told.slots
    assert "28,000 jobs wait" in late.reason


def test_a_burst_is_due_at_once_and_not_bit_by_bit() -> None:
    even = lane(slo_ms=300_000, ready=6_000, oldest_ms=200_000, mean_ms=100_000)
    burst = lane(slo_ms=300_000, ready=6_000, oldest_ms=200_000, mean_ms=200_000)
    assert advice(burst).slots > 2 * advice(even).slots


def test_nobody_goes_while_jobs_are_due_before_others_could_come() -> None:
    waiting = lane(slo_ms=60_000, ready=300, oldest_ms=49_000, mean_ms=49_000)
    told = advice(waiting, slots=50)
    assert told.slots == 50
    assert "nobody goes" in told.reason


def test_slots_held_for_longer_than_a_promise_are_not_counted_on() -> None:
    short = lane("short", 5_000, per_s=10.0)
    long = lane("long", 3_600_000, run_ms=600_000.0, run_sq_ms=3.6e11, leased=40)
    alone = advice(short).slots
    assert advice(short, long).slots == alone + 40


def test_slots_that_are_there_count_for_the_time_until_others_come() -> None:
    waiting = lane(slo_ms=60_000, ready=10_000)
    assert advice(waiting, slots=400).slots < advice(waiting, slots=0).slots


def test_never_more_slots_than_jobs() -> None:
    long = lane(slo_ms=1_000, ready=3, oldest_ms=900, run_ms=6e5, run_sq_ms=3.6e11)
    assert advice(long).slots == 3


def test_a_limit_bounds_what_is_wanted_and_the_reason_names_it() -> None:
    line = QueueFigures(name="q", slots_max=4.0, limit="line", leased=4)
    told = advice(lane(per_s=50.0, ready=9_000, oldest_ms=50_000), queues=(line,))
    assert told.slots == 4
    assert told.slots_max == 4
    assert "limit 'line'" in told.reason
    free = lane("r", per_s=10.0)
    both = advice(lane(per_s=50.0), free, queues=(line,))
    assert both.slots_max is None
    assert 14 <= both.slots <= 15


def test_a_queue_that_is_held_wants_nothing() -> None:
    held = QueueFigures(name="q", is_held=True)
    told = advice(lane(per_s=50.0, ready=1_000), queues=(held,))
    assert told.slots == 0
    assert "'q' is held" in told.reason


def test_a_queue_with_a_share_of_the_slots_needs_so_many_more() -> None:
    long = lane("long", 600_000, per_s=0.1, run_ms=100_000.0, run_sq_ms=1e10)
    shared = QueueFigures(name="long", slot_share=0.25)
    told = advice(long, queues=(shared,))
    assert told.slots == 40
    assert "25%" in told.reason


def test_long_runs_in_the_way_of_a_short_promise_are_named() -> None:
    short = lane("short", 5_000, per_s=1.0)
    long = lane("long", 3_600_000, per_s=0.1, run_ms=600_000.0, run_sq_ms=3.6e11)
    assert "'long' run for 600 s" in advice(short, long).reason
    capped = (QueueFigures(name="long", slot_share=0.5),)
    assert "run for" not in advice(short, long, queues=capped).reason


figures = st.builds(
    lane,
    queue=st.sampled_from(["a", "b"]),
    slo_ms=st.sampled_from([1, 500, 30_000, 3_600_000]),
    per_s=st.floats(0, 1_000),
    ready=st.integers(0, 1_000_000),
    oldest_ms=st.integers(0, 10_000_000),
    run_ms=st.just(0.0) | st.floats(0.5, 1e6),
    run_sq_ms=st.floats(0, 1e13),
)


@given(
    lanes=st.lists(figures, max_size=4, unique_by=lambda x: (x.queue, x.slo_ms)),
    limit=st.floats(0, 100),
    slots=st.integers(0, 10_000),
    more=st.floats(0, 10),
)
def test_advice_is_within_its_bounds_whatever_the_figures(
    lanes: list[LaneFigures], limit: float, slots: int, more: float
) -> None:
    queues = (
        QueueFigures(name="a", slots_max=limit, limit="l"),
        QueueFigures(name="b", slots_max=limit + more, limit="m"),
    )
    told = advice(*lanes, slots=slots, queues=queues)
    assert 0 <= told.slots <= ceil(2 * limit + more)
    free = advice(*lanes, slots=slots)
    assert free.slots >= told.slots
    assert free.slots >= ceil(free.load - 1e-3)


@pytest.mark.parametrize("share", [5e-324, 1e-12])
def test_a_share_of_next_to_nothing_still_wants_a_number(share: float) -> None:
    queues = (QueueFigures(name="q", slot_share=share),)
    told = advice(lane(per_s=1_000.0, run_ms=1_000.0), queues=queues)
    assert told.slots == SLOTS_MAX


def test_a_fleet_grows_at_once_and_shrinks_when_less_was_wanted_for_a_while() -> None:
    scaler = Scaler(hold_ms=30_000, least=2)
    sizes = [
        scaler.follow(slots, at_ms * 1_000)
        for at_ms, slots in ((0, 5), (10, 9), (20, 7), (30, 3), (40, 3), (50, 0))
    ]
    assert sizes == [5, 9, 9, 9, 7, 3]
    assert scaler.follow(0, 200_000) == 2
