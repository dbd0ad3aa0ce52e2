"""Where jobs stand whose place the tables do not know, by turn and in order."""

from bisect import bisect_right

Turn = tuple[int, bytes]
"""A lane and the name of a turn in it."""
Place = tuple[int, int, int]
"""First key, second key and seq."""


class Line:
    """Places in one turn; a job may have left its place meanwhile."""

    __slots__ = ("_is_sorted", "_places")

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: Place) -> None:
        places = self._places
        if places:
            last = places[-1]
            if place == last:
                return
            if place < last:
                self._is_sorted = False
        places.append(place)

    def between(self, after: Place, until: Place | None) -> tuple[int, int]:
        """From where to where places beyond the one lie, up to the other and with it."""
        if not self._is_sorted:
            self._places = sorted(set(self._places))
            self._is_sorted = True
        first = bisect_right(self._places, after)
        if until is None:
            return first, len(self._places)
        return first, bisect_right(self._places, until)

    def at(self, number: int) -> Place:
        return self._places[number]

    def keep(self, first: int, end: int, places: list[Place]) -> None:
        """Of a stretch only these are left."""
        if len(places) < end - first:
            self._places[first:end] = places


class Places:
    """The lines of all turns, and the turns of each lane by name.

    Much comes and goes without ever being read in order: only where it is read is it
    put in order, and what comes mostly stands behind what came before.
    """

    __slots__ = ("_lines", "_names")

    def __init__(self) -> None:
        self._lines: dict[Turn, Line] = {}
        self._names: dict[int, list[bytes]] = {}
        """Of each lane; in order, but for those that came since they were read."""

    def add(self, turn: Turn, place: Place) -> None:
        line = self._lines.get(turn)
        if line is None:
            line = self._lines[turn] = Line()
            names = self._names.get(turn[0])
            if names is None:
                names = self._names[turn[0]] = []
            names.append(turn[1])
        line.add(place)

    def line(self, turn: Turn) -> Line | None:
        return self._lines.get(turn)

    def drop(self, turn: Turn) -> None:
        """Nobody stands there any more."""
        del self._lines[turn]

    def names(
        self, lane: int, after: bytes | None, until: bytes | None, most: int
    ) -> list[bytes]:
        """Turns in the order of their names, up to one and with it.

        In some of them nobody may stand any more.
        """
        names = self._names.get(lane)
        if names is None:
            return []
        names.sort()
        lines = self._lines
        first = 0 if after is None else bisect_right(names, after)
        end = len(names) if until is None else bisect_right(names, until)
        found: list[bytes] = []
        while first < end and len(found) < most:
            name = names[first]
            same = bisect_right(names, name, first, end)
            if (lane, name) not in lines:
                # Its last one has left.
                del names[first:same]
                end -= same - first
                continue
            found.append(name)
            first = same
        return found
