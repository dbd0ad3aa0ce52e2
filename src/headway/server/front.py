"""What a server shows to the world: its socket, its gate, and requests on their way."""

import asyncio
import resource
import signal
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from headway.core.errors import BadValue
from headway.runtime.collector import settle
from headway.server.callbacks import CallbackFile, Callbacks
from headway.server.guard import Guard
from headway.server.house import Host
from headway.server.http.connection import Connections
from headway.server.http.message import Handle, Response
from headway.server.log import Watcher
from headway.server.problems import of_http
from headway.server.settings import Settings
from headway.server.tokens import Keyring, TokenFile

BACKLOG: Final = 4_096
SETTLED_S: Final = 0.2
"""When everything that a server is made of has been made."""


class Unsafe(Exception):
    """The server would be open to everybody, and so does not start."""


class Ousted(Exception):
    """Another process has this node's name."""


class Front:
    """Reads what is secret first; listens when there is somebody to answer."""

    def __init__(self, settings: Settings, watch: Watcher) -> None:
        self._settings = settings
        self._watch = watch
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._keyring = self._read_keyring()
        callbacks = Callbacks(CallbackFile(settings.data), watch)
        self._tls = _tls(settings)
        guard = Guard(self._keyring, settings.host, _hosts(settings))
        self.host = Host(guard, callbacks, watch)
        self._checks = [self._keyring.check, callbacks.check]
        self._socket: socket.socket | None = None
        self._listener: asyncio.Server | None = None
        self._connections: Connections | None = None
        self._sweeping: asyncio.Task[None] | None = None

    def bind(self) -> str:
        """Takes its port, before anybody is answered there; answers the address."""
        self._socket = _socket(self._settings)
        return _address(self._socket, self._settings)

    async def listen(self, handle: Handle, stop: Callable[[], None]) -> str:
        """Answers the address; `stop` is called when the process is told to end."""
        settings = self._settings
        loop = asyncio.get_running_loop()
        connections = Connections(handle, self._refuse, settings.limits)
        self._connections = connections
        self._listener = listener = await loop.create_server(
            lambda: connections.accept(loop),
            sock=self._socket or _socket(settings),
            ssl=self._tls,
            backlog=BACKLOG,
        )
        self._sweeping = loop.create_task(_sweep(connections, self._checks, loop))
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stop)
        loop.call_later(SETTLED_S, settle)
        address = _address(listener.sockets[0], settings)
        self._started(address)
        return address

    async def close(self, end_waits: Callable[[], None]) -> None:
        """Takes no more, and waits for answers that are under way for a while."""
        if self._listener is None or self._connections is None:
            return
        self._listener.close()
        end_waits()
        self._connections.close()
        await self._drain(self._connections)
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    def _read_keyring(self) -> Keyring:
        settings = self._settings
        keyring = Keyring(TokenFile(settings.data), self._watch)
        if not keyring.is_required and not settings.is_loopback:
            raise Unsafe(
                f"{settings.host} can be reached by others and no token was made: "
                "make one with `headway token create`, or listen on 127.0.0.1"
            )
        return keyring

    def _started(self, address: str) -> None:
        settings = self._settings
        has_tls = settings.certificate is not None
        self._watch.happened(
            "started",
            address=address,
            **self._who(),
            tokens=self._keyring.is_required,
            tls=has_tls,
        )
        if not has_tls and not settings.is_loopback:
            text = "tokens and jobs can be read on their way: no --certificate is given"
            self._watch.warned("no tls", why=text)

    def _who(self) -> dict[str, str]:
        member = self._settings.member
        if member is not None:
            return {"node": member.name}
        return {"partition": self._settings.partition}

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


def _hosts(settings: Settings) -> tuple[str, ...]:
    """Names by which it may be called; for other nodes, by the one it has told them."""
    member = settings.member
    if member is None or member.advertise is None or not settings.hosts:
        return settings.hosts
    return (*settings.hosts, urlsplit(member.advertise).hostname or "")


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


def raise_file_limit(connections: int) -> None:
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
