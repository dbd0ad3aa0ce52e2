"""Heartbeats, from a thread of their own: a handler that blocks the loop stops none."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from headway.client.port import AsyncPort
from headway.core.errors import RuleBroken
from headway.wire.values import BATCH_MAX
from headway.wire.work import Settled
from headway.worker.settling import LOST

log: Final = logging.getLogger("headway.worker")
BEATS: Final = 3
"""In the time of one lease."""


class Heart:
    """Extends all leases that are held, three times in the length of one."""

    def __init__(
        self,
        port: Callable[[], AsyncPort],
        held: Mapping[str, Any],
        lease_ms: int,
        heard: Callable[[Settled], None],
    ) -> None:
        """`heard` is called in this thread's loop with every answer."""
        self._port = port
        self._held = held
        self._lease_ms = lease_ms
        self._heard = heard
        self._is_ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="headway-heart", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_ended.set()

    def _run(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        port = self._port()
        pause_s = self._lease_ms / 1_000 / BEATS
        wait_s = pause_s
        while not await asyncio.to_thread(self._is_ended.wait, wait_s):
            try:
                await self._extend(port)
                wait_s = pause_s
            except (RuleBroken, *LOST) as error:
                log.warning("leases can't be extended now: %s", error)
                wait_s = pause_s / 4
        await port.close()

    async def _extend(self, port: AsyncPort) -> None:
        tokens = list(self._held)
        for first in range(0, len(tokens), BATCH_MAX):
            some = tokens[first : first + BATCH_MAX]
            self._heard(await port.extend(some, self._lease_ms))
