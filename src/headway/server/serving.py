"""A server's life: open the store, answer, and stop so that nothing is lost."""

import asyncio
import gc
import resource
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from headway.core.commands import Configure
from headway.core.config import QueueConfig
from headway.core.errors import BadValue, RuleBroken
from headway.search.finder import Finder
from headway.server.acts import Acts
from headway.server.app import App
from headway.server.call import Facilities
from headway.server.callbacks import CallbackFile, Callbacks
from headway.server.desk import Desk
from headway.server.feeding import Feeding
from headway.server.guard import Guard
from headway.server.handlers.table import ROUTES
from headway.server.housekeeping import keep_house
from headway.server.http.connection import Connection, Connections
from headway.server.http.message import Response
from headway.server.ids import Ids, signing_key
from headway.server.indexing import Indexing
from headway.server.log import Watcher
from headway.server.past import Past
from headway.server.problems import of_http
from headway.server.pulse import Pulse
from headway.server.routing import Router
from headway.server.settings import INDEX, WRITES, Settings
from headway.server.tokens import Keyring, TokenFile
from headway.server.trends_file import TrendsFile
from headway.server.writes import Writes

BACKLOG: Final = 4_096
SETTLED_S: Final = 0.2
"""When everything that a server is made of has been made."""
KEY: Final = "signing.key"
SWITCH_S: Final = 0.0005
"""How long a thread may keep the interpreter while another waits for it: the owner
computes, and the loop should not wait five milliseconds for it."""


class Replaced(Exception):
    """Another server has taken the partition over; this one has stopped."""


class Unsafe(Exception):
    """The server would be open to everybody, and so does not start."""


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

    def refused(self, queue: str, why: str) -> None:
        self._watch.warned("inbox refused", queue=queue, why=why)

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serves until it is told to stop; `ready` is told the address."""
        settings = self._settings
        self._loop = loop = asyncio.get_running_loop()
        truth = settings.truth
        loop.set_exception_handler(self._watch.stray)
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        keyring = self._keyring()
        callbacks = Callbacks(CallbackFile(settings.data), self._watch)
        tls = _tls(settings)
        door = await asyncio.to_thread(truth.enter, self)
        try:
            desk = Desk(door, loop)
            await self._prepare(desk)
            facilities = self._facilities(callbacks, desk)
            feeding = Feeding(desk, facilities.writes, self._watch)
            indexing = Indexing(*truth.search(settings.data / INDEX), desk)
            guard = Guard(keyring, settings.host, settings.hosts)
            app = App(Router(ROUTES), desk, guard, facilities, self._watch)
            connections = Connections(app.handle, self._refuse, settings.limits)
            listener = await loop.create_server(
                lambda: Connection(connections, loop),
                sock=_socket(settings),
                ssl=tls,
                backlog=BACKLOG,
            )
            aside = [
                loop.create_task(
                    _sweep(connections, [keyring.check, callbacks.check], loop)
                )
            ]
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(name, self._stop.set)
            address = _address(listener.sockets[0], settings)
            self._started(address, keyring)
            ready(address)
            loop.call_later(SETTLED_S, _settle)
            aside += [
                loop.create_task(indexing.run()),
                loop.create_task(feeding.run()),
                loop.create_task(keep_house(desk)),
                loop.create_task(facilities.pulse.run()),
            ]
            await self._stop.wait()
            self._watch.happened("stopping", replaced=self._is_replaced)
            facilities.is_stopping = True
            listener.close()
            desk.end_waits()
            facilities.pulse.end_waits()
            connections.close()
            await self._drain(connections)
            for task in aside:
                task.cancel()
            await asyncio.gather(*aside, return_exceptions=True)
            _shut(app, facilities)
        finally:
            await asyncio.to_thread(door.close)
        self._watch.happened("stopped")
        if self._is_replaced:
            text = "another server has taken the partition over"
            raise Replaced(f"{text}: only one may serve {settings.partition}")

    async def _prepare(self, desk: Desk) -> None:
        """The default queue is there from the start."""
        settings = self._settings
        length = settings.queue_length
        config = QueueConfig(
            name=settings.default_queue,
            # Refused where one more would reach it, and not where it would pass it.
            max_length=None if length is None else length - 1,
        )
        command = Configure(config, is_new_only=length is None)
        answer = await asyncio.wrap_future(desk.submit(command))
        if isinstance(answer, RuleBroken):
            raise answer

    def _facilities(self, callbacks: Callbacks, desk: Desk) -> Facilities:
        settings = self._settings
        ids = Ids(settings.partition, signing_key(settings.data / KEY))
        finder = Finder(settings.data / INDEX)
        past = Past(settings.truth.open_past, settings.partition)
        return Facilities(
            ids,
            finder,
            past,
            callbacks,
            Writes(settings.data / WRITES, desk),
            Acts(settings.data, self._watch, asyncio.get_running_loop()),
            Pulse(desk, self._watch.broken, TrendsFile(settings.data, self._watch)),
            settings.default_queue,
            _described,
        )

    def _keyring(self) -> Keyring:
        settings = self._settings
        keyring = Keyring(TokenFile(settings.data), self._watch)
        if not keyring.is_required and not settings.is_loopback:
            raise Unsafe(
                f"{settings.host} can be reached by others and no token was made: "
                "make one with `headway token create`, or listen on 127.0.0.1"
            )
        return keyring

    def _started(self, address: str, keyring: Keyring) -> None:
        settings = self._settings
        has_tls = settings.certificate is not None
        self._watch.happened(
            "started",
            address=address,
            partition=settings.partition,
            tokens=keyring.is_required,
            tls=has_tls,
        )
        if not has_tls and not settings.is_loopback:
            text = "tokens and jobs can be read on their way: no --certificate is given"
            self._watch.warned("no tls", why=text)

    def _refuse(self, status: int, text: str) -> Response:
        self._watch.unreadable(status)
        return of_http(status, text)

    async def _drain(self, connections: Connections) -> None:
        """Waits for answers that are under way, and for no longer than the grace."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._settings.grace_s
        while connections.open and loop.time() < until_s:
            await asyncio.sleep(0.01)
        connections.abort()


