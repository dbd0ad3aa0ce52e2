"""The dashboard's own files. They hold no data: what they show they ask for."""

from typing import Any, Final

from headway.server.call import Call
from headway.server.dashboard.files import INDEX, KINDS, File, all_files
from headway.server.http.message import Response
from headway.server.plans import Plan
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb


def index(call: Call) -> Plan:
    """The dashboard."""
    return _sent(call, all_files()[INDEX])


def file(call: Call) -> Plan:
    """A script or style of the dashboard."""
    found = all_files().get(call.params["file"])
    if found is None:
        raise Refused("not_found")
    return _sent(call, found)


def _sent(call: Call, found: File) -> Plan:
    known = call.request.headers.get(b"if-none-match", b"")
    if found.tag in (tag.strip() for tag in known.split(b",")):
        return Response(304, b"", found.kind, found.headers)
    return Response(200, found.content, found.kind, found.headers)


def _route(path: str, handler: Any, kinds: tuple[str, ...]) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        verb=Verb.OPEN,
        tag="dashboard",
        answers={200: kinds, 304: None},
    )


ROUTES: Final = (
    _route("/", index, (KINDS["html"],)),
    _route("/dashboard/{file}", file, tuple(KINDS.values())),
)
