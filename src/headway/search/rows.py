"""A job as the index has it."""

from typing import Any, Final

import msgspec

from headway.core.events import AnyEvent
from headway.core.states import JobState
from headway.search.schema import CODES

ERROR_BYTES_MAX: Final = 1_024
"""Of an error's text so much is kept."""
NEW_GROUP: Final = -1
"""A dead letter whose group is still to be found."""

encode: Final = msgspec.msgpack.Encoder().encode
decode_labels: Final = msgspec.msgpack.Decoder(dict[str, str]).decode
decode_told: Final = msgspec.msgpack.Decoder(list[tuple[int, AnyEvent]]).decode

DONE: Final = CODES[JobState.DONE]
DEAD: Final = CODES[JobState.DEAD]
CANCELLED: Final = CODES[JobState.CANCELLED]
ENDED: Final = (DONE, CANCELLED, DEAD)


class JobRow(msgspec.Struct, gc=False):
    """A row of the table of jobs, in the order of its columns."""

    seq: int
    queue: str
    kind: str
    tenant: str
    slo_ms: int
    priority: int
    cost: int
    enqueued_ms: int
    """0 if that was before what the index knows; nor are its labels known then."""
    labels: bytes | None
    generation: int
    state: int
    changed: int
    changed_ms: int
    run_at_ms: int
    ended_ms: int
    attempt: int
    lease_until_ms: int
    is_cancel_requested: int
    reply_key: str
    worker: str
    """Who had it last."""
    reason: str
    error: str
    group_id: int


class PlainChapter(msgspec.Struct, array_like=True):
    """A chapter of history, its events as tuples: their tags and then their fields."""

    last_seq: int
    counts: msgspec.Raw
    events: list[tuple[Any, ...]]


class RawChapter(msgspec.Struct, array_like=True):
    """The same with events that are but bytes: they are told as they were written."""

    last_seq: int
    counts: msgspec.Raw
    events: list[msgspec.Raw]


_decode_plain: Final = msgspec.msgpack.Decoder(PlainChapter).decode
_decode_raw: Final = msgspec.msgpack.Decoder(RawChapter).decode


def unpack_both(blob: bytes) -> tuple[list[tuple[Any, ...]], list[msgspec.Raw]]:
    """The events of a chapter: to be read, and to be told."""
    return _decode_plain(blob).events, _decode_raw(blob).events


def cut(text: str) -> str:
    """As much of a text as is kept, in whole characters."""
    if len(text) <= ERROR_BYTES_MAX // 4:
        return text
    kept = text.encode("utf-8", "replace")[:ERROR_BYTES_MAX]
    return kept.decode("utf-8", "ignore")
