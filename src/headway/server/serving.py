"""A server's life: open the store, answer, and stop so that nothing is lost."""

import asyncio
import contextlib
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from headway.core.commands import Configure
from headway.core.config import QueueConfig
from headway.core.errors import BadValue, RuleBroken
from headway.runtime.door import Door
from headway.server.app import App
from headway.server.call import Facilities
from headway.server.desk import Desk
from headway.server.guard import LOOPBACK, Guard
from headway.server.handlers.table import ROUTES
from headway.server.http.connection import SWEEP_S, Connection, Connections
from headway.server.ids import Ids
from headway.server.openapi import describe
from headway.server.problems import of_http
from headway.server.routing import Router
from headway.server.settings import STORE, Settings

BACKLOG: Final = 4_096
SWITCH_S: Final = 0.0005
"""How long a thread may keep the interpreter while another waits for it: the owner
computes, and the loop should not wait five milliseconds for it."""


class Unsafe(Exception):
    """The server would be open to everybody, and so does not start."""


class Server:
    """One server over one store."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stop = asyncio.Event()
        self._connections: Connections | None = None

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serves until it is told to stop; `ready` is told the address."""
        settings = self._settings
        loop = asyncio.get_running_loop()
        settings.data.mkdir(parents=True, exist_ok=True)
        door = await asyncio.to_thread(Door, settings.data / STORE)
        try:
            desk = Desk(door, loop)
            await self._prepare(desk)
            facilities = self._facilities()
            app = App(Router(ROUTES), desk, self._guard(), facilities, Watcher())
            connections = Connections(app.handle, of_http, settings.limits)
            listener = await loop.create_server(
                lambda: Connection(connections, loop),
                sock=_socket(settings),
                ssl=_tls(settings),
                backlog=BACKLOG,
            )
            sweeping = loop.create_task(_sweep(connections, loop))
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(name, self._stop.set)
            ready(_address(listener.sockets[0], settings))
            await self._stop.wait()
            facilities.is_stopping = True
            listener.close()
            desk.end_waits()
            connections.close()
            await self._drain(connections)
            sweeping.cancel()
            app.close()
        finally:
            await asyncio.to_thread(door.close)

    def stop(self) -> None:
        self._stop.set()

    async def _prepare(self, desk: Desk) -> None:
        """The default queue is there from the start."""
        settings = self._settings
        length = settings.queue_length
        config = QueueConfig(
            name=settings.default_queue,
            # Refused where one more would reach it, and not where it would pass it.
            max_length=None if length is None else max(1, length - 1),
        )
        command = Configure(config, is_new_only=length is None)
        answer = await asyncio.wrap_future(desk.submit(command))
        if isinstance(answer, RuleBroken):
            raise answer

    def _facilities(self) -> Facilities:
        settings = self._settings
        ids = Ids(settings.partition, secret(settings.data / "signing.key"))
        return Facilities(ids, settings.default_queue, describe(ROUTES))

    def _guard(self) -> Guard:
        settings = self._settings
        tokens = None
        if not settings.is_loopback:
            raise Unsafe(
                f"{settings.host} can be reached by others and no token was made: "
                "make one with `headway token create`, or listen on 127.0.0.1"
            )
        hosts = LOOPBACK | {settings.host} | set(settings.hosts)
        return Guard(tokens, frozenset(hosts))

    async def _drain(self, connections: Connections) -> None:
        """Waits for answers that are under way, and for no longer than the grace."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._settings.grace_s
        while connections.open and loop.time() < until_s:
            await asyncio.sleep(0.01)
        connections.abort()


class Watcher:
    """Keeps the log."""

    def seen(self, request: object, route: object, answer: object) -> None:
        return None

    def broken(self, error: Exception) -> None:
        import traceback

        traceback.print_exception(error)


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Runs a server in this thread until it is told to stop."""
    sys.setswitchinterval(SWITCH_S)
    _raise_file_limit(settings.limits.connections)
    import uvloop

    async def run() -> None:
        await Server(settings).run(ready)

    uvloop.run(run())


def secret(path: Path) -> bytes:
    """The key that signs tokens, made once for a folder."""
    with contextlib.suppress(FileNotFoundError):
        key = path.read_bytes()
        if len(key) >= 32:
            return key[:64]
    key = os.urandom(32)
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        return key
    return path.read_bytes()[:64]


def _socket(settings: Settings) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        text = f"can't listen there: {error.strerror}"
        raise BadValue("port", settings.port, text) from error
    return listener


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(settings.certificate, settings.private_key)
    return context


def _address(listener: socket.socket, settings: Settings) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if settings.certificate is None else "https"
    return f"{scheme}://{shown}:{port}"


def _raise_file_limit(connections: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = (
        min(connections + 256, hard)
        if hard != resource.RLIM_INFINITY
        else connections + 256
    )
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _sweep(connections: Connections, loop: asyncio.AbstractEventLoop) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        connections.sweep(loop.time())
