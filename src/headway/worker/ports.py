"""From an address to a queue: a server, a file, or memory."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

from headway.client.awaited import AsyncClient
from headway.client.blocking import Client
from headway.client.origin import Origins
from headway.client.port import AsyncPort, Port
from headway.core.errors import BadValue
from headway.runtime.door import Door
from headway.runtime.embedded import Link
from headway.runtime.service import Service
from headway.runtime.throttler import throttling_of
from headway.store.memory import MemoryStore
from headway.worker.local import AsyncLocalPort, LocalPort

FILE = "sqlite:///"
MEMORY = "memory:"


class Ports:
    """One queue; ports to it are made when they are needed, for each event loop."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        throttlers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = url
        self._token = token
        self._throttlers = throttlers
        self._is_local = url.startswith(FILE) or url == MEMORY
        if not self._is_local:
            if url.partition(":")[0] not in ("http", "https"):
                rule = 'is none of "http://HOST:PORT", "https://HOST:PORT", '
                raise BadValue("url", url, f'{rule}"sqlite:///FILE" and "memory:"')
            if throttlers:
                rule = "a server's are named where it is started"
                raise BadValue("throttlers", ", ".join(throttlers), rule)
            Origins(url, token)
        elif token is not None:
            raise BadValue("token", "…", "only servers ask for one")
        elif url == FILE:
            raise BadValue("url", url, "names no file")
        self._turn = threading.Lock()
        self._link: Link | None = None
        self._port: Port | None = None
        self._ports: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPort] = (
            WeakKeyDictionary()
        )

    def blocking(self) -> Port:
        """For any thread."""
        with self._turn:
            if self._port is None:
                self._port = (
                    LocalPort(self._linked())
                    if self._is_local
                    else Client(self._url, self._token)
                )
            return self._port

    def awaited(self) -> AsyncPort:
        """For the running loop; the same one each time."""
        loop = asyncio.get_running_loop()
        with self._turn:
            port = self._ports.get(loop)
            if port is None:
                port = self._ports[loop] = self._awaited(tries=None)
            return port

    def for_worker(self) -> AsyncPort:
        """A fresh one for the running loop, which leaves trying again to its owner."""
        with self._turn:
            return self._awaited(tries=1)

    def close(self) -> None:
        """Closes what blocks, and the queue if it is in this process."""
        with self._turn:
            port, self._port = self._port, None
            link, self._link = self._link, None
        if port is not None:
            port.close()
        if link is not None:
            link.close()

    async def aclose(self) -> None:
        """Closes the connections of the running loop."""
        with self._turn:
            port = self._ports.pop(asyncio.get_running_loop(), None)
        if port is not None:
            await port.close()

    def _awaited(self, tries: int | None) -> AsyncPort:
        if self._is_local:
            return AsyncLocalPort(self._linked())
        if tries is None:
            return AsyncClient(self._url, self._token)
        return AsyncClient(self._url, self._token, tries=tries)

    def _linked(self) -> Link:
        if self._link is None:
            throttling = throttling_of(self._throttlers)
            self._link = (
                Service(MemoryStore(), throttling)
                if self._url == MEMORY
                else Door(Path(self._url.removeprefix(FILE)), throttling)
            )
        return self._link
