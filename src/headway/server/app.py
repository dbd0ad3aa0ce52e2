"""From a request to its answer: who asks, what, may they, and what comes of it."""

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Protocol

from headway.core.errors import RuleBroken
from headway.runtime.errors import OwnerStopped, RuntimeFailure
from headway.runtime.owner import Ask
from headway.server import bodies
from headway.server.acted import act_of, reason_of
from headway.server.call import Call, Facilities
from headway.server.desk import Asking, Desk
from headway.server.guard import Guard
from headway.server.http.message import Request, Response
from headway.server.plans import Asked, Awaited, Plan, Waiting
from headway.server.problems import Refused, of_error, problem
from headway.server.routing import NDJSON, Found, Router
from headway.wire.values import QUEUE

THREADS: Final = 4
"""For searches and whatever else may take a while."""
_QUEUE: Final = re.compile(QUEUE)


class Watch(Protocol):
    """Whoever keeps the log."""

    def seen(
        self, request: Request, call: Call | None, answer: Response, began_s: float
    ) -> None:
        """A request was answered; without a call it was refused at the gate."""
        ...

    def broken(self, error: Exception) -> None:
        """A bug has shown itself."""
        ...

    def owner_stopped(self, stopped: OwnerStopped) -> None: ...

    def owner_reopened(self) -> None: ...


class App:
    """Answers requests."""

    def __init__(
        self,
        router: Router,
        desk: Desk,
        guard: Guard,
        facilities: Facilities,
        watch: Watch,
    ) -> None:
        self._router = router
        self._desk = desk
        self._guard = guard
        self._facilities = facilities
        facilities.over_rate = lambda: guard.over_rate
        self._watch = watch
        self._is_stopped = False
        """The last answer was that the owner has stopped."""
        self.seen = watch.seen
        self.broken = watch.broken
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "headway-read")

    def handle(self, request: Request, tell: Callable[[Response], None]) -> "Answering":
        answering = Answering(self, request, tell)
        answering.begin()
        return answering

    def look(self, ask: Ask, then: Callable[[Any], None]) -> Asking:
        """Puts one ask of the node's own to the owner."""
        return self._desk.ask([ask], lambda answers: then(answers[0]))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def prepare(self, request: Request) -> Call:
        """Everything that can be said of a request before it is carried out."""
        self._guard.check_host(request)
        found: Found = request.found or self._router.find(request)
        route = found.route
        self._guard.check_site(request, route.verb)
        bearer = self._guard.bearer(request, route.verb)
        call = Call(request, route, found.params, bearer, self._facilities)
        queue = found.params.get("queue")
        if queue is not None and not _QUEUE.fullmatch(queue):
            raise Refused("bad_value", "no queue can have this name", "queue")
        if route.is_queue_checked:
            call.require(route.verb, queue)
        elif not bearer.may_some(route.verb):
            raise Refused("forbidden", f"{route.verb} is not allowed on any queue")
        if route.is_reasoned:
            call.reason = reason_of(call)
        if route.is_body_late:
            call.late_body = partial(_body, request, found)
        elif found.decoder is not None:
            call.body = _body(request, found)
        return call

    def run_in_thread(self, work: Callable[[], Plan], answering: "Answering") -> None:
        def done(future: Any) -> None:
            if future.cancelled():
                return
            result = future.exception() or future.result()
            self._loop.call_soon_threadsafe(answering.step, result)

        self._threads.submit(work).add_done_callback(done)

    def ask(self, plan: Asked, answering: "Answering") -> Asking:
        def answered(got: list[Any]) -> None:
            if isinstance(got[0], OwnerStopped) != self._is_stopped:
                self._turned(got[0])
            answering.then(plan.then, got)

        return self._desk.ask(plan.asks, answered)

    def is_noted(self, call: Call, response: Response) -> bool:
        """Whether an operator has changed something by this call."""
        is_act = call.route.is_act or call.reason
        if not is_act or response.status >= 300:
            return False
        return not getattr(call.body, "preview", False)

    def note(self, call: Call, then: Callable[[], None]) -> None:
        """Writes down who has done what, and goes on when it is written."""
        self._facilities.acts.note(act_of(call), then)

    def _turned(self, answer: Any) -> None:
        """The owner has stopped since the last answer, or is there again."""
        self._is_stopped = isinstance(answer, OwnerStopped)
        if self._facilities.is_stopping:
            return
        if self._is_stopped:
            self._watch.owner_stopped(answer)
        else:
            self._watch.owner_reopened()


