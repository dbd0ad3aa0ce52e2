"""Entries by rank and number, the lowest first: what a shelf finds its members by."""

from typing import TYPE_CHECKING, Final

from headway.core.odd import Odd

if TYPE_CHECKING:
    from headway.core.shelf import Member

LINES_MAX: Final = 4
"""So many weights of tenants, or jobs come late, before the rest is odd."""
BEGUN_MIN: Final = 16
"""So many empty places at the beginning of a line are not worth to be cut off."""


class Line:
    """Entries that came in order: they are never compared again."""

    __slots__ = (
        "begun",
        "first",
        "last_number",
        "last_rank",
        "members",
        "rank",
        "ranks",
    )

    def __init__(self, rank: int, member: "Member") -> None:
        self.first = member
        self.rank = rank
        self.last_rank = rank
        self.last_number = member.number
        self.begun = 0
        self.ranks = [rank]
        self.members: list[Member | None] = [member]

    def add(self, rank: int, member: "Member") -> None:
        self.ranks.append(rank)
        self.members.append(member)
        self.last_rank = rank
        self.last_number = member.number

    def drop(self) -> bool:
        """Takes the first out; whether there is another."""
        self.members[self.begun] = None
        begun = self.begun + 1
        size = len(self.members)
        if begun == size:
            return False
        if begun >= BEGUN_MIN and 2 * begun >= size:
            del self.members[:begun]
            del self.ranks[:begun]
            begun = 0
        self.begun = begun
        self.rank = self.ranks[begun]
        first = self.members[begun]
        assert first is not None
        self.first = first
        return True


class Order:
    """Entries by rank and number, the lowest first.

    Passes rise by a tenant's stride with each start, and aims with time: what comes is
    nearly always behind all that came by the same weight. So a few lines hold nearly
    all, and what is first is next to what was: in a heap of a million tenants each
    start took a walk over twenty levels that no cache holds.
    """

    __slots__ = (
        "_best",
        "_is_found",
        "_lines",
        "_odd",
        "_odd_number",
        "_odd_rank",
        "rank",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self.rank = 0
        """What the first was entered by."""
        self._lines: list[Line] = []
        self._odd: Odd | None = None
        """Those for which no line was left, once there were any..."""
        self._odd_rank = self._odd_number = 0
        """...and by what its first is there, if there is one."""
        self._best: Line | None = None
        """The line of the first; None if that is odd..."""
        self._is_found = False
        """...as long as that is known."""

    def first(self) -> "Member | None":
        """The member of the lowest entry, whether it counts or not."""
        if self.size == 0:
            return None
        if self._is_found:
            return self._first_odd() if self._best is None else self._best.first
        self._is_found = True
        best: Line | None = None
        low = 0
        for line in self._lines:
            rank = line.rank
            if (
                best is None
                or rank < low
                or (rank == low and line.first.number < best.first.number)
            ):
                best = line
                low = rank
        if self._odd is not None and self._odd.size:
            rank = self._odd_rank
            if (
                best is None
                or rank < low
                or (rank == low and self._odd_number < best.first.number)
            ):
                self._best = None
                self.rank = rank
                return self._first_odd()
        assert best is not None
        self._best = best
        self.rank = low
        return best.first

    def push(self, rank: int, member: "Member") -> None:
        number = member.number
        self.size += 1
        if rank <= self.rank:
            self._is_found = False
        best: Line | None = None
        high = high_number = 0
        for line in self._lines:
            last = line.last_rank
            if last > rank or (last == rank and line.last_number > number):
                continue
            if (
                best is None
                or last > high
                or (last == high and line.last_number > high_number)
            ):
                best = line
                high = last
                high_number = line.last_number
        if best is not None:
            best.add(rank, member)
        elif len(self._lines) < LINES_MAX:
            self._lines.append(Line(rank, member))
        else:
            odd = self._odd
            if odd is None:
                odd = self._odd = Odd()
            if (
                not odd.size
                or rank < self._odd_rank
                or (rank == self._odd_rank and number < self._odd_number)
            ):
                self._odd_rank = rank
                self._odd_number = number
            odd.push(rank, number, member)

    def coming(self, most: int) -> "list[Member]":
        """The next members of the first's line, whether their entries count or not."""
        best = self._best
        if not self._is_found or best is None:
            best = self._lines[0] if self._lines else None
        if best is None:
            return []
        some = best.members[best.begun : best.begun + most]
        return [member for member in some if member is not None]

    def drop(self) -> None:
        """Takes out what `first` has just told."""
        self._is_found = False
        self.size -= 1
        if self._best is None:
            odd = self._odd
            assert odd is not None
            odd.drop()
            if odd.size:
                self._odd_rank, self._odd_number, _ = odd.first()
        elif not self._best.drop():
            self._lines.remove(self._best)

    def entries(self) -> "list[tuple[int, int, Member]]":
        found = [] if self._odd is None else self._odd.entries()
        for line in self._lines:
            for place in range(line.begun, len(line.members)):
                member = line.members[place]
                assert member is not None
                found.append((line.ranks[place], member.number, member))
        return found

    def clear(self) -> None:
        self.size = 0
        self._is_found = False
        self._best = None
        self._lines.clear()
        self._odd = None

    def _first_odd(self) -> "Member":
        assert self._odd is not None
        return self._odd.first()[2]
