"""Dead letters of a server that are put back by their ids."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from headway.client.calls import Call
from headway.wire.operations import DeadBody, DeadFilter, Operation, Preview

_preview: Final = msgspec.json.Decoder(Preview).decode
_operation: Final = msgspec.json.Decoder(Operation).decode
_encode: Final = msgspec.json.Encoder().encode


def preview(queue: str, ids: Sequence[str], died_before_ms: int) -> Call[Preview]:
    """How many of them are dead letters of the queue, and were before that moment."""
    body = DeadBody(_named(ids, died_before_ms), preview=True)
    return Call("POST", _path(queue), _encode(body), _preview)


def redrive(
    queue: str, ids: Sequence[str], died_before_ms: int, rate: float | None = None
) -> Call[Operation]:
    """Puts those back, so many a second; who has moved on meanwhile is left alone."""
    body = DeadBody(_named(ids, died_before_ms), rate)
    return Call("POST", _path(queue), _encode(body), _operation)


def operation(number: int) -> Call[Operation]:
    """How far it is."""
    return Call("GET", f"/v1/operations/{number}", b"", _operation)


def _named(ids: Sequence[str], died_before_ms: int) -> DeadFilter:
    return DeadFilter(ids=list(ids), died_before=died_before_ms)


def _path(queue: str) -> str:
    return f"/v1/queues/{quote(queue, safe='')}/dead/redrive"
