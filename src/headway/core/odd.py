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

Entry = tuple[int, int, "Member"]


class Pile:
    """Ranks and members in no order. Two lists: the collector would walk tuples."""

    __slots__ = ("members", "ranks")

    def __init__(self) -> None:
        self.ranks: list[int] = []
        self.members: list[Member] = []

    def entries(self) -> list[Entry]:
        return [
            (rank, member.number, member)
            for rank, member in zip(self.ranks, self.members, strict=True)
        ]


class Odd:
    """A line that is in order, a few that came too late for it, and all others."""

    __slots__ = ("_about", "_far", "_late", "_line", "_numbers", "_ranks", "size")

    def __init__(self) -> None:
        self.size = 0
        self._ranks: list[int] = []
        self._line: list[Member] = []
        """The first is last..."""
        self._about = NONE
        """...and this is what the ranks of the line are about, or of the last one..."""
        self._late: list[Any] = []
        """...and here is what came later, and is not above that: a heap of entries."""
        self._far: dict[int, Pile] = {}
        self._numbers: list[int] = []
        """A heap of what the others' ranks are about."""

    def push(self, rank: int, number: int, member: "Member") -> None:
        self.size += 1
        about = rank >> SHIFT
        if about <= self._about:
            heappush(self._late, (rank, number, member))
            return
        pile = self._far.get(about)
        if pile is None:
            pile = self._far[about] = Pile()
            heappush(self._numbers, about)
        pile.ranks.append(rank)
        pile.members.append(member)

    def first(self) -> Entry:
        """The lowest of all; there is one."""
        if not self._line and not self._late:
            self._next_line()
        if self._is_late_first():
            late: Entry = self._late[0]
            return late
        member = self._line[-1]
        return self._ranks[-1], member.number, member

    def drop(self) -> None:
        """Takes out what `first` has just told."""
        self.size -= 1
        if self._is_late_first():
            heappop(self._late)
        else:
            self._ranks.pop()
            self._line.pop()

    def entries(self) -> list[Entry]:
        found: list[Entry] = list(self._late)
        for rank, member in zip(self._ranks, self._line, strict=True):
            found.append((rank, member.number, member))
        for pile in self._far.values():
            found += pile.entries()
        return found

    def _is_late_first(self) -> bool:
        if not self._late or not self._line:
            return bool(self._late)
        late: Any = self._late[0]
        rank: int = late[0]
        if rank != self._ranks[-1]:
            return rank < self._ranks[-1]
        number: int = late[1]
        return number < self._line[-1].number

    def _next_line(self) -> None:
        self._about = heappop(self._numbers)
        ordered = sorted(self._far.pop(self._about).entries(), reverse=True)
        self._ranks = [rank for rank, _, _ in ordered]
        self._line = [member for _, _, member in ordered]
