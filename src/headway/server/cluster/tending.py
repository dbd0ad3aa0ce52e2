"""What a node does by itself for the queues whose home it holds."""

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

import msgspec

from headway.core.cluster import Placement
from headway.core.errors import RuleBroken
from headway.core.widths import Trend, next_width
from headway.runtime.errors import RuntimeFailure
from headway.server.cluster.narrowing import Narrowing
from headway.server.cluster.places import Places
from headway.server.cluster.reach import Reach
from headway.server.cluster.wide import Failed, read
from headway.server.cluster.widening import Widening
from headway.server.problems import Refused
from headway.wire import live

TEND_S: Final = 1.0
"""Between two looks at queues whose partitions change."""
AUTO_S: Final = 10.0
"""Between two looks at how busy the partitions of a queue are."""
_node: Final = msgspec.json.Decoder(live.Node).decode


class Watch(Protocol):
    """Whoever keeps the log."""

    def broken(self, error: Exception) -> None: ...


class Auto:
    """Gives queues as many partitions as they need, where that is left to the nodes."""

    def __init__(
        self, places: Places, reach: Reach, narrowing: Narrowing, widening: Widening
    ) -> None:
        self._places = places
        self._reach = reach
        self._narrowing = narrowing
        self._widening = widening
        self._trends: dict[str, Trend] = {}
        self._looked_s = 0.0
        self._known: dict[str, float] = {}
        """How busy partitions were found at this look."""

    def is_time(self) -> bool:
        """Whether it is to be looked now; not before long again, then."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._looked_s < AUTO_S:
            return False
        self._looked_s = now_s
        self._known.clear()
        return True

    def forget_others(self, queues: list[str]) -> None:
        self._trends = {
            queue: trend for queue, trend in self._trends.items() if queue in queues
        }

    async def look(self, queue: str, mark: Placement) -> None:
        """Adds a partition, or takes one away, if that is called for by now."""
        width = len(mark.open)
        most = min(mark.most or 1, len(self._places.partitions()))
        shares = [await self._busy(queue, partition) for partition in mark.open]
        trend = self._trends.get(queue, Trend())
        wanted, self._trends[queue] = next_width(
            width, most, sum(shares) / width, trend
        )
        if wanted != width:
            await self._widening.bring(self._narrowing.errand(queue), queue, wanted)

    async def _busy(self, queue: str, partition: str) -> float:
        """The share of its time for which the owner has been committing of late."""
        if partition in self._known:
            return self._known[partition]
        errand = self._narrowing.errand(queue).with_target(b"/v1/node")
        errand.is_repeatable = True
        response = await self._reach.ask(partition, errand)
        if response.status != 200:
            raise Failed(response)
        node = read(partition, response, _node)
        busy = min(1.0, float(node.commits_per_s * node.commit_ms / 1_000))
        self._known[partition] = busy
        return busy


class Tending:
    """Goes on with what was begun, here or by a node that is gone."""

    def __init__(
        self, places: Places, narrowing: Narrowing, auto: Auto, watch: Watch
    ) -> None:
        self._places = places
        self._narrowing = narrowing
        self._auto = auto
        self._watch = watch

    async def run(self) -> None:
        """For as long as the node answers."""
        while True:
            await asyncio.sleep(TEND_S)
            mine = self._mine()
            for queue, mark in mine.items():
                if mark.whole is not None:
                    await self._tried(self._stepped(queue))
            if self._auto.is_time():
                left = [queue for queue, mark in mine.items() if mark.most]
                self._auto.forget_others(left)
                for queue in left:
                    if mine[queue].whole is None:
                        await self._tried(self._auto.look(queue, mine[queue]))

    async def _stepped(self, queue: str) -> None:
        while await self._narrowing.step(queue):
            pass

    async def _tried(self, work: Awaitable[None]) -> None:
        """Whatever becomes of it, others go on: there is a next time."""
        try:
            await work
        except (Failed, Refused, RuleBroken, RuntimeFailure):
            return
        except Exception as error:
            self._watch.broken(error)

    def _mine(self) -> dict[str, Placement]:
        local = self._places.local
        return {
            queue: mark
            for queue, mark in self._places.marks.items()
            if local(mark.partitions[0]) is not None
        }