def _settle() -> None:
    """What is there by now is there to stay.

    The collector of cycles would walk it again and again, for 50 ms each time.
    """
    gc.collect()
    gc.freeze()


@cache
def _described() -> bytes:
    """Made when it is first asked for: it would take a tenth of the start."""
    from headway.server.openapi import describe

    return describe(ROUTES)


def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Runs a server in this thread until it is told to stop."""
    sys.setswitchinterval(SWITCH_S)
    _raise_file_limit(settings.limits.connections)
    import uvloop

    watch = Watcher(settings.log_level)
    watch.take_over()

    async def run() -> None:
        await Server(settings, watch).run(ready)

    try:
        uvloop.run(run())
    except Exception as error:
        watch.not_served(error)
        raise


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


def _shut(app: App, facilities: Facilities) -> None:
    """Files that were open for requests."""
    app.close()
    facilities.acts.close()
    facilities.finder.close()
    facilities.past.close()
    facilities.pulse.close()


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(
            settings.certificate, settings.private_key, password=_no_password
        )
    except (OSError, ValueError) as error:
        text = f"can't be used with its private key: {error}"
        raise BadValue("certificate", settings.certificate.name, text) from error
    return context


def _no_password() -> str:
    """In place of a question on a terminal where nobody may be."""
    raise ValueError("the key is encrypted")


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


async def _sweep(
    connections: Connections,
    checks: Sequence[Callable[[], None]],
    loop: asyncio.AbstractEventLoop,
) -> None:
    while True:
        await asyncio.sleep(connections.limits.sweep_s)
        connections.sweep(loop.time())
        for check in checks:
            check()
