"""Entries by rank and number, the lowest first: what a shelf finds its members by."""

from typing import TYPE_CHECKING, Final

from headway.core.odd import Odd

if TYPE_CHECKING:
    from headway.core.shelf import Member

LINES_MAX: Final = 6
"""So many weights of tenants, or jobs come late, before the rest is odd."""
SHORT: Final = 512
"""Into a line that is no longer than this, what comes late is put at once: that costs less
than to compare the beginnings of several lines at each start."""
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
        "number",
        "numbers",
        "rank",
        "ranks",
    )

    def __init__(self, rank: int, member: "Member") -> None:
        self.first = member
        self.rank = self.last_rank = rank
        self.number = self.last_number = member.number
        """That of the first, and of the last, when they came."""
        self.begun = 0
        self.ranks = [rank]
        self.numbers = [member.number]
        self.members: list[Member | None] = [member]

    def add(self, rank: int, member: "Member") -> None:
        number = member.number
        self.ranks.append(rank)
        self.numbers.append(number)
        self.members.append(member)
        self.last_rank = rank
        self.last_number = number

    def insert(self, rank: int, member: "Member") -> bool:
        """Puts it where it belongs, before the last; whether it is the first now."""
        ranks, numbers = self.ranks, self.numbers
        number = member.number
        low, high = self.begun, len(ranks) - 1
        while low < high:
            middle = (low + high) >> 1
            other = ranks[middle]
            if other < rank or (other == rank and numbers[middle] <= number):
                low = middle + 1
            else:
                high = middle
        ranks.insert(low, rank)
        numbers.insert(low, number)
        self.members.insert(low, member)
        if low > self.begun:
            return False
        self.first = member
        self.rank = rank
        self.number = number
        return True

    def drop(self) -> bool:
        """Takes the first out; whether there is another."""
        self.members[self.begun] = None
        begun = self.begun + 1
        size = len(self.members)
        if begun == size:
            return False
        if begun >= BEGUN_MIN and 2 * begun >= size:
            del self.members[:begun]
            del self.numbers[:begun]
            del self.ranks[:begun]
            begun = 0
        self.begun = begun
        self.rank = self.ranks[begun]
        self.number = self.numbers[begun]
        first = self.members[begun]
        assert first is not None
        self.first = first
        return True


class Order:
    """Entries by rank and number, the lowest first.

    Passes rise by a tenant's stride with each start, and aims with time: what comes is
    nearly always behind all that came by the same weight. So a few lines hold nearly
    all, and what is first is next to what was: in a heap of a million tenants each
    start took a walk over twenty levels that no cache holds. What comes joins the first
    line that it is not too low for, so the ends of the lines fall from line to line.
    """

    __slots__ = (
        "_best",
        "_first",
        "_is_found",
        "_is_next_found",
        "_next_number",
        "_next_rank",
        "_odd",
        "_odd_first",
        "_odd_number",
        "_odd_rank",
        "lines",
        "number",
        "rank",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self.rank = self.number = 0
        """What the first was entered by."""
        self.lines: list[Line] = []
        self._odd: Odd | None = None
        """Those for which no line was left, once there were any..."""
        self._odd_first: Member | None = None
        self._odd_rank = self._odd_number = 0
        """...and their first, if there is one, and what it was entered by."""
        self._first: Member | None = None
        self._best: Line | None = None
        """The first, and its line; None if it is odd..."""
        self._is_found = True
        """...as long as that is known."""
        self._is_next_found = False
        self._next_rank = self._next_number = 0
        """Nothing but the first's own line has an entry lower than this, if known."""

    def first(self) -> "Member | None":
        """The member of the lowest entry, whether it counts or not."""
        if self._is_found:
            return self._first
        self._is_found = True
        best: Line | None = None
        low = next_rank = self._odd_rank
        low_number = next_number = self._odd_number
        first = self._odd_first
        is_next_found = False
        for line in self.lines:
            rank = line.rank
            if (
                first is None
                or rank < low
                or (rank == low and line.number < low_number)
            ):
                if first is not None:
                    is_next_found = True
                    next_rank = low
                    next_number = low_number
                best = line
                low = rank
                low_number = line.number
                first = line.first
            elif (
                not is_next_found
                or rank < next_rank
                or (rank == next_rank and line.number < next_number)
            ):
                is_next_found = True
                next_rank = rank
                next_number = line.number
        self._first = first
        self._best = best
        self.rank = low
        self.number = low_number
        self._is_next_found = is_next_found
        self._next_rank = next_rank
        self._next_number = next_number
        return first

    def push(self, rank: int, member: "Member") -> None:
        self.size += 1
        number = member.number
        for line in self.lines:
            last = line.last_rank
            if last < rank or (last == rank and line.last_number <= number):
                # It is behind all of that line, and so not the first of all.
                line.add(rank, member)
                return
        lines = self.lines
        best: Line | None = None
        lowest = lines[-1] if lines else None
        if lowest is not None and len(lowest.members) - lowest.begun <= SHORT:
            if not lowest.insert(rank, member):
                return
            best = lowest
        elif len(lines) < LINES_MAX:
            best = Line(rank, member)
            lines.append(best)
        else:
            self._push_odd(rank, number, member)
        self._is_next_found = False
        if self._is_found and (
            self._first is None
            or rank < self.rank
            or (rank == self.rank and number < self.number)
        ):
            self._first = member
            self._best = best
            self.rank = rank
            self.number = number

    def drop(self) -> None:
        """Takes out what `first` has just told."""
        self._is_found = False
        self.size -= 1
        best = self._best
        if best is None:
            odd = self._odd
            assert odd is not None
            odd.drop()
            self._odd_first = None
            if odd.size:
                self._odd_rank, self._odd_number, self._odd_first = odd.first()
        elif not best.drop():
            self.lines.remove(best)
        elif len(self.lines) == 1 or (
            self._is_next_found
            and (
                best.rank < self._next_rank
                or (best.rank == self._next_rank and best.number < self._next_number)
            )
        ):
            # As it is mostly: whoever is next in that line is first of all. Of one line
            # in any case: what is odd came when there were more, and goes before them.
            self._is_found = True
            self._first = best.first
            self.rank = best.rank
            self.number = best.number

    def entries(self) -> "list[tuple[int, int, Member]]":
        found = [] if self._odd is None else self._odd.entries()
        for line in self.lines:
            for place in range(line.begun, len(line.members)):
                member = line.members[place]
                assert member is not None
                found.append((line.ranks[place], line.numbers[place], member))
        return found

    def clear(self) -> None:
        self.size = 0
        self._is_found = True
        self._first = None
        self._best = None
        self._is_next_found = False
        self.lines.clear()
        self._odd = self._odd_first = None

    def _push_odd(self, rank: int, number: int, member: "Member") -> None:
        odd = self._odd
        if odd is None:
            odd = self._odd = Odd()
        if (
            self._odd_first is None
            or rank < self._odd_rank
            or (rank == self._odd_rank and number < self._odd_number)
        ):
            self._odd_first = member
            self._odd_rank = rank
            self._odd_number = number
        odd.push(rank, number, member)
