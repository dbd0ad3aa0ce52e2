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

Entry = tuple[int, int, "Member"]


class Pile:
    """Entries in no order. Three lists: the collector would walk tuples."""

    __slots__ = ("members", "numbers", "ranks")

    def __init__(self) -> None:
        self.ranks: list[int] = []
        self.numbers: list[int] = []
        self.members: list[Member] = []

    def add(self, rank: int, number: int, member: "Member") -> None:
        self.ranks.append(rank)
        self.numbers.append(number)
        self.members.append(member)

    def entries(self) -> list[Entry]:
        return list(zip(self.ranks, self.numbers, self.members, strict=True))


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
        "_late_number",
        "_late_rank",
        "_line",
        "_piles",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self._line = Pile()
        """In order: the first is last..."""
        self._about = NONE
        """...and this is what the ranks of the line are about, or of the last one..."""
        self._late = Pile()
        """...and here is what came later, and is not above that..."""
        self._late_first: Member | None = None
        self._late_rank = self._late_number = 0
        """...with the first of it, if there is one..."""
        self._heap: list[Any] = []
        """...or, where the line was too long to be put in order with it, a heap."""
        self._far: dict[int, Pile] = {}
        self._piles: list[int] = []
        """A heap of what the others' ranks are about."""

    def push(self, rank: int, number: int, member: "Member") -> None:
        self.size += 1
        about = rank >> SHIFT
        if about > self._about:
            pile = self._far.get(about)
            if pile is None:
                pile = self._far[about] = Pile()
                heappush(self._piles, about)
        else:
            pile = self._late
            if (
                self._late_first is None
                or rank < self._late_rank
                or (rank == self._late_rank and number < self._late_number)
            ):
                self._late_first = member
                self._late_rank = rank
                self._late_number = number
        pile.add(rank, number, member)

    def first(self) -> Entry:
        """The lowest of all; there is one."""
        line = self._line
        late = self._late_first
        if not line.ranks and not self._heap and late is None:
            line = self._next_line()
        if late is not None and self._is_before(self._late_rank, self._late_number):
            return self._late_rank, self._late_number, late
        if self._is_heap_first():
            entry: Entry = self._heap[0]
            return entry
        return line.ranks[-1], line.numbers[-1], line.members[-1]

    def drop(self) -> None:
        """Takes the first out, whether it was asked for or not."""
        if self._late_first is not None:
            if self._is_before(self._late_rank, self._late_number):
                self._take_in()
        elif not self._line.ranks and not self._heap:
            self._next_line()
        self.size -= 1
        if self._is_heap_first():
            heappop(self._heap)
        else:
            line = self._line
            line.ranks.pop()
            line.numbers.pop()
            line.members.pop()

    def entries(self) -> list[Entry]:
        found: list[Entry] = list(self._heap)
        for pile in (self._line, self._late, *self._far.values()):
            found += pile.entries()
        return found

    def _is_before(self, rank: int, number: int) -> bool:
        """Whether nothing in line or heap is lower."""
        line = self._line
        if line.ranks:
            if rank > line.ranks[-1]:
                return False
            if rank == line.ranks[-1] and number > line.numbers[-1]:
                return False
        if not self._heap:
            return True
        entry: Any = self._heap[0]
        low: int = entry[0]
        if rank != low:
            return rank < low
        low_number: int = entry[1]
        return number < low_number

    def _is_heap_first(self) -> bool:
        line = self._line
        if not self._heap or not line.ranks:
            return bool(self._heap)
        entry: Any = self._heap[0]
        rank: int = entry[0]
        if rank != line.ranks[-1]:
            return rank < line.ranks[-1]
        number: int = entry[1]
        return number < line.numbers[-1]

    def _take_in(self) -> None:
        """One of those that came late is first: they are put in order."""
        late, self._late = self._late, Pile()
        self._late_first = None
        line = self._line
        if LONG * len(late.ranks) < len(line.ranks):
            for entry in late.entries():
                heappush(self._heap, entry)
            return
        late.ranks += line.ranks
        late.numbers += line.numbers
        late.members += line.members
        self._line_up(late)

    def _next_line(self) -> Pile:
        self._about = heappop(self._piles)
        return self._line_up(self._far.pop(self._about))

    def _line_up(self, pile: Pile) -> Pile:
        """The pile is the line from now on, in order."""
        keys = _keys(pile.ranks, pile.numbers)
        places = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
        line = self._line = Pile()
        line.ranks = _picked(pile.ranks, places)
        line.numbers = _picked(pile.numbers, places)
        line.members = _picked(pile.members, places)
        return line


def _keys(ranks: list[int], numbers: list[int]) -> list[int]:
    """One number for each entry, in the same order as their ranks and numbers.

    Most are small, and then many times faster to compare than tuples are.
    """
    low, low_number = ranks[0], numbers[0]
    high_number = low_number
    for rank in ranks:
        if rank < low:
            low = rank
    for number in numbers:
        if number < low_number:
            low_number = number
        elif number > high_number:
            high_number = number
    width = (high_number - low_number).bit_length()
    return [
        ((ranks[place] - low) << width) + numbers[place] - low_number
        for place in range(len(ranks))
    ]


def _picked(values: list[Any], places: list[int]) -> list[Any]:
    """As they are: a number would be made anew if it was known to be one."""
    return [values[place] for place in places]
