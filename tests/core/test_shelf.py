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


VERBS = ["put", "off", "back", "over", "gone", "renumber", "time", "churn", "all off"]
STEPS = st.lists(
    st.tuples(st.sampled_from(VERBS), st.integers(0, 5), st.integers(0, 12)),
    max_size=80,
)


@settings(max_examples=600, deadline=None)
@given(steps=STEPS, count=st.integers(1, 6))
def test_members_that_come_and_go_stand_where_they_belong(
    steps: list[tuple[str, int, int]], count: int
) -> None:
    """Invariant 29: also by entries that were made before they left."""
    shelf: Shelf[Member] = Shelf(0)
    elsewhere: Shelf[Member] = Shelf(1)
    for number in (1_000, 1_001):
        elsewhere.put(Member(number), FRESH, 0, 1)
    members = [Member(number) for number in range(count)]
    ranks = [0] * count
    now_ms = 0
    for step, (verb, which, amount) in enumerate(steps):
        at = which % count
        member = members[at]
        if verb == "put":
            ranks[at] += amount % 3
        elif verb == "off":
            shelf.off(member)
        elif verb == "all off":
            for one in members:
                shelf.off(one)
        elif verb == "over":
            # It is back after it stood elsewhere, where it was not so far.
            shelf.off(member)
            elsewhere.put(member, FRESH, ranks[at] - amount % 2, now_ms + amount % 3)
            elsewhere.off(member)
        elif verb == "gone":
            shelf.off(member)
            elsewhere.put(member, FRESH, ranks[at], now_ms + 1 + amount)
        elif verb == "churn" and member.home is shelf:
            for turn in range(70):
                shelf.put(member, DUE, ranks[at] + turn % 3, NEVER)
                shelf.put(member, FRESH, ranks[at], now_ms + 1 + amount + turn % 2)
        elif verb == "renumber" and member.home is None:
            member.renumber(count + step)
        elif verb == "time":
            now_ms += amount
            shelf.settle(now_ms)
        if verb in ("put", "back", "over"):
            elsewhere.off(member)
            shelf.put(member, FRESH, ranks[at], now_ms + 1 + amount)
        seated = [one for one in members if one.home is shelf]
        assert all((one.seat == DUE) == (one.aim == NEVER) for one in seated)
        fresh = [one.aim for one in seated if one.seat == FRESH]
        assert shelf.next_aim() == min(fresh, default=NEVER)
        assert shelf.first() is first_of(seated)


def test_who_was_away_while_entries_were_dropped_is_entered_anew() -> None:
    shelf: Shelf[Member] = Shelf(0)
    low, busy, away = (Member(number) for number in range(3))
    for member in (low, busy, away):
        shelf.put(member, FRESH, member.number, 5 + member.number)
    shelf.off(away)
    for turn in range(70):
        shelf.put(busy, DUE, 1 + turn % 3, NEVER)
        shelf.put(busy, FRESH, 1, 6 + turn % 2)
    assert shelf.fresh.size < 70
    shelf.put(away, FRESH, 2, 7)
    shelf.off(low)
    shelf.off(busy)
    assert shelf.first() is away
    assert shelf.next_aim() == 7


def test_who_went_to_another_shelf_is_called_by_that_one_only() -> None:
    shelf: Shelf[Member] = Shelf(0)
    elsewhere: Shelf[Member] = Shelf(1)
    gone, stays, other = (Member(number) for number in range(3))
    shelf.put(gone, FRESH, 0, 5)
    shelf.put(stays, FRESH, 0, 9)
    elsewhere.put(other, FRESH, 0, 9)
    shelf.off(gone)
    elsewhere.put(gone, FRESH, 0, 5)
    assert shelf.next_aim() == 9
    assert elsewhere.next_aim() == 5
    shelf.settle(5)
    elsewhere.settle(5)
    assert (gone.seat, gone.home) == (DUE, elsewhere)
