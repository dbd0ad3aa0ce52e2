"""Writes: many jobs that are sent in chunks and published as a whole."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from headway.wire.jobs import NewJob
from headway.wire.values import END

CHUNK_JOBS_MAX: Final = 10_000
"""Jobs of one chunk."""
WINNERS_MAX: Final = 100_000
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}" + END
"""Of a write or a series: it becomes the name of a folder."""
ATTEMPT: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}" + END

ChunkJobs = Annotated[list[NewJob], Meta(min_length=1, max_length=CHUNK_JOBS_MAX)]
SeriesName = Annotated[str, Meta(pattern=NAME, max_length=128)]
Partition = Annotated[int, Meta(ge=0, le=1_000_000)]
Attempt = Annotated[str, Meta(pattern=ATTEMPT, max_length=64)]
ChunkNumber = Annotated[int, Meta(ge=0, le=1_000_000)]


class Winner(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The attempt at a partition that counts, and how many chunks it has sent."""

    partition: Partition
    attempt: Attempt
    chunks: ChunkNumber


class Publication(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is to be published: these attempts, with so many jobs in all."""

    winners: Annotated[list[Winner], Meta(max_length=WINNERS_MAX)]
    count: Annotated[int, Meta(ge=0, le=100_000_000)]
    series: SeriesName | None = None
    """What a stream writes: all of it has this name, and rising numbers."""
    number: Annotated[int, Meta(ge=0, le=2**53)] = 0


class WriteShown(msgspec.Struct, kw_only=True):
    """A write as it stands: staged, published, taken_in or discarded."""

    id: str
    state: str
    jobs: int
    """Of a staged write: those of all attempts."""
    queues: dict[str, int]
    chunks: int = 0
    """Staged ones."""
    bytes: int = 0
    taken: int = 0
    """Jobs that are in their queues by now."""
    duplicates: int = 0
    """Of them, known by their idempotency key."""
    conflicts: int = 0
    """Of them, left out, since their key was used for another job before."""
    published_ms: int | None = None
    ended_ms: int | None = None
    is_repeated: bool = False
    """It was published before: nothing has changed by this."""
