"""Gives a queue more partitions, or fewer, so that no limit is passed on the way."""

import asyncio
from typing import Any, Final
from urllib.parse import quote

import msgspec

from headway.core.cluster import Placement
from headway.server import bodies
from headway.server.call import answer
from headway.server.cluster.caps import Caps, Said
from headway.server.cluster.dividing import divided, ranked
from headway.server.cluster.errand import Errand
from headway.server.cluster.narrowing import Narrowing, held
from headway.server.cluster.places import Places
from headway.server.cluster.placing import fetched, replaced
from headway.server.cluster.reach import Reach
from headway.server.cluster.wide import Failed, WideQueues, read
from headway.server.cluster.wide_shapes import whole
from headway.server.http.message import Response
from headway.server.problems import Refused
from headway.wire import operations, queues

FITS_S: Final = 5.0
"""How long a queue that is widened may take to have no more running than its part."""
LOOK_S: Final = 0.05
MEANWHILE: Final = "its partitions are being changed by somebody else: come again"
_width: Final["msgspec.json.Decoder[Any]"] = msgspec.json.Decoder(queues.Width)
_schedules: Final = msgspec.json.Decoder(operations.SchedulePage).decode
_encode: Final = msgspec.json.Encoder().encode


class Widening:
    """Changes in how many partitions a queue is."""

    def __init__(
        self,
        places: Places,
        reach: Reach,
        wide: WideQueues,
        narrowing: Narrowing,
        default_queue: str,
    ) -> None:
        self._places = places
        self._reach = reach
        self._wide = wide
        self._narrowing = narrowing
        self._caps = Caps(wide)
        self._default_queue = default_queue

    async def show(self, errand: Errand, queue: str) -> Response:
        """From the home it is known that the queue is there."""
        placement = await fetched(self._places, queue)
        response = await self._reach.ask(placement.partitions[0], errand)
        return response if response.status != 200 else _told(placement)

    async def widen(self, errand: Errand, queue: str) -> Response:
        """Rules are divided first, then the others take part."""
        width: queues.Width = bodies.read(errand.request.body, _width)
        known = len(self._places.partitions())
        most = known if width.max is None else width.max
        if width.count == "auto":
            number = None
        else:
            number = width.count
            if width.max is not None:
                raise Refused("bad_value", "it is for auto only", "max")
        if (most if number is None else number) > known:
            key = "max" if number is None else "count"
            raise Refused("bad_value", f"there are {known} partitions", key)
        if number != 1 and queue == self._default_queue:
            text = "the queue of the four simple endpoints has one partition"
            raise Refused("bad_value", text, "count")
        try:
            placement = await self._leave_to(
                queue, None if number is not None else most
            )
            if number is None:
                number = min(len(placement.open), most)
            placement = await self.bring(errand, queue, number)
            # Its home keeps who has done it.
            noted = errand.with_body(_encode(queues.Width(1)))
            response = await self._reach.ask(placement.partitions[0], noted)
        except Failed as failed:
            return failed.response
        return response if response.status != 200 else _told(placement)

    async def _leave_to(self, queue: str, most: int | None) -> Placement:
        """Whether its width is left to the nodes."""
        placement = await fetched(self._places, queue)
        if placement.most == most:
            return placement
        return await self._replaced(
            queue, msgspec.structs.replace(placement, most=most)
        )

    async def bring(self, errand: Errand, queue: str, number: int) -> Placement:
        """To so many partitions that take new jobs."""
        part = errand.with_target(b"/v1/queues/%s" % quote(queue, safe="").encode())
        placement = await fetched(self._places, queue)
        if number < len(placement.open):
            return await self._narrowed(part, queue, placement, number)
        back = placement.leaving[: number - len(placement.open)]
        if back:
            stay = tuple(one for one in placement.leaving if one not in back)
            to = msgspec.structs.replace(placement, leaving=stay)
            placement = await self._replaced(queue, to)
            placement = await self._stepped(queue)
        if number > len(placement.open):
            placement = await self._settled(queue, placement)
            placement = await self._widened(part, queue, placement, number)
        return placement

    async def _narrowed(
        self, part: Errand, queue: str, placement: Placement, number: int
    ) -> Placement:
        """Some take no new jobs from now on; those that are to be closed go first."""
        known = self._places.partitions()
        order = sorted(placement.open[1:], key=lambda one: one not in known)
        going = order[number - 1 :]
        for name in going:
            await self._refuse_schedules(part, name)
        rules = placement.whole
        if rules is None:
            shown = await self._wide.shows(part, placement.partitions)
            rules = _encode(whole([one.rules for one in shown]))
        leaving = (*placement.leaving, *going)
        to = msgspec.structs.replace(placement, leaving=leaving, whole=rules)
        await self._replaced(queue, to)
        return await self._stepped(queue)

    async def _refuse_schedules(self, part: Errand, partition: str) -> None:
        """A queue may have been in several partitions before there was a cluster."""
        look = part.with_target(part.request.path + b"/schedules")
        response = await self._wide.good(partition, look)
        if read(partition, response, _schedules).schedules:
            text = f"schedules of the queue are kept in {partition}: drop them first"
            raise Refused("wrong_state", text)

    async def _replaced(self, queue: str, to: Placement) -> Placement:
        placement = await replaced(self._places, queue, to)
        if placement is None:
            raise Refused("wrong_state", MEANWHILE)
        return placement

    async def _stepped(self, queue: str) -> Placement:
        """Does what can be done at once."""
        while await self._narrowing.step(queue):
            pass
        return await fetched(self._places, queue)

    async def _settled(self, queue: str, placement: Placement) -> Placement:
        """Until every partition has its part of the rules, before long."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + FITS_S
        while placement.whole is not None:
            if loop.time() > until_s:
                text = (
                    "its jobs are still being divided: come again when there are less"
                )
                raise Refused("wrong_state", text)
            await asyncio.sleep(LOOK_S)
            placement = await self._stepped(queue)
        return placement

    async def _widened(
        self, part: Errand, queue: str, placement: Placement, number: int
    ) -> Placement:
        wide, had = self._wide, placement.partitions
        others = tuple(one for one in self._places.partitions() if one not in had)
        more = ranked(queue, others)[: number - len(had)]
        everywhere = (*had, *more)
        shown = await wide.shows(part, had)
        before = [one.rules for one in shown]
        rules = whole(before)
        after = divided(rules, len(everywhere))
        said = await self._caps.said(part, had, len(everywhere))
        # From here on things change, in an order in which no sum passes its whole.
        try:
            await wide.put_each(part, had, after)
            excess = await self._opened(part, had, after, more, said)
        except (Failed, Refused):
            await wide.put_each(part, had, before)
            raise
        to = msgspec.structs.replace(
            placement,
            partitions=everywhere,
            whole=_encode(rules) if excess else None,
        )
        widened = await replaced(self._places, queue, to)
        if widened is None:
            await wide.put_each(part, had, before)
            raise Refused("wrong_state", MEANWHILE)
        return widened

    async def _opened(
        self,
        part: Errand,
        had: tuple[str, ...],
        after: list[queues.QueueRules],
        more: list[str],
        said: Said,
    ) -> int:
        """The new ones have their part of everything. Answers how many jobs the others
        have beyond theirs: for so many less there is room until those are gone."""
        if not await self._fits(part, had):
            text = "more runs than its part allows: come again when less does"
            raise Refused("wrong_state", text)
        shown = await self._wide.shows(part, had)
        excess = _excess(after, shown)
        await self._wide.put_each(part, more, _shorter(after[len(had) :], excess))
        for name in more:
            await self._caps.clear(part, name, said)
            await self._hold(part, name, shown[0])
        await self._caps.put(part, (*had, *more), said)
        return excess

    async def _hold(
        self, part: Errand, partition: str, home: queues.QueueShown
    ) -> None:
        """As it is at home, whatever it was when it was one of the queue's before."""
        paused = b"/pause" if home.is_paused else b"/resume"
        blocked = b"/block" if home.is_blocked else b"/unblock"
        for verb in (paused, blocked):
            held = part.with_target(part.request.path + verb, b"POST")
            await self._wide.good(partition, held)

    async def _fits(self, part: Errand, partitions: tuple[str, ...]) -> bool:
        """Whether no more runs than the smaller limits allow, before long."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + FITS_S
        while True:
            shown = await self._wide.shows(part, partitions)
            limits = [limit for one in shown for limit in one.limits]
            if all(limit.used <= limit.max for limit in limits):
                return True
            if loop.time() > until_s:
                return False
            await asyncio.sleep(LOOK_S)


def _excess(parts: list[queues.QueueRules], shown: list[queues.QueueShown]) -> int:
    """Jobs that are there beyond what the parts of those who have them allow."""
    return sum(
        max(0, held(one) - rules.max_length)
        for rules, one in zip(parts, shown, strict=False)
        if rules.max_length is not None
    )


def _shorter(parts: list[queues.QueueRules], excess: int) -> list[queues.QueueRules]:
    """Room for so many jobs less, until they are gone elsewhere."""
    found = []
    for rules in parts:
        less = min(rules.max_length or 0, excess)
        excess -= less
        length = None if rules.max_length is None else rules.max_length - less
        found.append(msgspec.structs.replace(rules, max_length=length))
    return found


def _told(placement: Placement) -> Response:
    return answer(
        queues.QueuePlaces(
            list(placement.partitions), list(placement.leaving), placement.most
        )
    )
