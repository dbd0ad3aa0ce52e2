"""Looking ahead: what a batch of jobs is about to ask for is asked for before it.

Where memory holds many turns, what a job needs of its own turn, tenant and limits is in
no cache, and each line of it would be waited for, one after the other. So a batch goes
in pieces, and before each all that it will need is asked for at one go. Nothing changes
by it.
"""

from typing import TYPE_CHECKING, Any, Final

from headway.core import prefetch

if TYPE_CHECKING:
    from headway.core.book import Book
    from headway.core.lane import LaneTier
    from headway.core.queue import Queue
    from headway.core.turn import Turn

TURNS_MIN: Final = 768
"""With fewer turns than this in memory they are in some cache, or soon will be..."""
JOBS_MIN: Final = 8
"""...and for fewer jobs it is not worth it."""
PIECE: Final = 64
"""Jobs that are asked for at one go: what belongs to them fits into a cache."""


def is_worth_it(book: "Book", jobs: int) -> bool:
    return jobs >= JOBS_MIN and book.shared.turns >= TURNS_MIN and prefetch.is_here()


def at_ends(book: "Book", tokens: list[int], first: int) -> None:
    """Leases are about to end: their jobs, and whoever waits for what they hold."""
    some = tokens[first : first + PIECE]
    prefetch.ends(book.leases, book.jobs, book.timers, some)


def at_arrivals(
    book: "Book",
    queue: "Queue",
    all_said: list[tuple[Any, ...]],
    slo_ms: int,
    first: int,
) -> "list[Turn | None]":
    """Jobs of which this was said are about to join their turns.

    As far as those are easily told: by their tenant, or by one value of a strand. The
    answer is the turns of the first of them, place by place, where they were found.
    """
    rules = queue.rules
    lane = queue.lanes.get(slo_ms)
    if lane is None or not rules.is_fair or len(rules.dims) > 1:
        return []
    some = all_said[first : first + PIECE]
    if rules.dims:
        dim = rules.dims[0]
        names = [_value_of(dim, said) for said in some]
        prefetch.arrivals(lane.by_value, names, book.jobs, book.last_seq + 1)
    elif lane.common is not None:
        by_tenant = lane.common.by_tenant()
        if by_tenant is not None:
            names = [said[3] for said in some]
            return prefetch.arrivals(by_tenant, names, book.jobs, book.last_seq + 1)
    return []


def at_starts(book: "Book", lane_tier: "LaneTier", most: int) -> None:
    """Turns of the lane are about to start a job each."""
    shelf = lane_tier.shelf
    # The tiers of its tenants, or the turns of the only one.
    lone = shelf.solo
    if lone is None:
        lines, called = shelf.lines(), shelf.ahead
    else:
        lines, called = lone.lines(), lone.ahead
    # About as many as since the last time will be looked at, to see who is due.
    most_called = min(called.dropped, most)
    if most_called:
        called.dropped = 0
    prefetch.starts(book.timers, lines, most, called.lines, most_called)


def _value_of(dim: str, said: tuple[Any, ...]) -> str:
    """The same as `rules.value_of`, of a spec's fields in their order."""
    if dim == "kind":
        return str(said[0])
    if dim == "tenant":
        return str(said[3])
    labels: dict[str, str] | None = said[11]
    return "" if labels is None else labels.get(dim, "")
