"""What a bridge needs of the system that it reads: messages, and a mark how far it is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

Place = tuple[str, int]
"""A topic and one of its partitions: within it messages have an order."""
Marks = Mapping[Place, int]
"""For each place the offset from which the next reader goes on."""
Gone = Callable[[Sequence[Place]], Marks]
"""These places are another's from now on; answers what may still be committed."""


class Message(msgspec.Struct, frozen=True):
    """One message as it was read."""

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    fault: str = ""
    """Why it can't be used, where its source knows already."""

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def size(self) -> int:
        return len(self.value or b"") + len(self.key or b"")


class SourceFailed(Exception):
    """The source can't go on: somebody has to look at it."""


class NotNow(Exception):
    """It did not work, and may work later."""


class Source(Protocol):
    """Where messages come from. One thread calls it, one call at a time."""

    @property
    def is_over(self) -> bool:
        """Whether no more messages will come, ever."""
        ...

    def open(self, gone: Gone) -> None:
        """Begins to read; `gone` is called within the calls below."""
        ...

    def poll(self, most: int, wait_s: float) -> list[Message]:
        """Up to `most` messages, a few MiB of them; waits for a first one.

        With `most` 0 there is no room: it shows that it is alive, and reads nothing.
        """
        ...

    def commit(self, marks: Marks) -> None:
        """Durable when it returns. Raises NotNow if it may work later."""
        ...

    def close(self) -> None: ...


class Aside(Protocol):
    """Where messages go that nobody can use. Called by one thread, not the source's."""

    def put(self, message: Message, why: str) -> None:
        """Durable when it returns. Raises NotNow if it may work later."""
        ...

    def close(self) -> None: ...


class Told(Protocol):
    """Hears of what happens."""

    def happened(self, event: str, **fields: Any) -> None: ...

    def warned(self, event: str, **fields: Any) -> None: ...

    def failed(self, event: str, **fields: Any) -> None: ...
