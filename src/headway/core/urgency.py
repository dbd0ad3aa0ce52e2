"""How urgent the next start is, as a hint for those who choose between partitions."""

from typing import TYPE_CHECKING, NamedTuple

from headway.core.turn import ENTITLED, OVER

if TYPE_CHECKING:
    from headway.core.promise import Board


class Urgent(NamedTuple):
    """The most urgent start. The lowest comes first, by the rules between lanes."""

    rank: int
    """0: due; 1: ahead of its aim; 2 and 3: the same of turns above their share."""
    measure: int
    """The SLO of what is due, in ms; else in how many ms the aim is reached."""


def most_urgent(board: "Board", now_ms: int) -> Urgent | None:
    """What the board would choose by; None if it shows nothing to start.

    Nothing changes: lanes that have reached their aim since the last choice count as
    due, and are made so by the next one.
    """
    for tier in (ENTITLED, OVER):
        slo_ms, aim_ms = board.peek(tier, now_ms)
        if slo_ms is not None:
            return Urgent(2 * tier, slo_ms)
        if aim_ms is not None:
            return Urgent(2 * tier + 1, aim_ms - now_ms)
    return None
