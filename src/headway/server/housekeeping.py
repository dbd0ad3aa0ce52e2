"""What a server does by itself, now and then: dead letters are not kept for ever."""

import asyncio
from contextlib import suppress
from typing import Any, Final

from headway.core.bulk import BulkVerb, Filter
from headway.core.commands import StartBulk
from headway.core.defaults import DEAD_KEPT_MS
from headway.core.errors import RuleBroken
from headway.runtime.errors import RuntimeFailure
from headway.runtime.listing import ListDead, ListQueues
from headway.runtime.owner import Ask
from headway.server.desk import Desk
from headway.server.tokens import wall_ms

EVERY_S: Final = 600.0
PAGE: Final = 100


async def keep_house(desk: Desk, every_s: float = EVERY_S) -> None:
    """Discards dead letters that have been kept for long enough, until cancelled."""
    while True:
        with suppress(RuntimeFailure, RuleBroken):
            await discard_old(desk, wall_ms() - DEAD_KEPT_MS)
        await asyncio.sleep(every_s)


async def discard_old(desk: Desk, before_ms: int) -> int:
    """Begins a bulk operation for each queue that has old ones; answers how many."""
    begun = 0
    after: str | None = ""
    old = Filter(died_before_ms=before_ms)
    while after is not None:
        page = await _answer(desk, ListQueues(after, PAGE))
        for queue in page.queues:
            if not queue.counts.dead:
                continue
            found = await _answer(desk, ListDead(queue.name, old, limit=1))
            if found.jobs:
                await _answer(desk, StartBulk(queue.name, BulkVerb.DISCARD, old))
                begun += 1
        after = page.next
    return begun


async def _answer(desk: Desk, ask: Ask) -> Any:
    answer = await asyncio.wrap_future(desk.submit(ask))
    if isinstance(answer, RuleBroken):
        raise answer
    return answer
