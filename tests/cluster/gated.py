"""Nodes without a database: real partitions, sockets and gateways, and a map by hand."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from headway.core.cluster import Placement
from headway.core.commands import Configure
from headway.core.config import QueueConfig
from headway.runtime.door import Door
from headway.search.finder import Finder
from headway.server.acts import Acts
from headway.server.app import App
from headway.server.call import Facilities
from headway.server.callbacks import CallbackFile, Callbacks
from headway.server.cluster.gateway import Gateway
from headway.server.cluster.meter import Meter
from headway.server.cluster.places import Looked, Placed
from headway.server.desk import Desk
from headway.server.guard import Guard
from headway.server.handlers.table import ROUTES
from headway.server.http.connection import Connections
from headway.server.http.limits import Limits
from headway.server.http.message import Response
from headway.server.ids import Ids
from headway.server.log import Watcher
from headway.server.members import Alone
from headway.server.past import Past
from headway.server.problems import of_http
from headway.server.pulse import Pulse
from headway.server.routing import Router
from headway.server.tokens import Keyring, TokenFile
from headway.server.truth import InFile
from headway.server.writes import Writes
from tests.server.process import PATIENCE_S, Answer

KEY = b"k" * 32
DEFAULT = "default"


class Map:
    """Who holds what, and where queues are; the same for all nodes."""

    def __init__(self, layout: dict[str, Sequence[str]]) -> None:
        self.holders = {
            partition: node for node, mine in layout.items() for partition in mine
        }
        self.names = sorted(self.holders)
        self.queues: dict[str, tuple[str, ...]] = {DEFAULT: (self.names[0],)}
        self.addresses: dict[str, str] = {}
        self.apps: dict[str, App] = {}
        self.listeners: list[Callable[[], None]] = []
        self.refreshes = 0
        self.marks: dict[str, Placement] = {}
        self.version = 0

    def placement(self, queue: str) -> Placement | None:
        if queue not in self.queues:
            return None
        bare = Placement(partitions=self.queues[queue])
        return self.marks.get(queue, bare)

    def replace(self, queue: str, to: Placement) -> Placement | None:
        """As the database does it."""
        had = self.placement(queue)
        if had is None or had.version != to.version:
            return None
        if not set(had.open) <= set(to.partitions):
            return None
        self.version += 1
        self.queues[queue] = to.partitions
        self.marks[queue] = replace(to, version=self.version)
        return self.marks[queue]

    def turned(self) -> None:
        listeners, self.listeners = self.listeners, []
        for then in listeners:
            then()


class StaticPlaces:
    """The map as one node sees it."""

    def __init__(self, name: str, map_: Map) -> None:
        self.name = name
        self.map = map_
        self.believed: dict[str, str] = {}
        """Partitions of which the node has not heard that they moved."""
        self.is_leased = True

    def partitions(self) -> Sequence[str]:
        return self.map.names

    def of_queue(self, queue: str) -> tuple[str, ...] | None:
        return self.map.queues.get(queue)

    def look_up(self, queue: str, then: Placed) -> None:
        place = self.map.names[sum(queue.encode()) % len(self.map.names)]
        then(self.map.queues.setdefault(queue, (place,)))

    @property
    def marks(self) -> dict[str, Placement]:
        return self.map.marks

    def placement(self, queue: str, then: Looked) -> None:
        then(self.map.placement(queue))

    def replace(self, queue: str, to: Placement, then: Looked) -> None:
        then(self.map.replace(queue, to))

    def local(self, partition: str) -> App | None:
        if self.map.holders.get(partition) != self.name:
            return None
        return self.map.apps[partition]

    def address(self, partition: str) -> str | None:
        holder = self.believed.get(partition) or self.map.holders.get(partition)
        if holder is None or holder == self.name:
            return None
        return self.map.addresses.get(holder)

    def is_valid(self) -> bool:
        return self.is_leased

    @property
    def left_s(self) -> float:
        return 1.5 if self.is_leased else 0.0

    def changed(self, then: Callable[[], None]) -> None:
        self.map.listeners.append(then)

    def refresh(self) -> None:
        self.map.refreshes += 1
        self.believed.clear()


class Partition:
    """One partition on a file of its own."""

    def __init__(self, name: str, folder: Path, guard: Guard, watch: Watcher) -> None:
        loop = asyncio.get_running_loop()
        truth = InFile(folder / "headway.db")
        self.door = Door(folder / "headway.db")
        desk = Desk(self.door, loop)
        self.facilities = Facilities(
            Ids(name, KEY),
            Finder(folder / "index.db"),
            Past(truth.open_past, name),
            Callbacks(CallbackFile(folder.parent), watch),
            Writes(folder / "writes", desk),
            Acts(folder, watch, loop),
            Pulse(desk, watch.broken),
            Alone(name),
            DEFAULT,
        )
        desk.submit(Configure(QueueConfig(name=DEFAULT), is_new_only=True)).result()
        self.app = App(Router(ROUTES), desk, guard, self.facilities, watch)

    def close(self) -> None:
        self.app.close()
        self.facilities.acts.close()
        self.facilities.finder.close()
        self.facilities.past.close()
        self.door.close()


class Node:
    """A gateway behind a socket."""

    def __init__(self, name: str, map_: Map, folder: Path, patience_s: float) -> None:
        self.name = name
        self.places = StaticPlaces(name, map_)
        self.watch = Watcher("error")
        self.keyring = Keyring(TokenFile(folder), self.watch)
        self.guard = Guard(self.keyring, "127.0.0.1", ())
        callbacks = Callbacks(CallbackFile(folder), self.watch)
        self.gateway = Gateway(
            self.places,
            Router(ROUTES),
            SimpleNamespace(guard=self.guard, callbacks=callbacks, watch=self.watch),
            KEY,
            default_queue=DEFAULT,
            patience_s=patience_s,
            meter=Meter(name),
        )
        self.connections = Connections(self.gateway.handle, of_http, Limits())
        self.seen: list[str] = []
        """Paths that came in over the socket."""

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        handle = self.connections.handle

        def counted(request: Any, tell: Callable[[Response], None]) -> Any:
            self.seen.append(request.path.decode())
            return handle(request, tell)

        self.connections.handle = counted
        self.listener = await loop.create_server(
            lambda: self.connections.accept(loop), "127.0.0.1", 0
        )
        self.port: int = self.listener.sockets[0].getsockname()[1]
        self.places.map.addresses[self.name] = f"http://127.0.0.1:{self.port}"
        self.tending = asyncio.ensure_future(self.gateway.tend())

    def ask(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> Answer:
        """On a connection of its own; names of headers have _ for -."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, PATIENCE_S)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            content = None
            if body is not None:
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                sent.setdefault("content-type", "application/json")
            connection.request(method, path, content, sent)
            got = connection.getresponse()
            found = {name.lower(): value for name, value in got.getheaders()}
            return Answer(got.status, found, got.read())
        finally:
            connection.close()

    def enqueue(self, queue: str, *jobs: dict[str, Any]) -> list[str]:
        answer = self.ask("POST", f"/v1/queues/{queue}/jobs", list(jobs) or [{}])
        assert answer.status == 201, answer
        return [job["id"] for job in answer.json["jobs"]]

    def lease(self, *queues: str, **more: Any) -> list[dict[str, Any]]:
        body: dict[str, Any] = {"max": 10, **more}
        if queues:
            body["queues"] = list(queues)
        answer = self.ask("POST", "/v1/lease", body)
        assert answer.status == 200, answer
        jobs: list[dict[str, Any]] = answer.json["jobs"]
        return jobs

    def close(self) -> None:
        self.listener.close()
        self.connections.abort()
        self.gateway.close()


