"""What is asked about published writes."""

import msgspec

from headway.core.book import Book
from headway.core.errors import UnknownWrite
from headway.core.publishing import find
from headway.core.write import WriteView, view_of


class WriteList(msgspec.Struct, frozen=True):
    """Writes that are being taken in, the oldest first."""

    writes: list[WriteView]


class ListWrites(msgspec.Struct, eq=False):
    """Asks for the writes that are being taken in. Answered by a WriteList."""


class ShowWrite(msgspec.Struct, eq=False):
    """Asks for a write, or one of its series that went as far. Answered by a WriteView."""

    id: str
    series: str = ""
    number: int = 0


def look_at_writes(
    book: Book, query: ListWrites | ShowWrite
) -> WriteList | WriteView | UnknownWrite:
    if isinstance(query, ShowWrite):
        write = find(book, query.id, query.series, query.number)
        if write is None:
            return UnknownWrite(f"there is no write {query.id!r}")
        return view_of(write, is_repeated=True)
    running = [one for one in book.writes.values() if one.ended_ms is None]
    running.sort(key=lambda one: (one.published_ms, one.id))
    return WriteList([view_of(one) for one in running])
