"""A server's life: open the store, answer, and stop so that nothing is lost."""

import asyncio
import sys
from collections.abc import Callable
from typing import Final

from headway.runtime import arenas
from headway.server.front import Front, Ousted, Unsafe, raise_file_limit
from headway.server.house import Ground, open_house
from headway.server.ids import KEY, signing_key
from headway.server.log import Watcher
from headway.server.settings import WRITES, Settings

__all__ = ["Ousted", "Replaced", "Server", "Unsafe", "serve"]

SWITCH_S: Final = 0.0005
"""How long a thread may keep the interpreter while another waits for it: the owner
computes, and the loop should not wait five milliseconds for it."""


class Replaced(Exception):
    """Another server has taken the partition over; this one has stopped."""


class Server:
    """One server over one store."""

    def __init__(self, settings: Settings, watch: Watcher) -> None:
        self._settings = settings
        self._watch = watch
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_replaced = False

    def replaced(self) -> None:
        """In another thread."""
        assert self._loop is not None
        self._is_replaced = True
        self._loop.call_soon_threadsafe(self._stop.set)

    def found(self, queue: str) -> None:
        """In another thread. There is nowhere else that it could be."""

    def refused(self, queue: str, why: str) -> None:
        self._watch.warned("inbox refused", queue=queue, why=why)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serves until it is told to stop; `ready` is told the address."""
        settings = self._settings
        self._loop = loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._watch.stray)
        front = Front(settings, self._watch)
        house = await open_house(self._ground(), front.host, self)
        try:
            ready(await front.listen(house.app.handle, self._stop.set))
            house.live()
            await self._stop.wait()
            self._watch.happened("stopping", replaced=self._is_replaced)
            await front.close(house.end_waits)
        finally:
            await house.close()
        self._watch.happened("stopped")
        if self._is_replaced:
            text = "another server has taken the partition over"
            raise Replaced(f"{text}: only one may serve {settings.partition}")

    def _ground(self) -> Ground:
        settings = self._settings
        return Ground(
            partition=settings.partition,
            truth=settings.truth,
            data=settings.data,
            writes=(settings.writes or settings.data) / WRITES,
            key=signing_key(settings.data / KEY),
            default_queue=settings.default_queue,
            queue_length=settings.queue_length,
        )


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Runs a server in this thread until it is told to stop."""
    sys.setswitchinterval(SWITCH_S)
    arenas.use()
    raise_file_limit(settings.limits.connections)
    import uvloop

    watch = Watcher(settings.log_level)
    watch.take_over()

    async def run() -> None:
        if settings.member is None:
            await Server(settings, watch).run(ready)
            return
        from headway.server.cluster.serving import NodeServer

        await NodeServer(settings, watch).run(ready)

    try:
        uvloop.run(run())
    except Exception as error:
        watch.not_served(error)
        raise
