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
