"""The ways of requests that are for another node, or for several partitions."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from headway.core.errors import RuleBroken
from headway.runtime.errors import RuntimeFailure
from headway.server.app import App
from headway.server.call import answer
from headway.server.callbacks import Callbacks
from headway.server.cluster import spreading
from headway.server.cluster.errand import Errand, Unreached
from headway.server.cluster.hints import Hints, Queues
from headway.server.cluster.leasing import Leasing, queues_of
from headway.server.cluster.merging import LABELLED, RANKED_MAX, limit_of, merge
from headway.server.cluster.meter import Meter
from headway.server.cluster.narrowing import Narrowing
from headway.server.cluster.places import Places
from headway.server.cluster.placing import open_of
from headway.server.cluster.reach import Reach
from headway.server.cluster.rules import (
    By,
    Rule,
    Wide,
    partition_of_job,
)
from headway.server.cluster.walking import CURSORS, walk, with_query
from headway.server.cluster.wide import WideQueues
from headway.server.cluster.widening import Widening
from headway.server.handlers.about import Health
from headway.server.handlers.capacity import TEXT
from headway.server.http.message import Response
from headway.server.problems import Refused
from headway.server.routing import Router
from headway.server.scopes import Verb
from headway.wire.values import QUEUE
from headway.wire.work import QUEUES_MAX

_QUEUE: Final = re.compile(QUEUE)


class _Reader(msgspec.Struct):
    partition: str = ""


_reader: Final = msgspec.json.Decoder(_Reader).decode


class Ways:
    """Finds the partitions of a request, asks them, and makes one answer of it."""

    def __init__(
        self,
        places: Places,
        reach: Reach,
        callbacks: Callbacks,
        router: Router,
        default_queue: str,
        *,
        meter: Meter | None = None,
    ) -> None:
        self._places = places
        self._meter = meter
        self._reach = reach
        self._callbacks = callbacks
        self._default_queue = default_queue
        self.hints = Hints(places, reach)
        self._leasing = Leasing(places, reach, self.hints)
        self._wide = WideQueues(places, reach)
        self.narrowing = Narrowing(places, reach, self._wide, router)
        self.widening = Widening(
            places, reach, self._wide, self.narrowing, default_queue
        )

    def any_local(self) -> App | None:
        """Some partition of this node, if it has one."""
        local = self._places.local
        for partition in self._places.partitions():
            app = local(partition)
            if app is not None:
                return app
        return None

    async def go(self, errand: Errand, rule: Rule) -> Response:
        match rule.by:
            case By.QUEUE | By.DEFAULT | By.SOURCE | By.CHUNK:
                return await self._to_queue(errand, rule)
            case By.JOB | By.PARTITION | By.TOKEN | By.READER | By.NAMED | By.ANY:
                partition = self._named(errand, rule)
                return await self._reach.ask(partition, errand, is_long=rule.is_long)
            case By.TOKENS:
                return await self._to_tokens(errand)
            case By.LEASE:
                return await self._to_lease(errand)
            case By.WRITE | By.OPERATION:
                return await self._to_one_of_all(errand)
            case By.HEALTH:
                return await self._health(errand)
            case By.WIDTH:
                return await self._width(errand)
            case By.LOCAL:
                return await self._to_local(errand)
            case By.EVERY:
                return await self._to_every(errand)

    async def _to_queue(self, errand: Errand, rule: Rule) -> Response:
        queue = self._queue(errand, rule)
        if queue is None:
            # Whoever is asked refuses it: nobody knows the source, or no queue is named.
            return await self._reach.ask(self._some(), errand)
        partitions = await self.partitions_of(queue)
        if len(partitions) == 1 or rule.wide is Wide.HOME:
            return await self._reach.ask(partitions[0], errand)
        match rule.wide:
            case Wide.SPREAD:
                taking = open_of(self._places, queue, partitions)
                return await self._wide.enqueue(errand, taking)
            case Wide.RULES:
                return await self._wide.configure(errand, queue, partitions)
            case Wide.WALK:
                return await walk(self._reach, errand, partitions)
            case _:
                return await self._gathered(errand, partitions)

    def _queue(self, errand: Errand, rule: Rule) -> str | None:
        if rule.by is By.DEFAULT:
            return self._default_queue
        if rule.by is By.SOURCE:
            return self._callbacks.queue_of(errand.params["source"])
        if rule.by is By.CHUNK:
            return dict(errand.request.query()).get("queue")
        queue = errand.params["queue"]
        if errand.route.is_queue_checked:
            errand.require(errand.route.verb, queue)
        return queue

    def _named(self, errand: Errand, rule: Rule) -> str:
        """The partition that a request names; some other, if there is none such."""
        name = ""
        match rule.by:
            case By.JOB:
                name = partition_of_job(errand.params["id"])
            case By.PARTITION:
                name = errand.params["partition"]
            case By.TOKEN:
                name = next(iter(spreading.partitions_of(errand.request.body)), "")
            case By.READER:
                try:
                    name = _reader(errand.request.body).partition
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    name = ""
            case By.NAMED:
                given = dict(errand.request.query()).get("partition")
                if given is not None:
                    errand.request = with_query(errand.request, {"partition": None})
                    if not self._is_known(given):
                        text = f"there is no partition {given[:80]!r}"
                        raise Refused("not_found", text)
                    name = given
        return name if self._is_known(name) else self._some()

    async def _to_tokens(self, errand: Errand) -> Response:
        named = spreading.partitions_of(errand.request.body)
        known = frozenset(name for name in named if self._is_known(name))
        if len(named) <= 1 or not known:
            partition = next(iter(known), None) or self._some()
            return await self._reach.ask(partition, errand)
        return await spreading.settle(self._reach, errand, known)

    async def _to_lease(self, errand: Errand) -> Response:
        try:
            queues = queues_of(errand.request.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return await self._reach.ask(self._some(), errand)
        split = await self._split(errand, queues)
        if len(split) > 1:
            return await self._leasing.lease(errand, split)
        partition = next(iter(split), None) or self._some()
        return await self._reach.ask(partition, errand, is_long=True)

    async def _split(
        self, errand: Errand, queues: list[str] | None
    ) -> dict[str, Queues]:
        """Queues by partition; those that are wide are in several."""
        if queues is None:
            return dict.fromkeys(self._places.partitions())
        if len(queues) > QUEUES_MAX:
            raise Refused("bad_value", f"at most {QUEUES_MAX}", "queues")
        split: dict[str, list[str]] = {}
        for queue in dict.fromkeys(queues):
            errand.require(errand.route.verb, queue)
            for partition in await self.partitions_of(queue):
                split.setdefault(partition, []).append(queue)
        return {name: tuple(mine) for name, mine in split.items()}

    async def _to_local(self, errand: Errand) -> Response:
        """What others hold they tell themselves: each is asked by who wants to know."""
        errand.require(errand.route.verb, None)
        mine = self._mine()
        own = b""
        if self._meter is not None:
            own = self._meter.text(self._places.left_s, len(mine))
        if not mine:
            return Response(200, own, TEXT.encode())
        found = await self._gathered(errand, mine)
        if found.status == 200:
            found.body += own
        return found

    def _mine(self) -> list[str]:
        local = self._places.local
        return [name for name in self._places.partitions() if local(name) is not None]

    async def _to_every(self, errand: Errand) -> Response:
        operation = errand.route.operation
        partitions: Sequence[str] = list(self._places.partitions()) or [self._some()]
        query = dict(errand.request.query())
        if operation == "capacity_autoscale" and query.get("queues"):
            return await self._autoscale(errand, query["queues"].split(","))
        queue = query.get("queue")
        if queue is not None and operation in ("ranking_workers", *CURSORS):
            errand.require(Verb.READ, queue)
            partitions = await self.partitions_of(queue)
        if operation in CURSORS:
            return await walk(self._reach, errand, partitions)
        if operation == "ranking_queues":
            return await self._ranking(errand, partitions, query)
        return await self._gathered(errand, partitions)

    async def _ranking(
        self, errand: Errand, partitions: Sequence[str], query: dict[str, str]
    ) -> Response:
        """Each partition's first rows: one of them might have all of the page."""
        try:
            rows = int(query.get("skip", 0)) + limit_of(errand, 50)
        except ValueError:
            return await self._reach.ask(partitions[0], errand)
        if not 1 <= rows <= RANKED_MAX:
            text = f"with the limit at most {RANKED_MAX} in a cluster"
            raise Refused("bad_value", text, "skip")
        request = with_query(errand.request, {"skip": None, "limit": str(rows)})
        return await self._gathered(errand, partitions, errand.with_request(request))

    async def _autoscale(self, errand: Errand, names: list[str]) -> Response:
        split = await self._split(errand, names)
        asks = []
        for partition, queues in split.items():
            changes: dict[str, str | None] = {"queues": ",".join(queues or ())}
            part = errand.with_request(with_query(errand.request, changes))
            asks.append(self._reach.ask(partition, part))
        return merge(errand, list(zip(split, await asyncio.gather(*asks), strict=True)))

    async def _gathered(
        self, errand: Errand, partitions: Iterable[str], part: Errand | None = None
    ) -> Response:
        """All are asked side by side; one that is not reached fails it."""
        names = list(partitions)
        asks = [self._reach.ask(name, part or errand) for name in names]
        got = await asyncio.gather(*asks)
        is_whole = part is None and errand.route.operation not in LABELLED
        if len(names) == 1 and is_whole:
            return got[0]
        return merge(errand, list(zip(names, got, strict=True)))

    async def _to_one_of_all(self, errand: Errand) -> Response:
        """To the partition that knows the write or the operation, if one does."""
        given = dict(errand.request.query()).get("partition")
        names = list(self._places.partitions())
        if given is not None:
            if not self._is_known(given):
                raise Refused("not_found", f"there is no partition {given[:80]!r}")
            names = [given]
            errand.request = with_query(errand.request, {"partition": None})
        if len(names) > 1:
            path = errand.request.path.removesuffix(b"/publish").removesuffix(b"/stop")
            look = errand.with_target(path)
            look.is_repeatable = True
            got = await asyncio.gather(*(self._reach.ask(p, look) for p in names))
            known = [p for p, one in zip(names, got, strict=True) if one.status != 404]
            if len(known) > 1:
                text = f"{', '.join(known)} have one of this name: add ?partition="
                raise Refused("bad_value", text, "partition")
            names = known or names
        return await self._reach.ask(names[0] if names else self._some(), errand)

    async def _health(self, errand: Errand) -> Response:
        """A node that holds nothing still answers: it knows who does."""
        if errand.route.operation == "about_livez":
            return answer(Health("ok"))
        if not self._places.is_valid():
            return answer(Health("stopped"), 503)
        asks = [self._reach.ask(name, errand) for name in self._mine()]
        got = await asyncio.gather(*asks)
        return next((one for one in got if one.status != 200), answer(Health("ok")))

    async def _width(self, errand: Errand) -> Response:
        queue = errand.params["queue"]
        errand.require(errand.route.verb, queue)
        await self.partitions_of(queue)
        if errand.route.method == "GET":
            return await self.widening.show(errand, queue)
        return await self.widening.widen(errand, queue)

    async def partitions_of(self, queue: str) -> tuple[str, ...]:
        """Where a queue is; one that is new is given its place."""
        if not _QUEUE.fullmatch(queue):
            raise Refused("bad_value", "no queue can have this name", "queue")
        known = self._places.of_queue(queue)
        if known is not None:
            return known
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def told(found: tuple[str, ...] | Exception) -> None:
            if not answer.done():
                answer.set_result(found)

        self._places.look_up(queue, told)
        found = await answer
        if isinstance(found, RuleBroken | RuntimeFailure | Refused):
            raise found
        if isinstance(found, Exception):
            text = f"it is not known where queue {queue!r} is"
            raise Unreached(text, is_unknown=False) from found
        partitions: tuple[str, ...] = found
        return partitions

    def _is_known(self, partition: str) -> bool:
        places = self._places
        return bool(partition) and (
            places.local(partition) is not None
            or partition in places.partitions()
            or places.address(partition) is not None
        )

    def _some(self) -> str:
        """A partition, for what any would answer: one that is here, if there is."""
        local = self._places.local
        partitions = self._places.partitions()
        for partition in partitions:
            if local(partition) is not None:
                return partition
        if not partitions:
            raise Unreached("there is no partition yet", is_unknown=False)
        return partitions[0]
