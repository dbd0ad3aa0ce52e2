"""Turns that are empty, in the order in which they emptied."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.core.turn import Turn


class Empties:
    """A line of turns, turn to turn: one that has jobs again leaves it at once."""

    __slots__ = ("_first", "_last", "size")

    def __init__(self) -> None:
        self.size = 0
        self._first: Turn | None = None
        self._last: Turn | None = None

    def add(self, turn: "Turn") -> None:
        """The turn, which is not in the line, is its last."""
        last = self._last
        turn.is_emptied = True
        turn.emptied_before = last
        if last is None:
            self._first = turn
        else:
            last.emptied_after = turn
        self._last = turn
        self.size += 1

    def drop(self, turn: "Turn") -> None:
        """Takes a turn out that is in the line."""
        before, after = turn.emptied_before, turn.emptied_after
        if before is None:
            self._first = after
        else:
            before.emptied_after = after
        if after is None:
            self._last = before
        else:
            after.emptied_before = before
        turn.emptied_before = turn.emptied_after = None
        turn.is_emptied = False
        self.size -= 1

    def pop(self) -> "Turn":
        """Takes the first out; there is one."""
        first = self._first
        assert first is not None
        self.drop(first)
        return first
