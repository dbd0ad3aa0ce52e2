"""Shut while the server takes no replies: all wait together, for pauses that grow."""

import asyncio

from headway.bridge.port import Told
from headway.client.origin import delays_s


class Gate:
    """Everybody passes it before they ask the server."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._open = asyncio.Event()
        self._open.set()
        self._pauses = delays_s()
        self._is_waiting = False

    async def passing(self) -> None:
        await self._open.wait()

    def failed(self, error: Exception) -> None:
        """No server or no queue; who comes next waits longer than the one before."""
        if not self._open.is_set():
            return
        self._open.clear()
        asyncio.get_running_loop().call_later(next(self._pauses), self._open.set)
        if not self._is_waiting:
            self._is_waiting = True
            self._told.warned("waiting", error=str(error)[:200])

    def answered(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._pauses = delays_s()
            self._told.happened("going on")
