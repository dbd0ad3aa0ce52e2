"""A node's life: join, answer, hand over, and leave."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any, Final

from headway.server.app import not_held
from headway.server.cluster.errand import Answered
from headway.server.cluster.gateway import Gateway
from headway.server.cluster.node import Node
from headway.server.cluster.peers import Peers, trusted
from headway.server.cluster.places import Places
from headway.server.front import Front, Ousted
from headway.server.handlers.table import ROUTES
from headway.server.http.message import Answering, Handle, Request, Response
from headway.server.ids import KEY, KEY_BYTES, signing_key
from headway.server.log import Watcher
from headway.server.routing import Router
from headway.server.settings import Member, Settings
from headway.store.postgres.cluster import Me

THREADS: Final = 32
OPEN_S: Final = 15.0
"""So long its first partitions are waited for before it says that it is there."""
ALIVE: Final = b"/livez"


class NodeServer:
    """One process of a cluster."""

    def __init__(self, settings: Settings, watch: Watcher) -> None:
        assert settings.member is not None
        self._settings = settings
        self._member: Member = settings.member
        self._watch = watch
        self._stop = asyncio.Event()

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serves until it is told to stop; `ready` is told the address."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._watch.stray)
        # Partitions are opened and closed there, some of them slowly.
        loop.set_default_executor(ThreadPoolExecutor(THREADS, "headway-node"))
        front = Front(self._settings, self._watch)
        peers = Peers(loop, trusted(self._member.peer_ca))
        me = self._me(front.bind())
        node = Node(self._settings, self._member, me, front.host)
        try:
            await self._join(node)
            gateway = Gateway(
                node.places,
                Router(ROUTES),
                front.host,
                node.key,
                default_queue=self._settings.default_queue,
                peers=peers,
                meter=node.meter,
            )
            handle = _held(gateway.handle, node.places)
            address = await front.listen(handle, self._stop.set)
            await _first(self._stop.wait(), node.is_settled(OPEN_S))
            ready(address)
            await _first(self._stop.wait(), node.ended.wait(), gateway.tend())
            self._watch.happened("stopping", ousted=node.ended.is_set())
            await node.leave(self._settings.grace_s)
            await front.close(node.end_waits)
            gateway.close()
        finally:
            await node.close()
        self._watch.happened("stopped")
        if node.ended.is_set():
            raise Ousted(f"another process is node {me.name!r} now")

    async def _join(self, node: Node) -> None:
        """An earlier process of the name may have a lease until it is over."""
        names = [f"p{number}" for number in range(1, self._member.partitions + 1)]
        joining = node.join(self._fresh_key(), names)
        try:
            await asyncio.wait_for(joining, 3 * self._member.lease_ms / 1_000 + OPEN_S)
        except TimeoutError as error:
            raise Ousted(
                f"node {self._member.name!r} can't join: another process has the name, "
                "or the database does not answer"
            ) from error

    def _fresh_key(self) -> bytes:
        """For a cluster that has none: of a server that was here before, if it has one.

        So leases that it has given out stay good.
        """
        path = self._settings.data / KEY
        return signing_key(path) if path.exists() else secrets.token_bytes(KEY_BYTES)

    def _me(self, address: str) -> Me:
        member = self._member
        return Me(
            name=member.name,
            life=secrets.token_hex(8),
            address=(member.advertise or address).rstrip("/"),
            version=version("headway"),
            databases=("", *sorted(member.databases)),
            lease_ms=member.lease_ms,
        )


def _held(handle: Handle, places: Places) -> Handle:
    """Nothing is asked when the lease is over; that the process lives is always told."""

    def begin(request: Request, tell: Callable[[Response], None]) -> Answering:
        if request.path == ALIVE and request.method in (b"GET", b"HEAD"):
            tell(Response(200, b'{"status":"ok"}'))
            return Answered()
        if not places.is_valid():
            tell(not_held())
            return Answered()
        return handle(request, tell)

    return begin


async def _first(*awaited: Coroutine[Any, Any, object]) -> None:
    """Until one of them is over; the others are given up."""
    waiting = [asyncio.ensure_future(one) for one in awaited]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
