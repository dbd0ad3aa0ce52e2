"""Where a queue is, asked for and changed in the database."""

import asyncio
from collections.abc import Callable
from typing import Any

from headway.core.cluster import Placement
from headway.core.errors import RuleBroken
from headway.server.cluster.errand import Unreached
from headway.server.cluster.places import Looked, Places
from headway.server.problems import Refused


def open_of(places: Places, queue: str, partitions: tuple[str, ...]) -> tuple[str, ...]:
    """Those of its partitions that take new jobs."""
    mark = places.marks.get(queue)
    return partitions if mark is None or not mark.leaving else mark.open


async def fetched(places: Places, queue: str) -> Placement:
    """All that is known of a queue that has been placed."""
    found = await _told(lambda then: places.placement(queue, then))
    if found is None:
        raise Refused("unknown_queue", f"there is no queue {queue!r}")
    return found


async def replaced(places: Places, queue: str, to: Placement) -> Placement | None:
    """None if somebody else has changed it since `to` was looked at."""
    return await _told(lambda then: places.replace(queue, to, then))


async def _told(asked: Callable[[Looked], None]) -> Placement | None:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def told(found: Placement | Exception | None) -> None:
        if not answer.done():
            answer.set_result(found)

    asked(told)
    found = await answer
    if isinstance(found, RuleBroken):
        raise found
    if isinstance(found, Exception):
        text = "the database does not say where the queue is"
        raise Unreached(text, is_unknown=True) from found
    placement: Placement | None = found
    return placement
