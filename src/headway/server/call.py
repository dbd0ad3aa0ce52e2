"""One call as a handler sees it, and what handlers have in common."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from headway.search.finder import Finder
from headway.server.acts import Acts
from headway.server.bodies import convert
from headway.server.callbacks import Callbacks
from headway.server.http.message import Request, Response
from headway.server.ids import Ids
from headway.server.members import Members
from headway.server.past import Past
from headway.server.problems import Refused
from headway.server.pulse import Pulse
from headway.server.routing import Route
from headway.server.scopes import Bearer, Verb
from headway.server.writes import Writes

_encode: Final = msgspec.json.Encoder().encode


class Facilities(msgspec.Struct):
    """What a server's handlers share."""

    ids: Ids
    finder: Finder
    past: Past
    callbacks: Callbacks
    writes: Writes
    acts: Acts
    pulse: Pulse
    members: Members
    default_queue: str
    """The queue of the four simple endpoints."""
    describe: Callable[[], bytes] = bytes
    """Makes the description of the API."""
    is_stopping: bool = False
    over_rate: Callable[[], int] = int
    """Requests that were refused since their token has made too many."""
    held_back: int = 0
    """Enqueues that wait for room."""


class Call:
    """One request on its way through a handler."""

    __slots__ = (
        "bearer",
        "body",
        "concerns",
        "facilities",
        "late_body",
        "params",
        "reason",
        "request",
        "route",
    )

    def __init__(
        self,
        request: Request,
        route: Route,
        params: Mapping[str, str],
        bearer: Bearer,
        facilities: Facilities,
    ) -> None:
        self.request = request
        self.route = route
        self.params = params
        self.bearer = bearer
        self.facilities = facilities
        self.body: Any = None
        self.late_body: Callable[[], Any] = bytes
        """Reads a body that takes its time."""
        self.concerns = ""
        """The queue of what it is about, where the path does not name it."""
        self.reason = ""
        """Why the caller acts, if they say so."""

    @property
    def ids(self) -> Ids:
        return self.facilities.ids

    @property
    def queue(self) -> str:
        """The queue in the path."""
        return self.params["queue"]

    def query(self) -> Any:
        """The values of the query; unknown and repeated names are refused."""
        values: dict[str, str] = {}
        for name, value in self.request.query():
            if name in values:
                raise Refused("bad_value", "it is given twice", name)
            values[name] = value
        return convert(values, self.route.query)

    def header(self, name: str) -> str | None:
        """A header's value; what is no plain text is refused."""
        value = self.request.headers.get(name.lower().encode())
        if value is None:
            return None
        text = value.decode("latin-1")
        if not (text.isascii() and text.isprintable()):
            raise Refused("bad_value", "must be printable ASCII", name)
        return text

    def require(self, verb: Verb, queue: str | None) -> None:
        """Refuses unless the bearer may do this on the queue."""
        if not self.bearer.may(verb, queue):
            what = "every queue" if queue is None else f"queue {queue!r}"
            raise Refused("forbidden", f"{verb} is not allowed on {what}")


def answer(value: object, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(status, _encode(value))


NOTHING: Final = Response(204)
