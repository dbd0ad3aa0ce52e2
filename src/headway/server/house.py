"""Everything of one partition while it is served: its owner, and what lives around it."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from headway.core.commands import Configure
from headway.core.config import QueueConfig
from headway.core.errors import RuleBroken
from headway.runtime.embedded import Link
from headway.runtime.inbound import Heard
from headway.search.finder import Finder
from headway.server.acts import Acts
from headway.server.app import App, HeldApp
from headway.server.call import Facilities
from headway.server.callbacks import Callbacks
from headway.server.desk import Desk
from headway.server.feeding import Feeding
from headway.server.guard import Guard
from headway.server.handlers.table import ROUTES
from headway.server.housekeeping import keep_house
from headway.server.ids import Ids
from headway.server.indexing import Indexing
from headway.server.log import Watcher
from headway.server.members import Alone, Members
from headway.server.past import Past
from headway.server.pulse import Pulse
from headway.server.routing import Router
from headway.server.settings import INDEX
from headway.server.trends_file import TrendsFile
from headway.server.truth import Truth
from headway.server.writes import Writes


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What a house stands on."""

    partition: str
    truth: Truth
    data: Path
    """A folder of its own: for its index, acts and trends."""
    writes: Path
    """A folder for writes that were not taken in yet."""
    key: bytes
    """Signs the tokens of leases."""
    default_queue: str
    has_default: bool = True
    """Whether the default queue is in this partition."""
    queue_length: int | None = None
    is_held: Callable[[], bool] | None = None
    """Asked before an answer leaves; without, the store alone keeps owners apart."""
    members: Members | None = None
    """The cluster that it is part of, if it is part of one."""
    index_pause_s: float = 0.0
    """So long its index is not fed: what has just come is to be served first."""
    acts: Acts | None = None
    """Where acts are written down, if its folder is not the place."""


class Host(msgspec.Struct, frozen=True):
    """What the houses of a process have in common."""

    guard: Guard
    callbacks: Callbacks
    watch: Watcher


class House:
    """Opened once, and closed once."""

    def __init__(self, ground: Ground, host: Host, door: Link) -> None:
        """Needs a running loop. The door is closed with it."""
        self.ground = ground
        self._door = door
        loop = asyncio.get_running_loop()
        self.desk = Desk(door, loop)
        watch = host.watch
        data = ground.data
        self.facilities = Facilities(
            Ids(ground.partition, ground.key),
            Finder(data / INDEX),
            Past(ground.truth.open_past, ground.partition),
            host.callbacks,
            Writes(ground.writes, self.desk),
            ground.acts or Acts(data, watch, loop),
            Pulse(self.desk, watch.broken, TrendsFile(data, watch)),
            ground.members or Alone(ground.partition),
            ground.default_queue,
            _described,
        )
        self._feeding = Feeding(self.desk, self.facilities.writes, watch)
        search = ground.truth.search(data / INDEX)
        self._indexing = Indexing(*search, self.desk, ground.index_pause_s)
        parts = (_router(), self.desk, host.guard, self.facilities, watch)
        is_held = ground.is_held
        self.app = App(*parts) if is_held is None else HeldApp(*parts, is_held=is_held)
        self._tasks: list[asyncio.Task[None]] = []

    async def furnish(self) -> None:
        """The default queue is there from the start."""
        ground = self.ground
        if not ground.has_default:
            return
        length = ground.queue_length
        config = QueueConfig(
            name=ground.default_queue,
            # Refused where one more would reach it, and not where it would pass it.
            max_length=None if length is None else length - 1,
        )
        command = Configure(config, is_new_only=length is None)
        answer = await asyncio.wrap_future(self.desk.submit(command))
        if isinstance(answer, RuleBroken):
            raise answer

    def live(self) -> None:
        """Begins with everything that it does by itself."""
        self._begin(self._indexing.run())
        self._begin(self._feeding.run())
        self._begin(keep_house(self.desk))
        self._begin(self.facilities.pulse.run())

    def end_waits(self) -> None:
        """It is about to close: whoever waits is told how things stand."""
        self.facilities.is_stopping = True
        self.desk.end_waits()
        self.facilities.pulse.end_waits()

    async def close(self) -> None:
        """First what it does by itself, then files, and last its owner."""
        try:
            await self.clear()
        finally:
            await self.shut()

    async def shut(self) -> None:
        """The owner alone: what was asked by now is answered, and then nothing is."""
        await asyncio.to_thread(self._door.close)

    async def clear(self) -> None:
        """Everything but the owner."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.app.close()
        if self.ground.acts is None:
            self.facilities.acts.close()
        self.facilities.finder.close()
        self.facilities.past.close()
        self.facilities.pulse.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))


async def open_house(ground: Ground, host: Host, heard: Heard) -> House:
    """Becomes the owner, with all that was stored before."""
    ground.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    loop = asyncio.get_running_loop()
    door = await asyncio.to_thread(ground.truth.enter, heard, loop)
    try:
        house = House(ground, host, door)
        await house.furnish()
    except BaseException:
        await asyncio.to_thread(door.close)
        raise
    return house


@cache
def _router() -> Router:
    """It has no state: all houses share one."""
    return Router(ROUTES)


@cache
def _described() -> bytes:
    """Made when it is first asked for: it would take a tenth of the start."""
    from headway.server.openapi import describe

    return describe(ROUTES)
