"""Entries by rank and number, the lowest first: what a shelf finds its members by."""

from typing import TYPE_CHECKING, Final

from headway.core.odd import Entry, Odd, lined_up

if TYPE_CHECKING:
    from mypy_extensions import i64

LINES_MAX: Final = 6
"""So many weights of tenants, or jobs come late, before the rest is odd."""
SHORT: Final = 512
"""Into a line that is no longer than this, what comes late is put at once: that costs less
than to compare the beginnings of several lines at each start."""
BEGUN_MIN: Final = 16
"""So many empty places at the beginning of a line are not worth to be cut off."""


class Line:
    """Entries that came in order: they are never compared again."""

    __slots__ = ("begun", "entries", "first", "last")

    def __init__(self, entry: Entry) -> None:
        self.first = self.last = entry
        self.begun: i64 = 0
        """In the places before this the last one stands in for those that were taken out,
        so that their members may go."""
        self.entries: list[Entry] = [entry]

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.last = entry

    def insert(self, entry: Entry) -> bool:
        """Puts it where it belongs, before the last; whether it is the first now."""
        entries = self.entries
        rank, number = entry.rank, entry.number
        begun = self.begun
        low: i64 = begun
        high: i64 = len(entries) - 1
        while low < high:
            middle: i64 = (low + high) >> 1
            # Looked up twice: under a name its uses would be counted, here and back.
            other = entries[middle].rank
            if other < rank or (other == rank and entries[middle].number <= number):
                low = middle + 1
            else:
                high = middle
        if low > begun:
            entries.insert(low, entry)
            return False
        self.first = entry
        if begun:
            begun -= 1
            entries[begun] = entry
            self.begun = begun
        else:
            entries.insert(0, entry)
        return True

    def drop(self) -> bool:
        """Takes the first out; whether there is another."""
        entries = self.entries
        entries[self.begun] = self.last
        begun = self.begun + 1
        size: i64 = len(entries)
        if begun == size:
            return False
        if begun >= BEGUN_MIN and 2 * begun >= size:
            del entries[:begun]
            begun = 0
        self.begun = begun
        self.first = entries[begun]
        return True

    def standing(self) -> list[Entry]:
        return self.entries[self.begun :]


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
        "_odd",
        "_odd_first",
        "_second",
        "dropped",
        "lines",
        "size",
    )

    def __init__(self) -> None:
        self.size = 0
        self.dropped = 0
        """How many were taken out since somebody set it to 0."""
        self.lines: list[Line] = []
        self._odd: Odd | None = None
        """Those for which no line was left, once there were any..."""
        self._odd_first: Entry | None = None
        """...and their first, if there is one."""
        self._first: Entry | None = None
        self._best: Line | None = None
        """The first, and its line; None if it is odd..."""
        self._is_found = True
        """...as long as that is known."""
        self._second: Entry | None = None
        """Nothing but the first's own line has one that is lower than this, if known."""

    def first(self) -> Entry | None:
        """The lowest entry, whether it counts or not."""
        if self._is_found:
            return self._first
        self._is_found = True
        best: Line | None = None
        first = self._odd_first
        second: Entry | None = None
        for line in self.lines:
            head = line.first
            if first is None or head.is_below(first):
                second = first
                first = head
                best = line
            elif second is None or head.is_below(second):
                second = head
        self._first = first
        self._best = best
        self._second = second
        return first

    def push(self, entry: Entry) -> None:
        self.size += 1
        lines = self.lines
        lowest = lines[-1] if lines else None
        # Below the end of that one it is below all of them.
        if lowest is not None and not entry.is_below(lowest.last):
            for line in lines:
                if not entry.is_below(line.last):
                    # It is behind all of that line, and so not the first of all.
                    line.add(entry)
                    return
        best: Line | None = None
        if lowest is not None and len(lowest.entries) - lowest.begun <= SHORT:
            if not lowest.insert(entry):
                return
            best = lowest
        elif len(lines) < LINES_MAX:
            best = Line(entry)
            lines.append(best)
        else:
            self._push_odd(entry)
        self._second = None
        if self._is_found and (self._first is None or entry.is_below(self._first)):
            self._first = entry
            self._best = best

    def drop(self) -> None:
        """Takes out what `first` has just told."""
        self._is_found = False
        self.size -= 1
        self.dropped += 1
        best = self._best
        if best is None:
            odd = self._odd
            assert odd is not None
            odd.drop()
            self._odd_first = odd.first() if odd.size else None
        elif not best.drop():
            self.lines.remove(best)
        elif len(self.lines) == 1 or (
            self._second is not None and best.first.is_below(self._second)
        ):
            # As it is mostly: whoever is next in that line is first of all. Of one line
            # in any case: what is odd came when there were more, and goes before them.
            self._is_found = True
            self._first = best.first

    def entries(self) -> list[Entry]:
        found = [] if self._odd is None else self._odd.entries()
        for line in self.lines:
            found += line.standing()
        return found

    def clear(self) -> None:
        self.size = 0
        self._is_found = True
        self._first = self._second = None
        self._best = None
        self.lines.clear()
        self._odd = self._odd_first = None

    def refill(self, entries: list[Entry]) -> None:
        """With these, and no others."""
        self.clear()
        for entry in reversed(lined_up(entries)):
            self.push(entry)

    def _push_odd(self, entry: Entry) -> None:
        odd = self._odd
        if odd is None:
            odd = self._odd = Odd()
        if self._odd_first is None or entry.is_below(self._odd_first):
            self._odd_first = entry
        odd.push(entry)
