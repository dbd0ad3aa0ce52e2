"""What an owner asks of a store: few methods, one behaviour suite for all of them.

A store knows nothing of jobs but where they stand. Rows are plain tuples, since
thousands of them pass here in a second.
"""

from typing import Final, NamedTuple, Protocol

import msgspec

HELD: Final = -1
"""The lane of jobs that are leased or wait for a reply."""
SCHEDULED: Final = -2
"""The lane of jobs whose time has not come; their first key is that time."""
DEAD: Final = -3
"""The lane of dead letters; their turn is their queue."""

Row = tuple[int, int, bytes, int, int, bytes | None, bytes]
"""A job: seq, lane, turn, first key, second key, what changed since it was enqueued,
what it was enqueued as. The last never changes."""

Move = tuple[int, bytes, int, int, bytes | None, int]
"""A job that stands elsewhere or has changed: lane, turn, keys, change, seq."""

Fact = tuple[str, bytes, bytes | None]
"""Something small that is known by kind and key; None forgets it."""

Key = tuple[str, str, int, bytes, int]
"""An idempotency key: queue, key, seq, fingerprint of the job, when it came."""

Result = tuple[int, int, bytes]
"""What a job has left: its seq, until when it is kept, what it is."""


Entry = tuple[int, int, str | None]
"""Something of an inbox: the number of its transaction, its own, and why it was refused;
None takes it out."""


class Position(NamedTuple):
    """A place in the order of a turn; rows after it are unread."""

    first: int
    second: int
    seq: int


START: Final = Position(-(2**63), -(2**63), -(2**63))
"""Before every row of a turn."""


class Segment(NamedTuple):
    """The events of one commit, packed."""

    first: int
    """Number of its first event; numbers begin with 1 and have no gaps."""
    count: int  # type: ignore[assignment]  # hides a method that nobody needs
    at_ms: int
    blob: bytes


class Batch(msgspec.Struct, eq=False):
    """What one commit writes: all of it or nothing.

    In the order of the fields: a job may be put, moved and ended in one batch, and of
    several facts or keys of one name the last counts.
    """

    puts: list[Row]
    """Jobs that are new."""
    moves: list[Move]
    ends: list[tuple[int]]
    """Jobs that are over, by seq."""
    facts: list[Fact]
    keys: list[Key]
    segment: Segment | None = None
    keys_before_ms: int | None = None
    """Idempotency keys that came before this time are forgotten."""
    history_before: int | None = None
    """History up to, but without, this number is dropped: whole segments only, and
    never the newest, which knows the number to go on with."""
    results: list[Result] = []
    """Of jobs that have ended, once each."""
    results_over: tuple[int, int] | None = None
    """Results that were kept until this time or less are dropped, at most so many: those
    first that ended first."""
    inbox: list[Entry] = []
    """What was taken out of the inbox, where the store has one."""


class Past(Protocol):
    """History for somebody who reads it beside the owner."""

    def history(self, first: int, most_bytes: int) -> list[Segment]:
        """Segments from the one that holds `first` on; at least one if there is any.

        Raises HistoryGone if `first` was dropped already.
        """
        ...

    def last_segment(self) -> Segment | None:
        """The newest segment; None if nothing was written yet."""
        ...

    def close(self) -> None: ...


class Store(Past, Protocol):
    """The truth of one partition. One owner at a time may write."""

    def take_over(self) -> int:
        """Makes the caller the owner: answers its epoch, higher than every one before.

        Comes before every other call. Durable when it returns. Writes of earlier
        owners are refused from here on.
        """
        ...

    def commit(self, batch: Batch, epoch: int) -> None:
        """Writes the batch, durable when it returns.

        Raises Fenced if another owner has taken over, Contradiction if the batch can't
        be true, and StoreFailed if it can't be known whether the batch was written: the
        store is then of no use any more.
        """
        ...

    def facts(self, kind: str) -> list[tuple[bytes, bytes]]:
        """All facts of a kind, by key."""
        ...

    def jobs(self, seqs: list[int]) -> list[Row]:
        """Those of the jobs that exist, in any order."""
        ...

    def rows(self, lane: int, turn: bytes, after: Position, limit: int) -> list[Row]:
        """The next rows of a turn, in the order of their keys and seq."""
        ...

    def turns(self, lane: int, after: bytes | None, limit: int, each: int) -> list[Row]:
        """Of the next turns of a lane in the order of their names, the first rows.

        None begins with the first turn. At most `limit` turns, `each` rows of a turn.
        """
        ...

    def find_keys(self, wanted: list[tuple[str, str]]) -> list[Key]:
        """Those of the idempotency keys that are known, by queue and key."""
        ...

    def results(self, seqs: list[int]) -> list[Result]:
        """Those of the results that are there, over or not, in any order."""
        ...

    def first_over_ms(self) -> int | None:
        """When the first of all results will be over; None if there is none."""
        ...
