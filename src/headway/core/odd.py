"""Entries that came out of order, by rank and number, the lowest first.

Where ranks are times or passes, what comes is mostly far behind what is first. So it is
only put where its rank is about, and in order when that comes first: in a heap of all,
each of them would be compared at a dozen places that no cache holds.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headway.core.shelf import Member

SHIFT: Final = 8
"""Ranks that differ in these bits alone are put in order at one go."""
NONE: Final = -(1 << 60)
"""Below all that ranks are about."""
LONG: Final = 4
"""A line that is longer than so many times those that are late stays as it is."""


class Entry:
    """A member's place in an order.

    Nothing of it changes while it is there. Once out, it may be entered anew: nothing is
    made for that, which is most of what it would cost.
    """

    __slots__ = ("member", "number", "rank")

    def __init__(self, rank: int, member: "Member") -> None:
        self.rank = rank
        self.number = member.number
        self.member = member

    def is_below(self, other: "Entry") -> bool:
        """Equal ones stand as they came."""
        if self.rank != other.rank:
            return self.rank < other.rank
        return self.number < other.number

    def __lt__(self, other: "Entry") -> bool:
        """The same, for heaps."""
        return self.is_below(other)


class Odd:
    """A line that is in order, some that came too late for it, and all others.

    What comes together goes together, mostly: what was let go by chance, say, and is
    served next. So those that are late are put in order at one go when it matters.
    """

    __slots__ = (
        "_about",
        "_far",
        "_heap",
        "_late",
        "_late_first",
        "_line",
        "_piles",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self._line: list[Entry] = []
        """In order: the first is last..."""
        self._about = NONE
        """...and this is what the ranks of the line are about, or of the last one..."""
        self._late: list[Entry] = []
        """...and here is what came later, and is not above that..."""
        self._late_first: Entry | None = None
        """...with the first of it, if there is one..."""
        self._heap: list[Entry] = []
        """...or, where the line was too long to be put in order with it, a heap."""
        self._far: dict[int, list[Entry]] = {}
        self._piles: list[int] = []
        """A heap of what the others' ranks are about."""

    def push(self, entry: Entry) -> None:
        self.size += 1
        about = entry.rank >> SHIFT
        if about <= self._about:
            if self._late_first is None or entry.is_below(self._late_first):
                self._late_first = entry
            self._late.append(entry)
            return
        pile = self._far.get(about)
        if pile is None:
            pile = self._far[about] = []
            heappush(self._piles, about)
        pile.append(entry)

    def first(self) -> Entry:
        """The lowest of all; there is one."""
        late = self._late_first
        if not self._line and not self._heap and late is None:
            self._next_line()
        stands = self._standing()
        if stands is None or (late is not None and late.is_below(stands)):
            assert late is not None
            return late
        return stands

    def drop(self) -> None:
        """Takes the first out, whether it was asked for or not."""
        if self.first() is self._late_first:
            self._take_in()
        self.size -= 1
        if self._is_heap_first():
            heappop(self._heap)
        else:
            self._line.pop()

    def entries(self) -> list[Entry]:
        found = list(self._heap)
        for pile in (self._line, self._late, *self._far.values()):
            found += pile
        return found

    def _standing(self) -> Entry | None:
        """The lowest of line and heap."""
        if self._is_heap_first():
            return self._heap[0]
        return self._line[-1] if self._line else None

    def _is_heap_first(self) -> bool:
        if not self._heap or not self._line:
            return bool(self._heap)
        return self._heap[0].is_below(self._line[-1])

    def _take_in(self) -> None:
        """One of those that came late is first: they are put in order."""
        late, self._late = self._late, []
        self._late_first = None
        if LONG * len(late) < len(self._line):
            for entry in late:
                heappush(self._heap, entry)
            return
        late += self._line
        self._line = lined_up(late)

    def _next_line(self) -> None:
        self._about = heappop(self._piles)
        self._line = lined_up(self._far.pop(self._about))


def lined_up(pile: list[Entry]) -> list[Entry]:
    """In order, the lowest last."""
    if not pile:
        return pile
    keys = _keys(pile)
    places: list[Any] = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
    return [pile[place] for place in places]


def _keys(pile: list[Entry]) -> list[int]:
    """One number for each entry, in the same order as their ranks and numbers.

    Most are small, and then many times faster to compare than tuples are.
    """
    low = pile[0].rank
    low_number = high_number = pile[0].number
    for entry in pile:
        rank, number = entry.rank, entry.number
        if rank < low:
            low = rank
        if number < low_number:
            low_number = number
        elif number > high_number:
            high_number = number
    width = (high_number - low_number).bit_length()
    return [((entry.rank - low) << width) + entry.number - low_number for entry in pile]
