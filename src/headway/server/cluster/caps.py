"""What is said of tenants and kinds of a queue, in each of its partitions."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec

from headway.core import defaults
from headway.server.cluster.dividing import divided_cap
from headway.server.cluster.errand import Errand
from headway.server.cluster.wide import WideQueues, read
from headway.server.problems import Refused
from headway.wire import queues

PAGE: Final = 1_000
SAID_MAX: Final = 10_000
"""Tenants and kinds whose rules are copied."""
_PAGES: Final = {
    b"tenants": msgspec.json.Decoder(queues.TenantPage).decode,
    b"kinds": msgspec.json.Decoder(queues.KindPage).decode,
}
Said = list[tuple[bytes, list[Any]]]
"""Where something is said of a tenant or a kind, and what it is in each partition."""


class Caps:
    """Reads and divides what was said; errands are for the path of the queue."""

    def __init__(self, wide: WideQueues) -> None:
        self._wide = wide

    async def said(self, part: Errand, had: Sequence[str], number: int) -> Said:
        """For so many partitions, with caps divided anew."""
        rows = await self._rows(part, had)
        return [(where, _rules(row, number)) for where, row in rows.items()]

    async def put(self, part: Errand, partitions: Sequence[str], said: Said) -> None:
        for where, contents in said:
            await self._wide.put_each(part.with_target(where), partitions, contents)

    async def clear(self, part: Errand, partition: str, said: Said) -> None:
        """Takes back what was said in a partition while it was one of the queue's, and
        is not said any more."""
        known = {where for where, _ in said}
        for where, row in (await self._rows(part, [partition])).items():
            if where not in known:
                plain: Any = queues.KindRules(None, False, -1)
                if isinstance(row, queues.TenantShown):
                    plain = queues.TenantRules(defaults.WEIGHT, False, -1)
                await self._wide.put_each(part.with_target(where), [partition], [plain])

    async def give_back(self, part: Errand, gone: str, rest: Sequence[str]) -> None:
        """The caps of one that holds nothing any more are the others'.

        It loses its own first: if nobody goes on, less runs than might, never more.
        """
        mine = await self._rows(part, [gone])
        capped = {where for where, row in mine.items() if row.cap}
        if not capped:
            return
        said = await self.said(part, (*rest, gone), len(rest))
        for where, contents in said:
            if where in capped:
                none = msgspec.structs.replace(contents[0], cap=0)
                there = part.with_target(where)
                await self._wide.put_each(there, [gone], [none])
                await self._wide.put_each(there, rest, contents)

    async def _rows(self, part: Errand, partitions: Sequence[str]) -> dict[bytes, Any]:
        path = part.request.path
        rows: dict[bytes, Any] = {}
        for partition in partitions:
            for word in _PAGES:
                for row in await self._listed(part, partition, word):
                    name = row.tenant if word == b"tenants" else row.kind
                    where = b"%s/%s/%s" % (path, word, quote(name, safe="").encode())
                    known = rows.setdefault(where, row)
                    if known is not row and row.cap is not None:
                        known.cap = (known.cap or 0) + row.cap
        if len(rows) > SAID_MAX:
            text = f"more than {SAID_MAX} tenants and kinds have rules of their own"
            raise Refused("wrong_state", text)
        return rows

    async def _listed(self, part: Errand, partition: str, word: bytes) -> list[Any]:
        rows: list[Any] = []
        after: str | None = None
        while len(rows) <= SAID_MAX:
            target = b"%s/%s?limit=%d" % (part.request.path, word, PAGE)
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
