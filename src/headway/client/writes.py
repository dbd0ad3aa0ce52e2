"""Writes of a server: chunks are staged, and published as a whole."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from headway.client.calls import Call
from headway.wire.writes import Publication, Winner, WriteShown

_shown: Final = msgspec.json.Decoder(WriteShown).decode
_encode: Final = msgspec.json.Encoder().encode


def put(
    name: str, place: tuple[int, str, int], queue: str, jobs: bytes
) -> Call[WriteShown]:
    """Stages a chunk: a JSON array of jobs as they are enqueued."""
    partition, attempt, number = place
    path = f"{_path(name)}/chunks/{partition}/{attempt}/{number}?queue={quote(queue)}"
    return Call("PUT", path, jobs, _shown)


def publish(
    name: str,
    winners: Sequence[Winner],
    count: int,
    series: str | None = None,
    number: int = 0,
) -> Call[WriteShown]:
    """All jobs of the winners or none; repeated, it changes nothing."""
    body = Publication(winners=list(winners), count=count, series=series, number=number)
    return Call("POST", f"{_path(name)}/publish", _encode(body), _shown)


def show(name: str) -> Call[WriteShown]:
    return Call("GET", _path(name), b"", _shown)


def discard(name: str) -> Call[WriteShown]:
    """Unless it was published: the answer tells."""
    return Call("DELETE", _path(name), b"", _shown)


def _path(name: str) -> str:
    return f"/v1/writes/{quote(name, safe='')}"
