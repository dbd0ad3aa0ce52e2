"""The partitions that a node holds: each opened, served, and let go of in time."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from headway.runtime.errors import RuntimeFailure
from headway.runtime.listing import ListQueues, QueueView
from headway.runtime.writes import ListWrites
from headway.server.app import App
from headway.server.house import Ground, Host, House, open_house
from headway.server.log import told

OPENING_MAX: Final = 4
"""Partitions that are opened at once: each reads what it needs from the database."""
AGAIN_S: Final = 1.0
AGAIN_MAX_S: Final = 15.0
"""After one could not be opened it is tried again so soon; later, so late."""
PAGE: Final = 1_000
TAKE_IN_S: Final = 30.0
LOOK_S: Final = 0.05


class Around(Protocol):
    """The node, as far as its partitions need it."""

    def ground(self, partition: str, is_held: Callable[[], bool]) -> Ground:
        """What a house for it stands on; raises BadValue if it can't have one."""
        ...

    def is_valid(self) -> bool: ...

    def found(self, partition: str, queues: list[str], *, is_used: bool = True) -> None:
        """The partition has these, and they are in use there or not."""
        ...

    def turned(self, *, is_opened: bool = False) -> None:
        """One was opened, or can't be used any more."""
        ...


class Resident:
    """One partition, under one claim."""

    def __init__(self, partition: str, claim: int, around: Around, host: Host) -> None:
        self.partition = partition
        self.claim = claim
        self._around = around
        self._host = host
        self._house: House | None = None
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._opening: asyncio.Task[None] | None = None
        self._finding: asyncio.Task[None] | None = None
        self._is_again = asyncio.Event()

    @property
    def app(self) -> App | None:
        """Answers, while it is open and held."""
        house = self._house
        return house.app if house is not None and self.is_held() else None

    @property
    def is_open(self) -> bool:
        return self._house is not None

    def is_held(self) -> bool:
        return not self._is_over and self._around.is_valid()

    def open(self, turn: asyncio.Semaphore, after: asyncio.Task[None] | None) -> None:
        """Goes on trying; `after` is what ends an earlier one in the same folder."""
        self._opening = self._loop.create_task(self._open(turn, after))

    def replaced(self) -> None:
        """In another thread: somebody outside the cluster has taken the partition."""
        self._loop.call_soon_threadsafe(self._is_again.set)

    def found(self, queue: str) -> None:
        """In another thread."""
        self._loop.call_soon_threadsafe(self._around.found, self.partition, [queue])

    def refused(self, queue: str, why: str) -> None:
        self._host.watch.warned("inbox refused", queue=queue, why=why)

    def end(self) -> None:
        """At once nothing is answered any more."""
        self._is_over = True
        if self._house is not None:
            self._house.end_waits()

    def settle(self) -> None:
        """Those who wait are told how things stand; others are answered as before."""
        if self._house is not None:
            self._house.end_waits()

    async def is_taken_in(self) -> None:
        """Until published writes, whose jobs are in a folder here, are in the store.

        Not for ever: while one after another is published there is no end to it.
        """
        until_s = self._loop.time() + TAKE_IN_S
        house = self._house
        while house is not None and self._loop.time() < until_s and self.is_held():
            try:
                found = await asyncio.wrap_future(house.desk.submit(ListWrites()))
            except RuntimeFailure:
                return
            if not found.writes:
                return
            await asyncio.sleep(LOOK_S)

    async def shut(self) -> None:
        """Its owner has stopped when this answers."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._house is not None:
            await self._house.shut()
        self._is_over = True

    async def clear(self) -> None:
        house, self._house = self._house, None
        if self._finding is not None:
            self._finding.cancel()
        if house is not None:
            await house.clear()

    async def _open(
        self, turn: asyncio.Semaphore, after: asyncio.Task[None] | None
    ) -> None:
        pause_s = AGAIN_S
        if after is not None:
            await asyncio.wait([after])
        while not self._is_over:
            try:
                async with turn:
                    await self._enter()
                pause_s = AGAIN_S
                await self._is_again.wait()
                self._host.watch.warned("partition taken", partition=self.partition)
                await self._leave()
            except Exception as error:
                # Whatever it is: it is this node's, and nobody else will try.
                fields = {"partition": self.partition, **told(error)}
                self._host.watch.warned("partition not opened", **fields)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, AGAIN_MAX_S)

    async def _enter(self) -> None:
        self._is_again.clear()
        ground = self._around.ground(self.partition, self.is_held)
        opening = asyncio.ensure_future(open_house(ground, self._host, self))
        try:
            house = await asyncio.shield(opening)
        except asyncio.CancelledError:
            # The thread goes on: what it opens has to be closed again.
            with suppress(Exception):
                self._house = await opening
            raise
        self._house = house
        if self._is_over:
            return
        house.live()
        self._finding = self._loop.create_task(self._find_queues(house))
        self._host.watch.happened("partition opened", partition=self.partition)
        self._around.turned(is_opened=True)

    async def _leave(self) -> None:
        house, self._house = self._house, None
        self._around.turned()
        if house is not None:
            house.end_waits()
            await house.close()

    async def _find_queues(self, house: House) -> None:
        """A partition may have been served before there was a cluster."""
        after: str | None = ""
        while after is not None:
            try:
                asked = house.desk.submit(ListQueues(after, PAGE))
                page = await asyncio.wrap_future(asked)
            except RuntimeFailure:
                await asyncio.sleep(AGAIN_S)
                continue
            for is_used in (True, False):
                names = [one.name for one in page.queues if _is_used(one) is is_used]
                if names:
                    self._around.found(self.partition, names, is_used=is_used)
            after = page.next


def _is_used(queue: QueueView) -> bool:
    """One that takes no jobs, and has none, has left the partition or is about to."""
    is_closed = queue.config.max_length == 0
    return not is_closed or any(msgspec.structs.astuple(queue.counts))
