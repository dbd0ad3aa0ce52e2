"""Gives a queue more partitions, so that no limit is passed on the way."""

import asyncio
from typing import Any, Final
from urllib.parse import quote

import msgspec

from headway.server import bodies
from headway.server.call import answer
from headway.server.cluster.dividing import divided, divided_cap, ranked
from headway.server.cluster.errand import Errand
from headway.server.cluster.places import Places
from headway.server.cluster.reach import Reach
from headway.server.cluster.wide import Failed, WideQueues, read
from headway.server.cluster.wide_shapes import whole
from headway.server.http.message import Response
from headway.server.problems import Refused
from headway.wire import queues

FITS_S: Final = 5.0
"""How long a queue that is widened may take to have no more running than its part."""
LOOK_S: Final = 0.05
PAGE: Final = 1_000
SAID_MAX: Final = 10_000
"""Tenants and kinds whose rules are copied."""
_width: Final["msgspec.json.Decoder[Any]"] = msgspec.json.Decoder(queues.Width)
_encode: Final = msgspec.json.Encoder().encode
_PAGES: Final = {
    b"tenants": msgspec.json.Decoder(queues.TenantPage).decode,
    b"kinds": msgspec.json.Decoder(queues.KindPage).decode,
}
Said = list[tuple[bytes, list[Any]]]
"""Where something is said of a tenant or a kind, and what it is in each partition."""


class Widening:
    """Changes in how many partitions a queue is."""

    def __init__(
        self, places: Places, reach: Reach, wide: WideQueues, default_queue: str
    ) -> None:
        self._places = places
        self._reach = reach
        self._wide = wide
        self._default_queue = default_queue

    async def show(self, errand: Errand, partitions: tuple[str, ...]) -> Response:
        """From the home it is known that the queue is there."""
        response = await self._reach.ask(partitions[0], errand)
        if response.status != 200:
            return response
        return answer(queues.QueuePlaces(list(partitions)))

    async def widen(
        self, errand: Errand, queue: str, partitions: tuple[str, ...]
    ) -> Response:
        """Rules are divided first, then the others take part."""
        number = bodies.read(errand.request.body, _width).count
        known = tuple(self._places.partitions())
        if number < len(partitions):
            text = f"it has {len(partitions)} partitions, and none is taken away"
            raise Refused("wrong_state", text, "count")
        if number > len(known):
            raise Refused("bad_value", f"there are {len(known)} partitions", "count")
        if number > 1 and queue == self._default_queue:
            text = "the queue of the four simple endpoints has one partition"
            raise Refused("bad_value", text, "count")
        try:
            if number > len(partitions):
                others = tuple(name for name in known if name not in partitions)
                more = ranked(queue, others)[: number - len(partitions)]
                partitions = await self._widened(errand, queue, partitions, more)
            # Its home keeps who has done it.
            noted = errand.with_body(_encode(queues.Width(1)))
            response = await self._reach.ask(partitions[0], noted)
        except Failed as failed:
            return failed.response
        if response.status != 200:
            return response
        return answer(queues.QueuePlaces(list(partitions)))

    async def _widened(
        self, errand: Errand, queue: str, had: tuple[str, ...], more: list[str]
    ) -> tuple[str, ...]:
        path = b"/v1/queues/%s" % quote(queue, safe="").encode()
        part = errand.with_target(path)
        wide = self._wide
        everywhere = (*had, *more)
        shown = [await wide.show(part, name) for name in had]
        before = [one.rules for one in shown]
        after = divided(whole(before), len(everywhere))
        said = await self._said(part, path, had, len(everywhere))
        # From here on things change, in an order in which no sum passes its whole.
        await wide.put_each(part, had, after)
        if not await self._fits(part, had):
            await wide.put_each(part, had, before)
            text = "more runs than its part allows: come again when less does"
            raise Refused("wrong_state", text)
        await wide.put_each(part, more, after[len(had) :])
        for where, contents in said:
            await wide.put_each(part.with_target(where), everywhere, contents)
        for name in more:
            await self._hold(part, path, name, shown[0])
        return await self._spread(queue, everywhere)

    async def _hold(
        self, part: Errand, path: bytes, partition: str, home: queues.QueueShown
    ) -> None:
        for is_held, verb in ((home.is_paused, b"pause"), (home.is_blocked, b"block")):
            if is_held:
                held = part.with_target(path + b"/" + verb, b"POST")
                await self._wide.good(partition, held)

    async def _spread(self, queue: str, partitions: tuple[str, ...]) -> tuple[str, ...]:
        placed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def told(found: tuple[str, ...] | Exception) -> None:
            if not placed.done():
                placed.set_result(found)

        self._places.spread(queue, partitions, told)
        found = await placed
        if isinstance(found, Exception):
            raise found
        return tuple(found)

    async def _fits(self, part: Errand, partitions: tuple[str, ...]) -> bool:
        """Whether no more runs than the smaller limits allow, before long."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + FITS_S
        while True:
            shown = [await self._wide.show(part, name) for name in partitions]
            limits = [limit for one in shown for limit in one.limits]
            if all(limit.used <= limit.max for limit in limits):
                return True
            if loop.time() > until_s:
                return False
            await asyncio.sleep(LOOK_S)

    async def _said(
        self, part: Errand, path: bytes, had: tuple[str, ...], number: int
    ) -> Said:
        """What was said of tenants and kinds, with their caps divided anew."""
        rows: dict[bytes, Any] = {}
        for partition in had:
            for word in _PAGES:
                for row in await self._rows(part, path, partition, word):
                    name = row.tenant if word == b"tenants" else row.kind
                    where = b"%s/%s/%s" % (path, word, quote(name, safe="").encode())
                    known = rows.setdefault(where, row)
                    if known is not row and row.cap is not None:
                        known.cap = (known.cap or 0) + row.cap
        if len(rows) > SAID_MAX:
            text = f"more than {SAID_MAX} tenants and kinds have rules of their own"
            raise Refused("wrong_state", text)
        return [(where, _rules(row, number)) for where, row in rows.items()]

    async def _rows(
        self, part: Errand, path: bytes, partition: str, word: bytes
    ) -> list[Any]:
        rows: list[Any] = []
        after: str | None = None
        while len(rows) <= SAID_MAX:
            target = b"%s/%s?limit=%d" % (path, word, PAGE)
            if after is not None:
                target += b"&after=" + quote(after, safe="").encode()
            look = part.with_target(target)
            look.is_repeatable = True
            response = await self._wide.good(partition, look)
            page = read(partition, response, _PAGES[word])
            rows += page.tenants if word == b"tenants" else page.kinds
            if page.next is None:
                break
            after = page.next
        return rows


def _rules(row: Any, number: int) -> list[Any]:
    """What is to be said of a tenant or a kind in each partition."""
    caps = divided_cap(row.cap, number)
    if isinstance(row, queues.TenantShown):
        return [queues.TenantRules(row.weight, row.is_paused, cap) for cap in caps]
    return [queues.KindRules(row.cost, row.is_paused, cap) for cap in caps]
