"""One request that takes more than a look at a local partition."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from headway.core.errors import RuleBroken
from headway.runtime.errors import RuntimeFailure
from headway.server.http.message import Request, Response
from headway.server.problems import Refused, of_error, problem
from headway.server.routing import Route
from headway.server.scopes import Bearer, Verb

HOP: Final = b"headway-hop"
PEER: Final = b"headway-peer"
PARTITION: Final = b"headway-partition"
WAIT: Final = b"headway-wait"
OWN: Final = b"headway-own"
"""Beside a proof: the node asks of its own accord."""
ELSEWHERE: Final = b"headway-elsewhere"
"""On an answer: the partition is not served here, and nothing was done."""


class Unreached(Refused):
    """A partition was not reached, or nobody knows what it has done."""

    def __init__(self, detail: str, *, is_unknown: bool) -> None:
        super().__init__("stopped", detail)
        self.is_unknown = is_unknown
        """It may have been carried out."""


class Errand:
    """What is known of such a request."""

    __slots__ = ("bearer", "is_hop", "is_repeatable", "params", "request", "route")

    def __init__(
        self,
        request: Request,
        route: Route,
        params: dict[str, str],
        bearer: Bearer,
        *,
        is_hop: bool,
    ) -> None:
        self.request = request
        self.route = route
        self.params = params
        self.bearer = bearer
        self.is_hop = is_hop
        """It comes from another node, or says so: nothing is forwarded."""
        self.is_repeatable = route.is_harmless
        """It may be sent again although it may have been carried out."""

    def with_request(self, request: Request) -> "Errand":
        """The same for a part of it."""
        request.is_own = self.request.is_own
        part = Errand(request, self.route, self.params, self.bearer, is_hop=self.is_hop)
        part.is_repeatable = self.is_repeatable
        return part

    def with_body(self, body: bytes) -> "Errand":
        headers = {**self.request.headers, b"content-type": b"application/json"}
        return self.with_request(
            Request(self.request.method, self.request.target, headers, body)
        )

    def with_target(self, target: bytes, method: bytes = b"GET") -> "Errand":
        headers = self.request.headers
        return self.with_request(Request(method, target, headers))

    def require(self, verb: Verb, queue: str | None) -> None:
        """Refuses before any partition is asked what one of them would refuse."""
        if not self.bearer.may(verb, queue):
            what = "every queue" if queue is None else f"queue {queue!r}"
            raise Refused("forbidden", f"{verb} is not allowed on {what}")


class Undertaking:
    """A request that is being answered by a task."""

    __slots__ = ("_is_long", "_task")

    def __init__(
        self,
        work: Coroutine[Any, Any, Response],
        tell: Callable[[Response], None],
        broken: Callable[[Exception], None],
        *,
        is_long: bool,
    ) -> None:
        self._is_long = is_long
        self._task = asyncio.ensure_future(_done(work, tell, broken))

    @property
    def is_waiting(self) -> bool:
        return self._is_long and not self._task.done()

    def abandon(self) -> None:
        self._task.cancel()


class Answered:
    """A request that was answered on the spot."""

    __slots__ = ()
    is_waiting = False

    def abandon(self) -> None:
        """There is nothing to be given up."""


async def _done(
    work: Coroutine[Any, Any, Response],
    tell: Callable[[Response], None],
    broken: Callable[[Exception], None],
) -> None:
    try:
        response = await work
    except (Refused, RuleBroken, RuntimeFailure) as refused:
        response = of_error(refused)
    except Exception as error:
        # Whatever it is, the client is told that it was something.
        broken(error)
        response = problem("internal")
    tell(response)
