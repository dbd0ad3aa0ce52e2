"""How wide a queue should be: bounded, steady, and never to and fro."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headway.core.widths import HIGH, HIGH_LOOKS, LOW_LOOKS, Trend, next_width

_widths = st.integers(1, 40)
_works = st.floats(0, 50)
"""Owners that could be kept busy all the time."""


def _looked(width: int, most: int, work: float, looks: int) -> list[int]:
    """The width after each of some looks, under the same work."""
    trend = Trend()
    found = []
    for _ in range(looks):
        width, trend = next_width(width, most, min(1.0, work / width), trend)
        found.append(width)
    return found


@given(_widths, _widths, st.lists(st.floats(0, 1), max_size=200))
def test_it_stays_within_its_bounds_and_moves_by_one(
    width: int, most: int, busy: list[float]
) -> None:
    trend = Trend()
    for one in busy:
        after, trend = next_width(width, most, one, trend)
        assert abs(after - width) <= 1
        assert after >= 1
        assert after <= max(width, most)
        width = after


@given(_widths, _widths, _works)
def test_under_the_same_work_it_goes_one_way_and_stops(
    width: int, most: int, work: float
) -> None:
    found = [width, *_looked(width, most, work, 41 * LOW_LOOKS)]
    # What is above the bound comes down to it first, whatever the work.
    inside = [one for one in found if one <= most] or found
    ways = {after - before for before, after in pairwise(inside)}
    assert not {1, -1} <= ways
    assert len(set(found[-LOW_LOOKS:])) == 1


@given(_widths, _works)
def test_in_the_end_owners_have_time_left_if_there_are_enough(
    width: int, work: float
) -> None:
    last = _looked(width, 200, work, 200 * HIGH_LOOKS + 41 * LOW_LOOKS)[-1]
    assert work / last < HIGH


@given(_widths, st.integers(1, HIGH_LOOKS - 1))
def test_a_short_peak_changes_nothing(width: int, looks: int) -> None:
    trend = Trend()
    for _ in range(looks):
        after, trend = next_width(width, 100, 1.0, trend)
        assert after == width
    _, trend = next_width(width, 100, 0.5, trend)
    assert trend == Trend()
