"""Puts a request to a partition, wherever it is, and waits while it is nowhere."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from headway.server.app import App
from headway.server.cluster.errand import (
    ELSEWHERE,
    HOP,
    OWN,
    PARTITION,
    PEER,
    Errand,
    Unreached,
)
from headway.server.cluster.meter import Meter, now_s
from headway.server.cluster.peers import Lost, NotSent, PeerFailure, Peers
from headway.server.cluster.places import Places
from headway.server.http.message import Request, Response
from headway.server.problems import Refused, problem

PATIENCE_S: Final = 15.0
"""How long a request waits for a partition that nobody holds: until the lease of a node
that died is over, and some time for the next one to take over."""
ANSWER_S: Final = 30.0
"""For what another node does not hold back."""
LONG_S: Final = 90.0
"""For long polls, which take a minute at most."""
SOON_S: Final = 0.02
AGAIN_S: Final = 0.25
"""Between two looks at where a partition is, unless it is told before: a node that has
just been given one opens it in a moment, and tells nobody. Later, so late."""
WAITERS_MAX: Final = 2_000
"""Requests that wait for partitions at once."""
STOPPED: Final = problem("stopped", "this node's lease is over")
NOT_HERE: Final = problem("stopped", "the partition is not served by this node")
NOT_HERE.headers = (*NOT_HERE.headers, (ELSEWHERE, b"1"))


class Waiting:
    """A local request under way, for those who may want it to end early."""

    __slots__ = ("withdraw",)

    def __init__(self) -> None:
        self.withdraw = _nothing


class Reach:
    """The way to every partition."""

    def __init__(
        self,
        places: Places,
        peers: Peers,
        proof: bytes,
        patience_s: float,
        meter: Meter,
    ) -> None:
        self._places = places
        self._peers = peers
        self._meter = meter
        self._patience_s = patience_s
        self._waiters = 0
        self._change: asyncio.Future[None] | None = None
        self._hop = {HOP: b"1", PEER: proof}

    async def ask(
        self,
        partition: str,
        errand: Errand,
        *,
        is_long: bool = False,
        waiting: Waiting | None = None,
        extra: Mapping[bytes, bytes] | None = None,
        patience_s: float | None = None,
    ) -> Response:
        """The partition's answer. Raises Unreached if it was not to be had in time."""
        loop = asyncio.get_running_loop()
        if patience_s is None:
            patience_s = self._patience_s
        until_s = loop.time() + patience_s
        again_s = SOON_S
        is_lost = False
        while True:
            why = f"nobody holds partition {partition} at the moment"
            response: Response | None = None
            app = self._places.local(partition)
            if app is not None:
                response = await self._local(app, errand.request, waiting)
                if not _is_worth_repeating(errand, response):
                    return response
            elif errand.is_hop:
                return NOT_HERE
            elif (url := self._places.address(partition)) is not None:
                hop = {**self._hop, PARTITION: partition.encode(), **(extra or {})}
                if errand.request.is_own:
                    hop[OWN] = b"1"
                try:
                    response = await self._sent(url, errand, hop, is_long=is_long)
                except NotSent as error:
                    why = str(error)
                except Lost as error:
                    if not errand.is_repeatable:
                        text = f"partition {partition}: {error}"
                        raise Unreached(text, is_unknown=True) from error
                    why, is_lost = str(error), True
                else:
                    if is_elsewhere(response):
                        response = None
                    elif not _is_worth_repeating(errand, response):
                        return response
                    why = f"{url} does not hold partition {partition} any more"
                self._places.refresh()
            if loop.time() >= until_s:
                if response is not None:
                    return response
                text = why if is_lost else f"{why}: nothing was done"
                raise Unreached(text, is_unknown=is_lost)
            await self._moved(again_s)
            again_s = min(2 * again_s, AGAIN_S)

    async def node(self, url: str, request: Request, timeout_s: float) -> Response:
        """Asks a node, and no partition; whatever goes wrong is raised."""
        try:
            return await self._peers.call(url, request, self._hop, timeout_s)
        except PeerFailure as error:
            self._meter.failed(error)
            raise

    async def _sent(
        self, url: str, errand: Errand, hop: Mapping[bytes, bytes], *, is_long: bool
    ) -> Response:
        """Sends it on, and counts it."""
        meter = self._meter
        meter.forwarded += 1
        began_s = now_s()
        timeout_s = LONG_S if is_long else ANSWER_S
        try:
            response = await self._peers.call(url, errand.request, hop, timeout_s)
        except PeerFailure as error:
            meter.failed(error)
            raise
        if not is_long:
            meter.answered(began_s)
        return response

    async def _local(
        self, app: App, request: Request, waiting: Waiting | None
    ) -> Response:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def told(response: Response) -> None:
            if not answer.done():
                answer.set_result(response)

        request.is_counted = True  # as a whole, when it came
        answering = app.handle(request, told)
        if waiting is not None:
            waiting.withdraw = answering.withdraw
        try:
            response = await answer
        except asyncio.CancelledError:
            answering.abandon()
            raise
        return response if self._places.is_valid() else STOPPED

    async def _moved(self, again_s: float) -> None:
        """Until partitions have moved, or it is time to look again."""
        if self._waiters >= WAITERS_MAX:
            raise Refused("busy", f"{WAITERS_MAX} requests wait for partitions already")
        change = self._change
        if change is None or change.done():
            change = self._change = asyncio.get_running_loop().create_future()
            self._places.changed(lambda: _set(change))
        self._waiters += 1
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(change), again_s)
        finally:
            self._waiters -= 1


def is_elsewhere(response: Response) -> bool:
    """Whether another node has answered that the partition is not its own."""
    return response.status == 503 and any(
        name == ELSEWHERE for name, _ in response.headers
    )


def _is_worth_repeating(errand: Errand, response: Response) -> bool:
    """Whether the partition has stopped in the middle of what may be asked again."""
    if response.status != 503 or not errand.is_repeatable or errand.is_hop:
        return False
    return b'"code":"stopped"' in response.body


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _nothing() -> None:
    """Nothing waits yet."""
