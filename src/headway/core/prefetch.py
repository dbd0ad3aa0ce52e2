"""Asking the processor for memory that is about to be looked at.

Here nothing is asked for: that takes machine code. `headway compile` makes some of
prefetch.c, which stands in for this module then.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.core.order import Line
    from headway.core.register import Register
    from headway.core.timers import TimeBuckets


def is_here() -> bool:
    """Whether asking is to any use."""
    return False


def ends(
    leases: "Register",
    jobs: "Register",
    timers: "TimeBuckets[Any]",
    tokens: list[int],
    /,
) -> None:
    """Asks for the jobs of these leases, and for what is touched when they end."""


def starts(
    timers: "TimeBuckets[Any]",
    lines: "list[Line]",
    most: int,
    calls: "list[Line]",
    most_called: int,
    /,
) -> None:
    """Asks for the turns that stand first in these lines, or for the only turn of each
    tier, and for what they are about to start; and for those that come due first.
    """


def arrivals(
    known: dict[str, Any], names: list[str], jobs: "Register", first: int, /
) -> list[Any]:
    """Asks for the turns of these names, or for the only turns of strands; and for the
    places of as many jobs whose numbers come next.

    What is known by each of the names, or None, as it was looked up for that.
    """
    return []
