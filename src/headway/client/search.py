"""Jobs of a server's index, and the queues it has, page by page."""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

import msgspec

from headway.client.blocking import Client
from headway.client.calls import Call
from headway.wire.jobs import Found

PAGE: Final = 1_000


class _Named(msgspec.Struct):
    name: str


class _Names(msgspec.Struct):
    queues: list[_Named]
    next: str | None = None


_found: Final = msgspec.json.Decoder(Found).decode
_names: Final = msgspec.json.Decoder(_Names).decode


def search(query: Mapping[str, str | int]) -> Call[Found]:
    """One page of what `GET /v1/jobs` finds."""
    return Call("GET", f"/v1/jobs?{urlencode(query)}", b"", _found)


def pages(client: Client, query: Mapping[str, str | int]) -> Iterator[Found]:
    """All pages of a search."""
    asked = {"limit": PAGE, **query}
    while True:
        found = client.ask(search(asked))
        yield found
        if found.next is None:
            return
        asked["cursor"] = found.next


def queues(client: Client) -> Iterator[str]:
    """The names of all queues that the caller may read."""
    after = ""
    while True:
        path = f"/v1/queues?limit={PAGE}"
        if after:
            path += f"&after={quote(after, safe='')}"
        found = client.ask(Call("GET", path, b"", _names))
        yield from (queue.name for queue in found.queues)
        if found.next is None:
            return
        after = found.next
