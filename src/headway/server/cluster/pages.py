"""Pages of several partitions as one."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def merged(
    pages: Iterable[tuple[list[T], Any]],
    key: Callable[[T], Any],
    limit: int,
    fold: Callable[[T, T], T] | None = None,
) -> tuple[list[T], Any]:
    """The first of all of them in the order of their keys, and the last key if there
    are others.

    A page ends at its `next`: what another partition has behind it may not be all that
    there is up to there, and is left for the next page. Rows of one key are folded.
    """
    pages = list(pages)
    ends = [end for _, end in pages if end is not None]
    bound = min(ends, default=None)
    rows: dict[Any, T] = {}
    for items, _ in pages:
        for item in items:
            place = key(item)
            if bound is not None and place > bound:
                continue
            known = rows.get(place)
            rows[place] = item if known is None or fold is None else fold(known, item)
    places = sorted(rows)
    if len(places) > limit:
        places = places[:limit]
        bound = places[-1]
    return [rows[place] for place in places], bound
