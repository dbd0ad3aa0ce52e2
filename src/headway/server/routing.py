"""Routes: what can be asked, of whom it is asked, and how it is answered."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

import msgspec

from headway.server.http.message import Request
from headway.server.plain import plain
from headway.server.plans import Plan
from headway.server.problems import Refused
from headway.server.scopes import Verb

if TYPE_CHECKING:
    from headway.server.call import Call

Handler = Callable[["Call"], Plan]
NDJSON: Final = "application/x-ndjson"
_QUEUE: Final = ("queue",)
_QUEUES_KEPT: Final = 1_000
_PATH_KEPT: Final = 256
_LOOKING: Final = (Verb.READ, Verb.METRICS, Verb.OPEN)


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked. The description of the API is made from these."""

    method: str
    path: str
    """With names in braces: /v1/queues/{queue}."""
    handler: Handler
    verb: Verb
    is_queue_checked: bool = True
    """Whether the verb is checked on the queue in the path; else the handler does it,
    when it knows the queue."""
    tag: str
    body: Any = None
    """The type of the body, if there is one."""
    is_body_needed: bool = True
    is_lines: bool = False
    """A body of JSON lines is understood, too."""
    is_raw: bool = False
    """The handler reads the body, when it knows whose it is."""
    is_any_kind: bool = False
    """The content type of the body does not matter."""
    is_body_late: bool = False
    """The body is long, and read by the handler, in a thread."""
    is_unwritten: bool = False
    """Programs do this all the time: it is not kept who did."""
    is_of_nodes: bool = False
    """It is about nodes, and not about what a partition holds."""
    query: Any = None
    """A struct with the values of the query."""
    answers: Mapping[int, Any]
    """Types of good answers by status; None where there is no body."""
    problems: tuple[str, ...] = ()
    """Codes of errors beside those that every route may answer."""
    example: Any = None
    """A body that is accepted."""

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().partition("\n")[0]

    @property
    def description(self) -> str:
        return (self.handler.__doc__ or "").strip().partition("\n")[2].strip()

    @property
    def is_harmless(self) -> bool:
        """Whether it only looks, so that HEAD may ask it, too."""
        return self.method == "GET" and self.verb in _LOOKING

    @property
    def is_act(self) -> bool:
        """Whether an operator acts by it: then it is written down who did."""
        is_act = self.verb in (Verb.MANAGE, Verb.OPERATE) and self.method != "GET"
        return is_act and not self.is_unwritten

    @property
    def is_reasoned(self) -> bool:
        """Whether a reason may be given; a reply is an act if somebody gives one."""
        return self.is_act or self.verb is Verb.REPLY

    @property
    def operation(self) -> str:
        """Its name among all others."""
        module = self.handler.__module__.rpartition(".")[2]
        return f"{module}_{self.handler.__name__}"

    @property
    def names(self) -> tuple[str, ...]:
        """What is named in the path."""
        parts = self.path.split("/")
        return tuple(part[1:-1] for part in parts if part.startswith("{"))


class Found(msgspec.Struct):
    route: Route
    params: dict[str, str]
    decoder: "msgspec.json.Decoder[Any] | None" = None
    plain: "msgspec.json.Decoder[Any] | None" = None
    """Reads bodies of plain text, where that is less work."""


class Router:
    """Finds the route of a request, by one look for plain paths."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._plain: dict[bytes, dict[bytes, Found]] = {}
        self._shapes: dict[tuple[int, str], list[tuple[list[str], Route]]] = {}
        self._queues: dict[tuple[bytes, bytes], Found] = {}
        """What was found of late, where the path names nothing but a queue."""
        self._decoders: dict[int, tuple[msgspec.json.Decoder[Any], ...]] = {}
        for route in self.routes:
            if route.body is not None and not route.is_raw:
                self._decoders[id(route)] = _decoders(route.body)
            if route.names:
                parts = route.path.split("/")
                self._shapes.setdefault(_shape(parts), []).append((parts, route))
            else:
                found = Found(route, {}, *self._decoders.get(id(route), ()))
                methods = self._plain.setdefault(route.path.encode(), {})
                methods[route.method.encode()] = found

    def find(self, request: Request) -> Found:
        path = request.path
        methods = self._plain.get(path)
        if methods is not None:
            found = methods.get(request.method)
            if found is None and request.method == b"HEAD":
                found = methods.get(b"GET")
                if found is not None and not found.route.is_harmless:
                    found = None
            if found is None:
                raise Refused(
                    "method_not_allowed", ", ".join(map(bytes.decode, methods))
                )
            return found
        key = (request.method, path)
        found = self._queues.get(key)
        if found is None:
            found = self._search(path, request.method)
            if found.route.names == _QUEUE and len(path) <= _PATH_KEPT:
                if len(self._queues) >= _QUEUES_KEPT:
                    self._queues.clear()
                self._queues[key] = found
        return found

    def _search(self, path: bytes, method: bytes) -> Found:
        parts = path.decode("latin-1").split("/")
        if len(parts) < 2:
            raise Refused("not_found")
        others: list[str] = []
        wanted = "GET" if method == b"HEAD" else method.decode("latin-1")
        for pattern, route in self._shapes.get(_shape(parts), ()):
            params = _match(pattern, parts)
            if params is not None:
                if route.method == wanted and (method != b"HEAD" or route.is_harmless):
                    return Found(route, params, *self._decoders.get(id(route), ()))
                others.append(route.method)
        if others:
            raise Refused("method_not_allowed", ", ".join(others))
        raise Refused("not_found")


def _decoders(kind: Any) -> tuple["msgspec.json.Decoder[Any]", ...]:
    """For every body, and for those of plain text if that makes a difference."""
    unmatched = plain(kind)
    kinds = (kind,) if unmatched is kind else (kind, unmatched)
    return tuple(map(msgspec.json.Decoder, kinds))


def _shape(parts: list[str]) -> tuple[int, str]:
    """How many parts a path has, and its first: enough to leave few to be tried."""
    return len(parts), parts[1]


def _match(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    params: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            try:
                params[wanted[1:-1]] = unquote_to_bytes(part).decode()
            except UnicodeDecodeError as error:
                raise Refused("not_found") from error
        elif wanted != part:
            return None
    return params
