"""History as it is asked for and told: whole commits, packed as the store has them."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

KIND: Final = "application/vnd.headway.history+msgpack"
"""The content type of packed history: an array of commits, as MessagePack."""
PAGE_BYTES: Final = 1 << 20
PAGE_BYTES_MAX: Final = 8 << 20
Number = Annotated[int, Meta(ge=1, le=2**53)]
"""The number of an event; they begin with 1 and have no gaps."""


class Commit(msgspec.Struct, array_like=True, gc=False):
    """The events of one commit."""

    first: int
    """The number of its first event."""
    count: int
    at_ms: int
    blob: bytes
    """A chapter, packed: see `headway.runtime.records`."""


class PartitionHistory(msgspec.Struct):
    """What there is of a partition's history."""

    partition: str
    first: int
    """The oldest event that is kept."""
    next: int
    """The number of the next event to come."""
    at_ms: int
    """When the newest happened; 0 if there is none."""


class Histories(msgspec.Struct):
    partitions: list[PartitionHistory]


class ReaderBody(msgspec.Struct, forbid_unknown_fields=True):
    """How far a reader of history is."""

    partition: Annotated[str, Meta(max_length=64)]
    position: Number
    """The first event that it has not read."""


class ReaderTold(msgspec.Struct):
    was_cut_off: bool
    """It lagged so far that history was dropped which it had not read."""


read: Final = msgspec.msgpack.Decoder(list[Commit]).decode
write: Final = msgspec.msgpack.Encoder().encode