class HeldApp(App):
    """Lets no answer out that may be wrong by now, as another may have the partition.

    Whether it was carried out is not known then, as little as to whoever asked.
    """

    def __init__(
        self,
        router: Router,
        desk: Desk,
        guard: Guard,
        facilities: Facilities,
        watch: Watch,
        *,
        is_held: Callable[[], bool],
    ) -> None:
        # One by one: compiled, a tuple of them would be handed on as the first.
        super().__init__(router, desk, guard, facilities, watch)
        self._is_held = is_held

    def handle(self, request: Request, tell: Callable[[Response], None]) -> "Answering":
        def leave(response: Response) -> None:
            is_good = self._is_held() or self._is_of_nodes(request)
            tell(response if is_good else not_held())

        return super().handle(request, leave)

    def _is_of_nodes(self, request: Request) -> bool:
        """Whoever moves a partition is told so, even by the one that was moved."""
        try:
            found = request.found or self._router.find(request)
        except Refused:
            return False
        return found.route.is_of_nodes


class Answering:
    """One request on its way to its answer."""

    __slots__ = (
        "_app",
        "_asking",
        "_began_s",
        "_call",
        "_is_abandoned",
        "_request",
        "_tell",
    )

    def __init__(
        self, app: App, request: Request, tell: Callable[[Response], None]
    ) -> None:
        self._app = app
        self._request = request
        self._tell = tell
        self._call: Call | None = None
        self._asking: Waiting | None = None
        self._is_abandoned = False
        self._began_s = time.perf_counter()

    def begin(self) -> None:
        self._attempt(self._first)

    def then(self, then: Callable[[list[Any]], Plan], answers: list[Any]) -> None:
        self._asking = None
        self._attempt(lambda: then(answers))

    def _first(self) -> Plan:
        self._call = call = self._app.prepare(self._request)
        return call.route.handler(call)

    def _attempt(self, work: Callable[[], Plan]) -> None:
        plan: Plan | Exception
        try:
            plan = work()
        except Exception as error:
            # Whatever it is, the client is told that it was something.
            plan = error
        self.step(plan)

    def step(self, plan: Plan | Exception) -> None:
        """Goes on with what there is to be done."""
        if isinstance(plan, Exception):
            if not isinstance(plan, Refused | RuleBroken | RuntimeFailure):
                self._app.broken(plan)
            plan = of_error(plan)
        if isinstance(plan, Response):
            self._app.seen(self._request, self._call, plan, self._began_s)
            if self._call is not None and self._app.is_noted(self._call, plan):
                self._app.note(self._call, partial(self._give, plan))
            else:
                self._give(plan)
        elif isinstance(plan, Asked):
            self._asking = self._app.ask(plan, self)
        elif isinstance(plan, Awaited):
            self._wait(plan)
        else:
            self._app.run_in_thread(plan.work, self)

    def _give(self, response: Response) -> None:
        if not self._is_abandoned:
            self._tell(response)

    def _wait(self, plan: Awaited) -> None:
        def over(following: Plan) -> None:
            self._asking = None
            self.step(following)

        try:
            waiting = plan.begin(over)
        except Exception as error:
            self.step(error)
            return
        if waiting.is_waiting:
            self._asking = waiting

    @property
    def is_waiting(self) -> bool:
        return self._asking is not None and self._asking.is_waiting

    def withdraw(self) -> None:
        """Its wait is over; what it was granted is still handed out."""
        if isinstance(self._asking, Asking):
            self._asking.withdraw()

    def abandon(self) -> None:
        self._is_abandoned = True
        if self._asking is not None:
            self._asking.abandon()


def not_held() -> Response:
    """The answer in place of one that may not leave any more."""
    return problem("stopped", "this node does not hold the partition now")


def _body(request: Request, found: Found) -> Any:
    """The body as its type."""
    route = found.route
    assert found.decoder is not None
    body = request.body
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if not body and not route.is_body_needed:
        return None
    if route.is_lines and kind == NDJSON.encode():
        lines = [line for line in body.split(b"\n") if line.strip()]
        body = b"[%s]" % b",".join(lines)
        # A line is a value of its own: joined, two halves could become a whole.
        for line in lines:
            bodies.check(line)
    elif kind != b"application/json" and not route.is_any_kind:
        # Pages of other sites can send everything but this without asking.
        raise Refused("unsupported_media_type", "it must be application/json")
    return bodies.read(body, found.decoder, found.plain)
