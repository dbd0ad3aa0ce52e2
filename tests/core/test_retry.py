"""Retry strategies: what each decides, and that nothing makes them overflow."""

import math
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.retry import (
    DELAYS_MAX,
    Delays,
    Exponential,
    Fixed,
    GiveUp,
    Retry,
    RetryAfter,
    Stop,
    WithPayload,
    decide,
    draw,
)

DRAWS = st.floats(0.0, 1.0, exclude_max=True)
ALMOST_ONE = math.nextafter(1.0, 0.0)


@pytest.mark.parametrize("attempt", [1, 2, 1_000_000])
def test_fixed_waits_the_same_after_every_attempt(attempt: int) -> None:
    assert decide(Fixed(700), attempt, 0.9) == RetryAfter(700, None)


def test_exponential_doubles_from_its_first_delay_up_to_its_maximum() -> None:
    retry = Exponential(first_ms=100, max_ms=1_000)
    delays = [decide(retry, attempt, 0.0) for attempt in range(1, 7)]
    assert delays == [RetryAfter(ms) for ms in (100, 200, 400, 800, 1_000, 1_000)]


def test_exponential_maximum_caps_the_first_delay_too() -> None:
    retry = Exponential(first_ms=5_000, max_ms=1_000)
    assert decide(retry, 1, 0.0) == RetryAfter(1_000)


@pytest.mark.parametrize("factor", [1.0, 1.001, 2.0, 1_000.0])
@pytest.mark.parametrize("attempt", [1, 1_000, 1_000_000])
def test_exponential_never_overflows(factor: float, attempt: int) -> None:
    outcome = decide(Exponential(factor=factor), attempt, 0.5)
    assert isinstance(outcome, RetryAfter)
    assert 0 < outcome.delay_ms <= defaults.BACKOFF_MAX_MS


def test_exponential_from_zero_stays_at_zero_for_ever() -> None:
    assert decide(Exponential(first_ms=0), 1_000_000, 0.5) == RetryAfter(0)


@given(
    full_ms=st.integers(1, defaults.DURATION_MAX_MS),
    eighths=st.integers(1, 8),
    draw=DRAWS | st.just(ALMOST_ONE),
)
def test_jitter_takes_off_less_than_its_share(
    full_ms: int, eighths: int, draw: float
) -> None:
    retry = Exponential(first_ms=full_ms, max_ms=full_ms, jitter=eighths / 8)
    outcome = decide(retry, 1, draw)
    assert isinstance(outcome, RetryAfter)
    assert (1 - Fraction(eighths, 8)) * full_ms < outcome.delay_ms <= full_ms


def test_jitter_uses_the_whole_of_its_share() -> None:
    retry = Exponential(first_ms=1_000, max_ms=1_000, jitter=0.5)
    outcomes = [decide(retry, 1, draw) for draw in (0.0, 0.5, ALMOST_ONE)]
    assert outcomes == [RetryAfter(1_000), RetryAfter(750), RetryAfter(501)]


def test_delays_are_used_in_turn_and_then_it_gives_up() -> None:
    retry = Delays((5, 0, 70))
    outcomes = [decide(retry, attempt, 0.5) for attempt in (1, 2, 3, 4, 1_000_000)]
    assert outcomes == [RetryAfter(5), RetryAfter(0), RetryAfter(70), Stop(), Stop()]


def test_give_up_stops_after_the_first_attempt() -> None:
    assert decide(GiveUp(), 1, 0.0) == Stop()


def test_with_payload_changes_the_payload_and_keeps_the_delay() -> None:
    retry = WithPayload(b"plan b", Fixed(30))
    assert decide(retry, 1, 0.0) == RetryAfter(30, b"plan b")


def test_with_payload_stops_when_its_delays_end() -> None:
    assert decide(WithPayload(b"plan b", Delays((30,))), 2, 0.0) == Stop()


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("first_ms", {"first_ms": -1}),
        ("first_ms", {"first_ms": math.nan}),
        ("max_ms", {"max_ms": defaults.DURATION_MAX_MS + 1}),
        ("factor", {"factor": 0.999}),
        ("factor", {"factor": math.nan}),
        ("factor", {"factor": math.inf}),
        ("jitter", {"jitter": -0.001}),
        ("jitter", {"jitter": 1.001}),
        ("jitter", {"jitter": math.nan}),
    ],
)
def test_exponential_refuses_nonsense(key: str, values: dict[str, float]) -> None:
    with pytest.raises(BadValue) as caught:
        msgspec.structs.replace(Exponential(), **values)
    assert caught.value.key == key


@pytest.mark.parametrize("delay_ms", [-1, defaults.DURATION_MAX_MS + 1])
def test_fixed_and_delays_refuse_delays_out_of_range(delay_ms: int) -> None:
    with pytest.raises(BadValue, match="delay_ms"):
        Fixed(delay_ms)
    with pytest.raises(BadValue, match="delays_ms"):
        Delays((1, delay_ms))


def test_delays_refuse_an_endless_list() -> None:
    with pytest.raises(BadValue, match="delays_ms"):
        Delays((1,) * (DELAYS_MAX + 1))


def test_draw_is_the_same_for_the_same_attempt_in_every_process() -> None:
    assert draw(1, 1) == draw(1, 1)
    # Written down once: a change would move the retries of jobs already stored.
    assert [int(draw(seq, 1) * 1e6) for seq in range(3)] == [166396, 526717, 876675]


def test_draws_of_neighbours_are_spread_evenly() -> None:
    cells = [0] * 16
    for seq in range(400):
        for attempt in range(1, 41):
            cells[int(draw(seq, attempt) * 16)] += 1
    assert all(900 < count < 1_100 for count in cells)


def test_draws_of_one_jobs_attempts_differ_from_its_neighbours() -> None:
    drawn = {draw(seq, attempt) for seq in range(100) for attempt in range(1, 101)}
    assert len(drawn) == 10_000


@given(seq=st.integers(0, 1 << 80), attempt=st.integers(1, 1 << 40))
def test_draw_is_from_zero_to_below_one(seq: int, attempt: int) -> None:
    assert 0.0 <= draw(seq, attempt) < 1.0


@pytest.mark.parametrize(
    "retry",
    [
        Fixed(5),
        Exponential(),
        Delays((1, 2)),
        GiveUp(),
        WithPayload(b"\x00", Exponential(jitter=0.0)),
    ],
)
def test_every_strategy_survives_the_wire(retry: Retry) -> None:
    wire = msgspec.json.encode(retry)
    assert msgspec.json.decode(wire, type=Retry) == retry
