"""What came out of order comes out in order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.odd import SHIFT, Entry, Odd
from headway.core.order import Order
from headway.core.shelf import Member

RANKS = st.integers(-40, 40) | st.integers(0, 1 << 58) | st.just(1 << SHIFT)
STEPS = st.lists(
    st.tuples(st.sampled_from(["push", "push", "drop", "drop unseen", "clear"]), RANKS),
    max_size=80,
)


@settings(max_examples=400, deadline=None)
@given(steps=STEPS)
def test_the_lowest_of_any_history_is_first(steps: list[tuple[str, int]]) -> None:
    odd = Odd()
    model: list[tuple[int, int]] = []
    for number, (verb, rank) in enumerate(steps):
        if verb == "push":
            odd.push(Entry(rank, Member(number)))
            model.append((rank, number))
        elif verb == "drop unseen" and model:
            odd.drop()
            model.remove(min(model))
        elif model:
            assert _key(odd.first()) == min(model)
            odd.drop()
            model.remove(min(model))
        assert odd.size == len(model)
        assert sorted(map(_key, odd.entries())) == sorted(model)
        if model and rank % 2:
            assert _key(odd.first()) == min(model)


@settings(max_examples=400, deadline=None)
@given(steps=STEPS)
def test_lines_are_one_order(steps: list[tuple[str, int]]) -> None:
    _check_order(steps)


@pytest.mark.interpreted
@settings(max_examples=400, deadline=None)
@given(steps=STEPS, short=st.integers(-1, 9))
def test_lines_that_are_long_and_odd_ones_are_one_order(
    steps: list[tuple[str, int]], short: int
) -> None:
    """Into a long line nothing is put but at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headway.core.order.SHORT", short)
        _check_order(steps)


def _check_order(steps: list[tuple[str, int]]) -> None:
    order = Order()
    model: list[tuple[int, int]] = []
    for number, (verb, rank) in enumerate(steps):
        if verb == "push":
            order.push(Entry(rank, Member(number)))
            model.append((rank, number))
        elif verb == "clear":
            order.clear()
            model.clear()
        elif model:
            first = order.first()
            assert first is not None
            assert _key(first) == min(model)
            order.drop()
            model.remove(min(model))
        assert sorted(map(_key, order.entries())) == sorted(model)
        assert {_key(line.first) for line in order.lines} <= set(model)
    assert order.size == len(model)


def _key(entry: Entry) -> tuple[int, int]:
    return entry.rank, entry.number
