"""Time buckets: never early, never lost, in order, without leaks or busy loops."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import BadValue
from headway.core.timers import STALE_SLACK, TimeBuckets

WIDTH_MS = 16


class Model:
    """The naive truth: a dict in order of insertion."""

    def __init__(self) -> None:
        self.times: dict[int, int] = {}
        self.places: dict[int, int] = {}
        """What the keys were told, to be shown when they are taken back."""

    def pop_due(self, now_ms: int) -> list[int]:
        due = [key for key, at_ms in self.times.items() if at_ms <= now_ms]
        due.sort(key=lambda key: self.times[key])
        for key in due:
            del self.times[key]
        return due


KEYS = st.integers(0, 11)
OPS = st.lists(
    st.tuples(st.just("add"), KEYS, st.integers(-40, 120))
    | st.tuples(st.just("remove"), KEYS, st.just(0))
    | st.tuples(st.just("pop"), st.just(0), st.integers(-10, 60))
    | st.tuples(st.just("wake"), st.just(0), st.just(0)),
    max_size=120,
)


@settings(max_examples=400, deadline=None)
@given(ops=OPS, start_ms=st.sampled_from([0, 1_000, 1_700_000_000_000, -500]))
def test_any_history_matches_the_naive_model(
    ops: list[tuple[str, int, int]], start_ms: int
) -> None:
    timers: TimeBuckets[int] = TimeBuckets(WIDTH_MS)
    model, now_ms = Model(), start_ms
    for op, key, delta_ms in ops:
        if op == "add" and key not in model.times:
            model.times[key] = now_ms + delta_ms
            model.places[key] = timers.add(key, now_ms + delta_ms)
        elif op == "remove":
            at_ms = model.times.pop(key, None)
            place = model.places.get(key, 0)
            if at_ms is not None:
                assert timers.remove(key, at_ms, place)
            assert not timers.remove(key, now_ms if at_ms is None else at_ms, place)
        elif op == "pop":
            now_ms += delta_ms  # the clock may go back
            assert timers.pop_due(now_ms) == model.pop_due(now_ms)
        elif op == "wake":
            next_ms = timers.next_ms()
            if next_ms is not None:
                now_ms = max(now_ms, next_ms)
        assert len(timers) == len(model.times)
        next_ms = timers.next_ms()
        assert (next_ms is None) == (not model.times)
        assert next_ms is None or next_ms <= min(model.times.values())
    assert timers.pop_due(1 << 60) == model.pop_due(1 << 60)
    assert timers.next_ms() is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5_000), max_size=40))
def test_waking_at_next_ms_fires_or_moves_on_and_drains_everything(
    times: list[int],
) -> None:
    timers: TimeBuckets[int] = TimeBuckets(WIDTH_MS)
    for key, at_ms in enumerate(times):
        timers.add(key, at_ms)
    fired: list[int] = []
    wakes = 0
    while (next_ms := timers.next_ms()) is not None:
        due = timers.pop_due(next_ms)
        assert all(times[key] == next_ms for key in due)
        after_ms = timers.next_ms()
        assert due or (after_ms is not None and after_ms > next_ms)
        fired += due
        wakes += 1
    assert fired == sorted(range(len(times)), key=lambda key: times[key])
    assert wakes <= 2 * len(times)


def test_item_put_into_a_consumed_bucket_is_not_stuck() -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    assert timers.pop_due(10_100) == []
    timers.add("same bucket, later", 10_200)
    timers.add("same bucket, earlier", 10_000)
    timers.add("long ago", 3)
    assert timers.next_ms() == 3
    assert timers.pop_due(10_100) == ["long ago", "same bucket, earlier"]
    assert timers.pop_due(10_200) == ["same bucket, later"]


def test_nothing_fires_early_even_by_a_millisecond() -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    timers.add("a", 10_239)
    for now_ms in (9_728, 10_000, 10_238):
        assert timers.pop_due(now_ms) == []
    assert timers.pop_due(10_239) == ["a"]


@pytest.mark.parametrize("delay_ms", [0, -1, -5_000, -2_000_000])
def test_zero_or_negative_delay_fires_at_the_next_pop(delay_ms: int) -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    timers.pop_due(1_000_000)
    timers.add("a", 1_000_000 + delay_ms)
    next_ms = timers.next_ms()
    assert next_ms is not None
    assert next_ms <= 1_000_000
    assert timers.pop_due(1_000_000) == ["a"]
    assert timers.pop_due(2_000_000) == []


def test_equal_times_fire_in_order_of_insertion_far_and_near() -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    places = {key: timers.add(key, 1_000) for key in ("c", "a", "b")}
    timers.remove("c", 1_000, places["c"])
    timers.add("c", 1_000)
    timers.pop_due(600)
    timers.add("d", 1_000)
    timers.remove("a", 1_000, places["a"])
    timers.add("a", 1_000)
    assert timers.pop_due(1_000) == ["b", "c", "d", "a"]


@settings(max_examples=50, deadline=None)
@given(
    spread_ms=st.sampled_from([1, 40, 400]),
    left=st.sets(st.integers(0, 1_999), max_size=12),
    start_ms=st.sampled_from([0, 1_000]),
)
def test_what_is_left_of_a_large_bucket_fires_as_if_it_had_been_small(
    spread_ms: int, left: set[int], start_ms: int
) -> None:
    timers: TimeBuckets[int] = TimeBuckets(512)
    model = Model()
    timers.pop_due(start_ms)
    keys = list(range(2_000))
    for key in keys:
        model.times[key] = 1_024 + key * 7 % spread_ms
        model.places[key] = timers.add(key, model.times[key])
    for key in keys:
        if key in left:
            continue
        at_ms = model.times.pop(key)
        assert timers.remove(key, at_ms, model.places[key])
        assert not timers.remove(key, at_ms, model.places[key])
    late = [2_000, 2_001]
    for key in late:
        model.times[key] = 1_024 + spread_ms // 2
        model.places[key] = timers.add(key, model.times[key])
    assert timers.remove(late[0], model.times.pop(late[0]), model.places[late[0]])
    assert len(timers) == len(model.times)
    for now_ms in (1_024, 1_030, 1_100, 1_424):
        assert timers.pop_due(now_ms) == model.pop_due(now_ms)
    assert not len(timers)


def test_clock_that_went_back_fires_nothing_early() -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    timers.pop_due(100_000)
    timers.add("a", 99_000)
    assert timers.pop_due(98_999) == []
    assert timers.pop_due(99_000) == ["a"]


def test_key_may_be_added_again_with_another_time() -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    place = timers.add("a", 5_000)
    assert timers.remove("a", 5_000, place)
    place = timers.add("a", 9_000)
    assert timers.pop_due(5_000) == []
    assert timers.pop_due(9_000) == ["a"]
    assert not timers.remove("a", 9_000, place)


def test_near_timers_moved_for_ever_leave_no_heap_behind() -> None:
    timers: TimeBuckets[int] = TimeBuckets(512)
    timers.pop_due(1_000)
    places = [timers.add(key, 1_001) for key in range(10)]
    for _ in range(1_000):
        for key in range(10):
            assert timers.remove(key, 1_001, places[key])
            places[key] = timers.add(key, 1_001)
        assert len(timers._heap) <= 3 * 10 + STALE_SLACK + 1
    assert timers.pop_due(1_001) == list(range(10))


def test_far_timers_moved_for_ever_leave_no_buckets_behind() -> None:
    timers: TimeBuckets[int] = TimeBuckets(512)
    timers.add(0, 1 << 50)
    for turn in range(10_000):
        place = timers.add(1, turn * 1_000)
        assert timers.remove(1, turn * 1_000, place)
    assert len(timers._far) == 1
    assert len(timers._numbers) <= 3 + STALE_SLACK
    assert timers.next_ms() == 1 << 50


def test_next_ms_is_exact_once_the_bucket_is_reached() -> None:
    timers: TimeBuckets[str] = TimeBuckets(512)
    timers.add("a", 1_300)
    assert timers.next_ms() == 1_024
    assert timers.pop_due(1_024) == []
    assert timers.next_ms() == 1_300


def test_empty_timers_never_wake() -> None:
    timers: TimeBuckets[str] = TimeBuckets()
    assert timers.next_ms() is None
    assert timers.pop_due(1 << 60) == []
    assert len(timers) == 0
    assert not timers.remove("a", 5, 0)


@pytest.mark.parametrize("width_ms", [0, -512, 3, 500])
def test_width_must_be_a_power_of_two(width_ms: int) -> None:
    with pytest.raises(BadValue, match="width_ms"):
        TimeBuckets(width_ms)


@pytest.mark.parametrize("width_ms", [1, 2, 4_096])
def test_any_power_of_two_will_do(width_ms: int) -> None:
    timers: TimeBuckets[int] = TimeBuckets(width_ms)
    for at_ms in (7, 5, 6_000):
        timers.add(at_ms, at_ms)
    assert timers.pop_due(6) == [5]
    assert timers.pop_due(6_000) == [7, 6_000]


def test_what_has_fired_is_kept_by_nobody() -> None:
    """Buckets are remembered by their number, and must not be when they are over."""
    timers: TimeBuckets[object] = TimeBuckets(WIDTH_MS)
    key = object()
    before = sys.getrefcount(key)
    for at_ms in (5, 3 * WIDTH_MS, 100 * WIDTH_MS):
        timers.add(key, at_ms)
        assert timers.pop_due(at_ms) == [key]
        assert sys.getrefcount(key) == before


@pytest.mark.parametrize("is_sparse", [False, True])
def test_only_the_very_key_that_was_told_a_place_takes_it_back(
    *, is_sparse: bool
) -> None:
    timers: TimeBuckets[object] = TimeBuckets(WIDTH_MS)
    keys = [object() for _ in range(400)]
    at_ms = 9 * WIDTH_MS
    places = [timers.add(key, at_ms) for key in keys]
    if is_sparse:
        for number in range(399):
            if number != 200:
                assert timers.remove(keys[number], at_ms, places[number])
    for _ in range(2):
        assert not timers.remove(object(), at_ms, places[200])
    assert timers.remove(keys[200], at_ms, places[200])
    assert not timers.remove(keys[200], at_ms, places[200])
    assert timers.remove(keys[399], at_ms, places[399])
