"""Brings the partitions of a queue to what the tables say, one step at a time.

While a queue gets fewer partitions, or more than its length lets in at once, the tables
keep its whole rules. Every step looks at what there is and does what comes next, so
whoever goes on after a crash, or beside somebody else, does no harm.
"""

import asyncio
from typing import Final
from urllib.parse import quote
from weakref import WeakValueDictionary

import msgspec

from headway.core.cluster import Placement
from headway.server.cluster.caps import Caps
from headway.server.cluster.dividing import parted
from headway.server.cluster.errand import Errand, Unreached
from headway.server.cluster.peers import PeerFailure
from headway.server.cluster.places import Places
from headway.server.cluster.placing import fetched, replaced
from headway.server.cluster.reach import Reach
from headway.server.cluster.wide import Failed, WideQueues
from headway.server.http.message import Request
from headway.server.routing import Router
from headway.server.rules import config_of
from headway.server.scopes import NODE
from headway.wire import queues

PATH: Final = b"/v1/cluster/step"
ANSWER_S: Final = 30.0


class Wish(msgspec.Struct):
    """For the next step of a queue whose partitions change."""

    queue: str


class Stepped(msgspec.Struct):
    is_more: bool


_wish: Final = msgspec.json.Decoder(Wish).decode
_stepped: Final = msgspec.json.Decoder(Stepped).decode
_rules: Final = msgspec.json.Decoder(queues.QueueRules).decode
_encode: Final = msgspec.json.Encoder().encode


class Narrowing:
    """Takes partitions away from queues, without passing a limit on the way."""

    def __init__(
        self, places: Places, reach: Reach, wide: WideQueues, router: Router
    ) -> None:
        self._places = places
        self._reach = reach
        self._wide = wide
        self._router = router
        self._caps = Caps(wide)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._calm: dict[str, int] = {}
        """Queues that were found as they should be, and at which version."""

    async def step(self, queue: str) -> bool:
        """Does what comes next; answers whether there may be more to do at once.

        The node that holds the home does it, so that two don't do it at once.
        """
        home = (await fetched(self._places, queue)).partitions[0]
        if self._places.local(home) is None:
            return await self._elsewhere(queue, home)
        lock = self._locks.setdefault(queue, asyncio.Lock())
        async with lock:
            return await self._step(queue)

    async def tell(self, body: bytes) -> bytes | None:
        """The answer to another node's wish for a step; None if it is none."""
        try:
            queue = _wish(body).queue
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        home = (await fetched(self._places, queue)).partitions[0]
        if self._places.local(home) is None:
            raise Unreached("the queue's home is not here", is_unknown=False)
        try:
            return _encode(Stepped(await self.step(queue)))
        except Failed as failed:
            text = f"a partition of queue {queue!r} has answered {failed}"
            raise Unreached(text, is_unknown=False) from failed

    async def _elsewhere(self, queue: str, home: str) -> bool:
        url = self._places.address(home)
        if url is None:
            text = f"nobody holds partition {home} at the moment"
            raise Unreached(text, is_unknown=False)
        headers = {b"content-type": b"application/json"}
        request = Request(b"POST", PATH, headers, _encode(Wish(queue)))
        try:
            response = await self._reach.node(url, request, ANSWER_S)
            if response.status != 200:
                raise Failed(response)
            return _stepped(response.body).is_more
        except (PeerFailure, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unreached(f"partition {home}: {error}", is_unknown=False) from error

    async def _step(self, queue: str) -> bool:
        placement = await fetched(self._places, queue)
        if placement.whole is None:
            self._calm.pop(queue, None)
            return False
        part = self.errand(queue)
        names = placement.partitions
        shown = await self._wide.shows(part, names)
        parts = parted(_rules(placement.whole), placement)
        wrong = [
            (name, rules, is_longer(rules, one.rules))
            for name, rules, one in zip(names, parts, shown, strict=True)
            if config_of(queue, rules) != config_of(queue, one.rules)
        ]
        must_wait = is_over(placement, parts, shown)
        for name, rules, is_more in wrong:
            if not (must_wait and is_more):
                await self._wide.put_each(part, [name], [rules])
        if wrong:
            return not must_wait
        gone = [
            name
            for name, one in zip(names, shown, strict=True)
            if name in placement.leaving and is_empty(one)
        ]
        if gone:
            return await self._leave(part, queue, placement, gone[0])
        if not placement.leaving:
            await self._finish(queue, placement)
        return False

    async def _leave(
        self, part: Errand, queue: str, placement: Placement, gone: str
    ) -> bool:
        """It holds nothing and takes nothing: the others have its part from now on."""
        rest = tuple(one for one in placement.partitions if one != gone)
        await self._caps.give_back(part, gone, rest)
        leaving = tuple(one for one in placement.leaving if one != gone)
        to = msgspec.structs.replace(placement, partitions=rest, leaving=leaving)
        await replaced(self._places, queue, to)
        return True

    async def _finish(self, queue: str, placement: Placement) -> None:
        """Only if it was so at the look before, too: rules may be on their way."""
        if self._calm.get(queue) == placement.version:
            del self._calm[queue]
            to = msgspec.structs.replace(placement, whole=None)
            await replaced(self._places, queue, to)
        else:
            self._calm[queue] = placement.version

    def errand(self, queue: str) -> Errand:
        """Of the node itself, for the queue."""
        target = b"/v1/queues/%s" % quote(queue, safe="").encode()
        request = Request(b"GET", target, {b"host": b"localhost"}, is_own=True)
        found = self._router.find(request)
        return Errand(request, found.route, found.params, NODE, is_hop=False)


def is_empty(shown: queues.QueueShown) -> bool:
    """Whether no job is there in any state, and no rate remembers one."""
    return not any(msgspec.structs.astuple(shown.counts)) and not any(
        limit.used for limit in shown.limits
    )


def held(shown: queues.QueueShown) -> int:
    """What counts for its length."""
    counts = shown.counts
    return counts.ready + counts.scheduled + counts.leased


def is_over(
    placement: Placement,
    parts: list[queues.QueueRules],
    shown: list[queues.QueueShown],
) -> bool:
    """Whether one that stays holds more jobs than its part of the length: room that is
    made elsewhere would let in more than the whole."""
    return any(
        rules.max_length is not None and held(one) > rules.max_length
        for name, rules, one in zip(placement.partitions, parts, shown, strict=True)
        if name not in placement.leaving
    )


def is_longer(new: queues.QueueRules, old: queues.QueueRules) -> bool:
    if old.max_length is None:
        return False
    return new.max_length is None or new.max_length > old.max_length
