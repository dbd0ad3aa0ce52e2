"""Asks and answers as bytes, for processes that share one owner.

A frame is four bytes of length and a record: number of the call, name of the type, body.
Only types that are listed here are ever made from bytes.
"""

import struct
from typing import Any, Final, get_args

import msgspec

from headway.core import errors
from headway.core.bulk import BulkView
from headway.core.capacity import Wanted
from headway.core.commands import (
    Accepted,
    BulkPage,
    Changed,
    Command,
    Fetched,
    ReplyFate,
    Settled,
    Withdraw,
)
from headway.core.why import Why
from headway.core.write import WriteView
from headway.runtime.bulk import BulkList, BulkPreview, ListBulks
from headway.runtime.errors import OwnerBusy, OwnerStopped, RuntimeFailure
from headway.runtime.listing import Listing, Page
from headway.runtime.measures import Measures
from headway.runtime.results import Ended, Watch
from headway.runtime.views import (
    Handed,
    HistoryPage,
    JobView,
    Query,
    QueueCounts,
)
from headway.runtime.writes import ListWrites, ShowWrite, WriteList

FRAME_MAX: Final = 64 << 20
HEAD: Final = struct.Struct(">I")
_ASKS: Final = {
    *get_args(Command),
    *get_args(Query),
    *get_args(Listing),
    ListBulks,
    Watch,
    ListWrites,
    ShowWrite,
} - {Fetched, Withdraw, BulkPage}
_ANSWERS: Final = (
    Accepted,
    Handed,
    Settled,
    Changed,
    JobView,
    Why,
    QueueCounts,
    HistoryPage,
    ReplyFate,
    BulkView,
    BulkPreview,
    BulkList,
    WriteView,
    WriteList,
    *get_args(Page),
    Measures,
    Wanted,
    Ended,
)
_TYPES: Final = {kind.__name__: kind for kind in (*_ASKS, *_ANSWERS)}
_DECODERS: Final = {
    name: msgspec.msgpack.Decoder(kind) for name, kind in _TYPES.items()
}
_ERRORS: Final[dict[str, type[Exception]]] = {
    kind.__name__: kind
    for kind in (
        *(
            kind
            for kind in vars(errors).values()
            if isinstance(kind, type) and issubclass(kind, errors.RuleBroken)
        ),
        OwnerBusy,
        OwnerStopped,
    )
}
_encode: Final = msgspec.msgpack.Encoder().encode


class Frame(msgspec.Struct, array_like=True):
    call: int
    """Given by the caller; its answer bears it, too."""
    name: str
    body: msgspec.Raw


_decode_frame: Final = msgspec.msgpack.Decoder(Frame).decode
_decode_text: Final = msgspec.msgpack.Decoder(str).decode
_decode_call: Final = msgspec.msgpack.Decoder(int).decode


def pack(call: int, value: object) -> bytes:
    """A whole frame, its length in front."""
    name = type(value).__name__
    if isinstance(value, errors.RuleBroken | RuntimeFailure):
        body = _encode(str(value))
    else:
        body = _encode(value)
    return _framed(call, name, body)


def pack_withdraw(call: int, held_call: int) -> bytes:
    """The caller of an earlier ask that waits is gone."""
    return _framed(call, Withdraw.__name__, _encode(held_call))


def unpack(blob: bytes) -> tuple[int, Any]:
    """The number of the call, and what was sent; what is withdrawn by its number.

    Raises a msgspec error for what is not a frame of ours.
    """
    frame = _decode_frame(blob)
    if frame.name == Withdraw.__name__:
        return frame.call, Withdrawn(_decode_call(frame.body))
    if frame.name in _ERRORS:
        return frame.call, _error(frame.name, _decode_text(frame.body))
    if frame.name not in _DECODERS:
        raise msgspec.ValidationError(f"nothing is called {frame.name!r}")
    return frame.call, _DECODERS[frame.name].decode(frame.body)


class Withdrawn(msgspec.Struct):
    """On its way: what is withdrawn is named by the number of its call."""

    call: int


def _framed(call: int, name: str, body: bytes) -> bytes:
    blob = _encode(Frame(call, name, msgspec.Raw(body)))
    return HEAD.pack(len(blob)) + blob


def _error(name: str, text: str) -> Exception:
    """An error as it was raised over there; it says the same."""
    kind = _ERRORS[name]
    error: Exception = kind.__new__(kind, text)
    Exception.__init__(error, text)
    return error
