"""A published write as it stands, and as others see it."""

from enum import StrEnum

import msgspec


class WriteState(StrEnum):
    STAGED = "staged"
    """Chunks are there, and nothing is accepted yet."""
    PUBLISHED = "published"
    """Its jobs are accepted, and become jobs of their queues one after another."""
    TAKEN_IN = "taken_in"
    """All of them have."""
    DISCARDED = "discarded"


class Write(msgspec.Struct, eq=False, kw_only=True):
    """A write that was published."""

    id: str
    digest: str
    """Of the list of its chunks."""
    jobs: int
    queues: dict[str, int]
    """How many jobs it has for which queue."""
    left: dict[str, int]
    """Those of them that were not taken in yet."""
    published_ms: int
    taken: int = 0
    duplicates: int = 0
    """Jobs that were known by their idempotency key."""
    conflicts: int = 0
    """Jobs whose key was used for another job before: that one stays."""
    ended_ms: int | None = None
    series: str = ""
    """What a stream writes; its writes have rising numbers."""
    number: int = 0


class WriteView(msgspec.Struct, frozen=True, kw_only=True):
    """A write as others see it."""

    id: str
    state: WriteState
    digest: str
    jobs: int
    queues: dict[str, int]
    taken: int
    duplicates: int
    conflicts: int
    published_ms: int
    ended_ms: int | None
    is_repeated: bool = False
    """It was published before, and nothing has changed by this."""


def view_of(write: Write, *, is_repeated: bool = False) -> WriteView:
    is_ended = write.ended_ms is not None
    return WriteView(
        id=write.id,
        state=WriteState.TAKEN_IN if is_ended else WriteState.PUBLISHED,
        digest=write.digest,
        jobs=write.jobs,
        queues=dict(write.queues),
        taken=write.taken,
        duplicates=write.duplicates,
        conflicts=write.conflicts,
        published_ms=write.published_ms,
        ended_ms=write.ended_ms,
        is_repeated=is_repeated,
    )
