"""A shelf always knows its first member, however often the others move."""

from random import Random

import pytest

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
    back.number = 40
    shelf.put(back, DUE, 7, NEVER)
    other = Member(41)
    for move in range(moves):
        shelf.put(other, DUE, 9 + move % 2, NEVER)
    for member in sorted(members, key=lambda one: one.number):
        assert shelf.first() is member
        shelf.off(member)
