"""History of a server, read by number."""

from collections.abc import Iterator
from typing import Final

import msgspec

from headway.client.blocking import Client
from headway.client.calls import Call
from headway.wire import history as wire

_histories: Final = msgspec.json.Decoder(wire.Histories).decode
_told: Final = msgspec.json.Decoder(wire.ReaderTold).decode
_encode: Final = msgspec.json.Encoder().encode


def histories() -> Call[list[wire.PartitionHistory]]:
    """Which events there are, by partition."""
    return Call("GET", "/v1/history", b"", lambda got: _histories(got).partitions)


def page(
    partition: str, first: int, before: int, most_bytes: int = wire.PAGE_BYTES
) -> Call[list[wire.Commit]]:
    """Commits from the one that holds `first` on; none that begins at `before`."""
    query = f"first={first}&before={before}&bytes={most_bytes}"
    return Call("GET", f"/v1/history/{partition}?{query}", b"", wire.read)


def follow(reader: str, partition: str, position: int) -> Call[bool]:
    """This reader has read what is before the position; True if it was cut off."""
    body = _encode(wire.ReaderBody(partition, position))
    path = f"/v1/history/readers/{reader}"
    return Call("PUT", path, body, lambda got: _told(got).was_cut_off)


def commits(
    client: Client, partition: str, first: int, before: int
) -> Iterator[wire.Commit]:
    """All commits that hold events from `first` to before `before`, which are there."""
    while first < before:
        found = client.ask(page(partition, first, before))
        if not found:
            return
        yield from found
        first = found[-1].first + found[-1].count
