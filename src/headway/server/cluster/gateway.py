"""In front of all partitions: every request finds its own, here or at another node."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from hmac import compare_digest
from typing import Final, Protocol

import msgspec

from headway.server.app import Answering as Local
from headway.server.app import App
from headway.server.callbacks import Callbacks
from headway.server.cluster import spreading
from headway.server.cluster.errand import (
    HOP,
    OWN,
    PARTITION,
    PEER,
    WAIT,
    Answered,
    Errand,
    Undertaking,
)
from headway.server.cluster.hints import PATH as URGENCY
from headway.server.cluster.leasing import WITHDRAW, queues_of, withdrawal_of
from headway.server.cluster.meter import Meter
from headway.server.cluster.narrowing import PATH as STEP
from headway.server.cluster.peers import Peers
from headway.server.cluster.places import Places
from headway.server.cluster.reach import NOT_HERE, PATIENCE_S, STOPPED, Reach
from headway.server.cluster.rules import (
    RULES,
    By,
    Rule,
    Wide,
    partition_of_job,
)
from headway.server.cluster.tending import Auto, Tending
from headway.server.cluster.ways import Ways
from headway.server.guard import Guard
from headway.server.http.message import Answering, Request, Response
from headway.server.problems import Refused, of_error, problem
from headway.server.routing import Found, Router

Tell = Callable[[Response], None]
Alone = Callable[[Rule, Found, Request], App | None]
INTERNAL: Final = b"/v1/cluster/"
INTERNAL_BYTES_MAX: Final = 1 << 20
WARNED_S: Final = 60.0
"""Between two lines of the log that say the same."""
_DONE: Final = Response(200, b'{"done":true}')
_ANSWERED: Final = Answered()


class Watch(Protocol):
    """Whoever keeps the log."""

    def broken(self, error: Exception) -> None: ...

    def warned(self, event: str, **fields: object) -> None: ...


class Host(Protocol):
    """What the partitions of a node have in common."""

    @property
    def guard(self) -> Guard: ...

    @property
    def callbacks(self) -> Callbacks: ...

    @property
    def watch(self) -> Watch: ...


class Gateway:
    """Answers requests, as an App does for one partition."""

    def __init__(
        self,
        places: Places,
        router: Router,
        host: Host,
        key: bytes,
        *,
        default_queue: str = "default",
        peers: Peers | None = None,
        patience_s: float = PATIENCE_S,
        meter: Meter | None = None,
    ) -> None:
        """`key` is known to all nodes and to nobody else.

        Without a meter nothing is told of the node itself.
        """
        self._places = places
        self._router = router
        self._host = host
        self._proof = proof_of(key)
        self._default_queue = default_queue
        self._peers = peers or Peers(asyncio.get_running_loop())
        counts = meter or Meter("")
        self._reach = Reach(places, self._peers, self._proof, patience_s, counts)
        self._ways = Ways(
            places, self._reach, host.callbacks, router, default_queue, meter=meter
        )
        alone: dict[By, Alone] = {
            By.QUEUE: self._by_queue,
            By.DEFAULT: self._by_default,
            By.JOB: self._by_job,
            By.TOKEN: self._by_tokens,
            By.TOKENS: self._by_tokens,
            By.LEASE: self._by_lease,
            By.PARTITION: self._by_partition,
            By.NAMED: self._by_name,
            By.ANY: self._by_any,
        }
        rules = [(route, RULES[route.operation]) for route in router.routes]
        self._rules = {id(route): (rule, alone.get(rule.by)) for route, rule in rules}
        """By route: where it goes, and who finds the local partition that can answer it
        by itself, where that is plain."""
        self._warn_s = 0.0
        """From then on it is told again that tokens differ."""
        self._held: dict[str, Local] = {}
        """Leases that wait for other nodes, by the name that those gave them."""

    def handle(self, request: Request, tell: Tell) -> Answering:
        headers = request.headers
        if HOP in headers or request.target.startswith(INTERNAL):
            return self._hopped(request, tell)
        return self._routed(request, tell, is_hop=False)

    async def tend(self) -> None:
        """What is to be done without being asked, until it is called off."""
        ways = self._ways
        auto = Auto(self._places, self._reach, ways.narrowing, ways.widening)
        await Tending(self._places, ways.narrowing, auto, self._host.watch).run()

    def close(self) -> None:
        self._peers.close()

    def _routed(self, request: Request, tell: Tell, *, is_hop: bool) -> Answering:
        try:
            found = self._router.find(request)
        except Refused as refused:
            return self._refused(request, tell, refused)
        rule, alone = self._rules[id(found.route)]
        app = None if alone is None else alone(rule, found, request)
        if app is not None:
            request.found = found
            return app.handle(request, self._guarded(tell))
        try:
            errand = self._errand(request, found, rule, is_hop=is_hop)
        except Refused as refused:
            tell(of_error(refused))
            return _ANSWERED
        return Undertaking(
            self._ways.go(errand, rule),
            tell,
            self._host.watch.broken,
            is_long=rule.is_long,
        )

    def _by_job(self, _: Rule, found: Found, __: Request) -> App | None:
        return self._places.local(partition_of_job(found.params["id"]))

    def _by_tokens(self, _: Rule, __: Found, request: Request) -> App | None:
        named = spreading.partitions_of(request.body)
        return self._places.local(named.pop()) if len(named) == 1 else None

    def _by_queue(self, rule: Rule, found: Found, _: Request) -> App | None:
        return self._of_queue(found.params["queue"], rule)

    def _by_default(self, rule: Rule, _: Found, __: Request) -> App | None:
        return self._of_queue(self._default_queue, rule)

    def _by_partition(self, _: Rule, found: Found, __: Request) -> App | None:
        return self._places.local(found.params["partition"])

    def _by_name(self, _: Rule, __: Found, request: Request) -> App | None:
        return None if b"partition=" in request.target else self._ways.any_local()

    def _by_any(self, _: Rule, __: Found, ___: Request) -> App | None:
        return self._ways.any_local()

    def _of_queue(self, queue: str, rule: Rule) -> App | None:
        partitions = self._places.of_queue(queue)
        if partitions is None:
            return None
        if len(partitions) > 1 and rule.wide is not Wide.HOME:
            return None
        return self._places.local(partitions[0])

    def _by_lease(self, _: Rule, __: Found, request: Request) -> App | None:
        try:
            queues = queues_of(request.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self._ways.any_local()
        partition: str | None = None
        places = self._places
        if queues is None:
            named = places.partitions()
            return places.local(named[0]) if len(named) == 1 else None
        for queue in queues:
            one = places.of_queue(queue)
            if one is None or len(one) > 1 or partition not in (None, one[0]):
                return None
            partition = one[0]
        return None if partition is None else places.local(partition)

    def _errand(
        self, request: Request, found: Found, rule: Rule, *, is_hop: bool
    ) -> Errand:
        """Refuses at the gate what comes from a wrong place, or from nobody."""
        guard = self._host.guard
        route = found.route
        guard.check_host(request)
        guard.check_site(request, route.verb)
        bearer = guard.bearer(request, route.verb)
        errand = Errand(request, route, found.params, bearer, is_hop=is_hop)
        # A job that came twice under one key is one job.
        has_key = rule.wide is Wide.SPREAD and b"idempotency-key" in request.headers
        errand.is_repeatable = route.is_harmless or rule.is_repeatable or has_key
        return errand

    def _refused(self, request: Request, tell: Tell, refused: Refused) -> Answering:
        """As a partition would say it, if there is one."""
        app = self._ways.any_local()
        if app is not None:
            return app.handle(request, self._guarded(tell))
        tell(of_error(refused))
        return _ANSWERED

    def _guarded(self, tell: Tell) -> Tell:
        """Nothing is answered for a partition that may be another node's by now."""
        is_valid = self._places.is_valid

        def told(response: Response) -> None:
            tell(response if is_valid() else STOPPED)

        return told

    def _hopped(self, request: Request, tell: Tell) -> Answering:
        """From another node: it is answered here or not at all."""
        headers = request.headers
        is_peer = compare_digest(headers.get(PEER, b""), self._proof)
        if request.target.startswith(INTERNAL):
            if is_peer and request.method == b"POST":
                return self._internal(request, tell)
            if HOP not in headers:
                return self._routed(request, tell, is_hop=False)
            tell(problem("not_found"))
            return _ANSWERED
        named = headers.get(PARTITION)
        if not is_peer or named is None:
            # Whoever else sends this gets what is here.
            return self._routed(request, tell, is_hop=True)
        app = self._places.local(named.decode("latin-1"))
        if app is None:
            tell(NOT_HERE)
            return _ANSWERED
        # The first node has looked at the name that the client used, and counted it.
        headers[b"host"] = b"localhost"
        request.is_counted = True
        tell = self._watched(tell)
        request.is_own = OWN in headers
        wait = headers.get(WAIT)
        if wait is None:
            return app.handle(request, self._guarded(tell))
        return self._hold(app, request, tell, wait.decode("latin-1"))

    def _watched(self, tell: Tell) -> Tell:
        """A token that the first node knows must be known here, too."""

        def told(response: Response) -> None:
            # A wrong signature is 401, too, and the caller's own affair.
            if response.status == 401 and b'"code":"unauthorized"' in response.body:
                self._warn_of_token()
            tell(response)

        return told

    def _warn_of_token(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._warn_s:
            self._warn_s = now_s + WARNED_S
            why = "another node knows it: all need the same tokens.json"
            self._host.watch.warned("forwarded token not known", why=why)

    def _hold(self, app: App, request: Request, tell: Tell, name: str) -> Answering:
        """A lease that another node may call off."""
        guarded = self._guarded(tell)
        is_over = False

        def told(response: Response) -> None:
            nonlocal is_over
            is_over = True
            self._held.pop(name, None)
            guarded(response)

        answering = app.handle(request, told)
        if is_over:
            return answering
        self._held[name] = answering
        return _Held(answering, lambda: self._held.pop(name, None))

    def _internal(self, request: Request, tell: Tell) -> Answering:
        if len(request.body) > INTERNAL_BYTES_MAX:
            tell(problem("too_large"))
            return _ANSWERED
        answers = {URGENCY: self._ways.hints.tell, STEP: self._ways.narrowing.tell}
        answered = answers.get(request.path)
        if answered is not None:
            return Undertaking(
                _told(answered(request.body)),
                tell,
                self._host.watch.broken,
                is_long=False,
            )
        if request.path == WITHDRAW:
            tell(self._withdraw(request.body))
            return _ANSWERED
        tell(problem("not_found"))
        return _ANSWERED

    def _withdraw(self, body: bytes) -> Response:
        try:
            name = withdrawal_of(body).id
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return problem("bad_json")
        answering = self._held.get(name)
        if answering is not None:
            answering.withdraw()
        return _DONE


class _Held:
    """A lease that waits, and is forgotten when nobody wants it any more."""

    __slots__ = ("_answering", "_forget")

    def __init__(self, answering: Local, forget: Callable[[], object]) -> None:
        self._answering = answering
        self._forget = forget

    @property
    def is_waiting(self) -> bool:
        return self._answering.is_waiting

    def abandon(self) -> None:
        self._forget()
        self._answering.abandon()


async def _told(answer: Awaitable[bytes | None]) -> Response:
    told = await answer
    return problem("bad_json") if told is None else Response(200, told)


def proof_of(key: bytes) -> bytes:
    """What nodes show to each other; it says nothing of the key."""
    return blake2b(b"headway peers", digest_size=32, key=key[:64]).hexdigest().encode()
