"""Where queues and partitions are, as a node knows it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from headway.core.cluster import Placement
from headway.server.app import App

Placed = Callable[[tuple[str, ...] | Exception], None]
"""Is told, on the loop, which partitions a queue has, or why that isn't known."""


Looked = Callable[[Placement | Exception | None], None]
"""Is told, on the loop, all that is known of where a queue is."""


class Places(Protocol):
    """What the gateway needs to know of the cluster."""

    @property
    def marks(self) -> Mapping[str, Placement]:
        """Queues of which more is to be known than their partitions. Whether `whole` is
        there is told, but not what it is."""
        ...

    def partitions(self) -> Sequence[str]:
        """All that are open, in the order of their names."""
        ...

    def of_queue(self, queue: str) -> tuple[str, ...] | None:
        """The partitions of a queue, its home first; None if that must be looked up."""
        ...

    def look_up(self, queue: str, then: Placed) -> None:
        """Finds the partitions of a queue in the database, or gives a new one some."""
        ...

    def placement(self, queue: str, then: Looked) -> None:
        """Finds all that the database knows of where a queue is."""
        ...

    def replace(self, queue: str, to: Placement, then: Looked) -> None:
        """Changes that; nothing is told if it was changed since, or can't be so."""
        ...

    def local(self, partition: str) -> App | None:
        """Answers for it, while this node holds it."""
        ...

    def address(self, partition: str) -> str | None:
        """Of the node that holds it, as a URL; None while nobody does."""
        ...

    def is_valid(self) -> bool:
        """Whether this node's lease goes on: else nothing may be answered."""
        ...

    @property
    def left_s(self) -> float:
        """How long it goes on for certain."""
        ...

    def changed(self, then: Callable[[], None]) -> None:
        """Calls once, on the loop, when partitions have moved since."""
        ...

    def refresh(self) -> None:
        """Somebody was not where they should be: looks soon."""
        ...
