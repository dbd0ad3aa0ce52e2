"""Asks an owner how urgent its next start is; whoever chooses between partitions does."""

import msgspec

from headway.core.errors import UnknownQueue
from headway.core.partition import Partition


class Urgency(msgspec.Struct, eq=False):
    """Asks for the most urgent start of some queues, or of all. Answered by a Hint."""

    queues: tuple[str, ...] | None = None


class Hint(msgspec.Struct, frozen=True):
    """As of the last commit; the lowest is the most urgent."""

    rank: int | None = None
    """None: there is nothing to start."""
    measure: int = 0


NOTHING = Hint()


def look_at_urgency(partition: Partition, ask: Urgency) -> Hint:
    """Nothing changes, and nothing is kept for the next who asks."""
    queues = ask.queues
    if queues is not None:
        known = partition.book.queues
        queues = tuple(name for name in queues if name in known)
        if not queues:
            return NOTHING
    try:
        found = partition.urgency(queues)
    except UnknownQueue:
        return NOTHING
    return NOTHING if found is None else Hint(found.rank, found.measure)
