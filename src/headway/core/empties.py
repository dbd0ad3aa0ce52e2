"""Turns that have emptied, in the order in which they first did."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headway.core.turn import Turn

EMPTIES: Final = 1_024
"""Empty turns kept in a queue before the oldest are dropped."""


class Empties:
    """A line of turns, turn to turn.

    While it is short, one that has jobs again stays where it is, as its neighbours are in
    no cache, and most tenants come and go all the time: what it is by then is asked when it
    comes to the front. In a long one those at the front would have to be asked too often.
    """

    __slots__ = ("_first", "_last", "size")

    def __init__(self) -> None:
        self.size = 0
        self._first: Turn | None = None
        self._last: Turn | None = None

    def add(self, turn: "Turn") -> None:
        """The turn, which is not in the line, is its last."""
        last = self._last
        turn.is_emptied = True
        turn.is_back = False
        turn.emptied_before = last
        if last is None:
            self._first = turn
        else:
            last.emptied_after = turn
        self._last = turn
        self.size += 1

    def leave(self, turn: "Turn") -> None:
        """A turn that is in the line has jobs again."""
        turn.is_back = True
        if self.size >= EMPTIES:
            self._drop(turn)

    def pop(self) -> "Turn":
        """Takes the first out; there is one."""
        first = self._first
        assert first is not None
        self._drop(first)
        return first

    def _drop(self, turn: "Turn") -> None:
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