class Gated:
    """Nodes on a loop in a thread of its own; tests ask them over sockets."""

    def __init__(
        self, folder: Path, layout: dict[str, Sequence[str]], patience_s: float
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.map = Map(layout)
        self.nodes: dict[str, Node] = {}
        self._partitions: list[Partition] = []
        self.run(self._open(folder, layout, patience_s))

    def __getitem__(self, name: str) -> Node:
        return self.nodes[name]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def call(self, work: Callable[[], Any]) -> Any:
        """On the loop."""

        async def called() -> Any:
            return work()

        return self.run(called())

    def measure(self) -> None:
        """From now on partitions know how busy they are."""
        for one in self._partitions:
            self.call(partial(asyncio.ensure_future, one.facilities.pulse.run()))

    def place(self, **queues: str) -> None:
        """Says where queues are: names of partitions with commas between them."""
        self.map.queues |= {name: tuple(at.split(",")) for name, at in queues.items()}

    def move(self, partition: str, node: str | None, *, is_told: bool = True) -> None:
        """Another node holds it, or none; others may go on believing what they did."""

        def moved() -> None:
            before = self.map.holders.pop(partition, None)
            if node is not None:
                self.map.holders[partition] = node
            if is_told:
                self.map.turned()
                return
            for one in self.nodes.values():
                if before is not None and one.name != before:
                    one.places.believed[partition] = before

        self.call(moved)

    async def _open(
        self, folder: Path, layout: dict[str, Sequence[str]], patience_s: float
    ) -> None:
        for name, mine in layout.items():
            node = Node(name, self.map, folder, patience_s)
            await node.listen()
            self.nodes[name] = node
            for partition in mine:
                place = folder / partition
                place.mkdir()
                made = Partition(partition, place, node.guard, node.watch)
                self._partitions.append(made)
                self.map.apps[partition] = made.app

    async def _shut(self) -> None:
        for node in self.nodes.values():
            node.close()
        mine = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)
        for partition in self._partitions:
            partition.close()

    def close(self) -> None:
        self.run(self._shut())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()


@contextmanager
def gated(
    folder: Path, patience_s: float = 10.0, **layout: Sequence[str]
) -> Iterator[Gated]:
    """Two nodes, `a` with p1 and `b` with p2, unless it is said otherwise."""
    cluster = Gated(folder, layout or {"a": ["p1"], "b": ["p2"]}, patience_s)
    try:
        yield cluster
    finally:
        cluster.close()
