"""A shelf always knows its first member, however often the others move."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.shelf import DUE, FRESH, NEVER, Member, Shelf


def first_of(members: list[Member]) -> Member | None:
    """By looking at everyone: those due before the fresh, the lowest rank first."""
    seated = [member for member in members if member.home is not None]
    return min(seated, key=lambda m: (-m.seat, m.rank, m.number), default=None)


@pytest.mark.parametrize("seed", range(50))
def test_nobody_is_lost_when_stale_entries_are_dropped(seed: int) -> None:
    """Invariant 29: a tenant whose place was lost would never start again."""
    random = Random(seed)
    shelf: Shelf[Member] = Shelf(0)
    members = [Member(number) for number in range(6)]
    # Nobody asks for the first meanwhile, so stale entries pile up.
    for _ in range(random.randrange(130, 400)):
        seat = random.choice((FRESH, DUE))
        shelf.put(random.choice(members), seat, random.randrange(50), NEVER)
    while (first := first_of(members)) is not None:
        assert shelf.first() is first
        shelf.off(first)
    assert shelf.first() is None


@pytest.mark.parametrize("moves", [0, 500])
def test_one_that_has_another_number_has_lost_its_old_place(moves: int) -> None:
    """Though its old entry stands there still, of the same rank, or was put in order."""
    shelf: Shelf[Member] = Shelf(0)
    members = [Member(number) for number in range(40)]
    Random(1).shuffle(members)
    for member in members:
        shelf.put(member, DUE, 7, NEVER)
    back = members[0]
    shelf.off(back)
    back.renumber(40)
    shelf.put(back, DUE, 7, NEVER)
    other = Member(41)
    for move in range(moves):
        shelf.put(other, DUE, 9 + move % 2, NEVER)
    for member in sorted(members, key=lambda one: one.number):
        assert shelf.first() is member
        shelf.off(member)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "put", "put", "off", "off", "back", "renumber", "time"]
        ),
        st.integers(0, 5),
        st.integers(0, 12),
    ),
    max_size=120,
)


@settings(max_examples=400, deadline=None)
@given(steps=STEPS, count=st.integers(1, 6))
def test_members_that_come_and_go_stand_where_they_belong(
    steps: list[tuple[str, int, int]], count: int
) -> None:
    """Invariant 29: also by entries that were made before they left."""
    shelf: Shelf[Member] = Shelf(0)
    elsewhere: Shelf[Member] = Shelf(1)
    members = [Member(number) for number in range(count)]
    ranks = [0] * count
    now_ms = 0
    for step, (verb, which, amount) in enumerate(steps):
        member = members[which % count]
        at = which % count
        if verb == "put":
            ranks[at] += amount % 3
            shelf.put(member, FRESH, ranks[at], now_ms + 1 + amount)
        elif verb == "off":
            shelf.off(member)
        elif verb == "back":
            # As it was, or over another shelf.
            shelf.off(member)
            if amount % 2:
                elsewhere.put(member, DUE, amount, NEVER)
                elsewhere.off(member)
            shelf.put(member, FRESH, ranks[at], now_ms + 1 + amount)
        elif verb == "renumber" and member.home is None:
            member.renumber(count + step)
        elif verb == "time":
            now_ms += amount
            shelf.settle(now_ms)
        seated = [one for one in members if one.home is shelf]
        assert [one for one in seated if one.aim <= now_ms] == []
        assert all((one.seat == DUE) == (one.aim == NEVER) for one in seated)
        fresh = [one.aim for one in seated if one.seat == FRESH]
        assert shelf.next_aim() == min(fresh, default=NEVER)
        assert shelf.first() is first_of(seated)
