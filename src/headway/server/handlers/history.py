"""History, by number: packed as it is stored, for those who read all of it."""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from headway.core.commands import Changed
from headway.runtime.errors import OwnerStopped
from headway.runtime.views import Follow
from headway.server.call import NOTHING, Call, answer
from headway.server.http.message import Response
from headway.server.indexing import READER
from headway.server.plans import InThread, Plan, ask
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.store.errors import HistoryGone, StoreError
from headway.store.port import Segment
from headway.wire import history as wire

_KIND: Final = wire.KIND.encode()
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class HistoryQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    first: wire.Number = 1
    """The commit that holds this event comes first."""
    before: wire.Number | None = None
    """Commits that begin with this event or later are left out."""
    bytes: Annotated[int, Meta(ge=1, le=wire.PAGE_BYTES_MAX)] = wire.PAGE_BYTES
    """At most so many, but for the first commit, which always comes whole."""


def about(call: Call) -> Plan:
    """Which events there are, by partition."""
    past = call.facilities.past
    return InThread(lambda: answer(wire.Histories([_read(past.about)])))


def page(call: Call) -> Plan:
    """Commits in the order of their events, packed as MessagePack.

    An empty array means that there is nothing from `first` on yet.
    """
    past = call.facilities.past
    _check_partition(call, call.params["partition"])
    query: HistoryQuery = call.query()

    def work() -> Plan:
        segments: list[Segment] = _read(past.page, query.first, query.bytes)
        if query.before is not None:
            segments = [one for one in segments if one.first < query.before]
        return Response(200, wire.write(segments), _KIND)

    return InThread(work)


def follow(call: Call) -> Plan:
    """Tell how far a reader is: what it has not read is kept, within bounds.

    One that lags too far is cut off in the end, and hears of it here.
    """
    name = _reader(call)
    body: wire.ReaderBody = call.body
    _check_partition(call, body.partition)

    def told(changed: Changed) -> Plan:
        return answer(wire.ReaderTold(was_cut_off=changed.count == 0))

    return ask(Follow(name, body.position), told)


def forget(call: Call) -> Plan:
    """Forget a reader: nothing is kept for it any more."""
    return ask(Follow(_reader(call), None), lambda _: NOTHING)


def _read(read: Any, *args: Any) -> Any:
    try:
        return read(*args)
    except HistoryGone as gone:
        text = f"the oldest event that is kept is {gone.oldest}"
        raise Refused("history_dropped", text) from gone
    except StoreError as error:
        raise OwnerStopped("history can't be read") from error


def _check_partition(call: Call, named: str) -> None:
    if named != call.facilities.past.partition:
        raise Refused("not_found", f"there is no partition {named[:80]!r}")


def _reader(call: Call) -> str:
    name = call.params["reader"]
    if not _NAME.fullmatch(name):
        raise Refused("bad_value", "at most 64 letters, digits, . _ and -", "reader")
    if name == READER:
        raise Refused("bad_value", "this one is the server's own", "reader")
    return name


def _route(method: str, path: str, handler: Any, verb: Verb, **more: Any) -> Route:
    return Route(
        method=method, path=path, handler=handler, verb=verb, tag="history", **more
    )


_READER_PATH: Final = "/v1/history/readers/{reader}"

ROUTES: Final = (
    _route("GET", "/v1/history", about, Verb.READ, answers={200: wire.Histories}),
    _route(
        "GET",
        "/v1/history/{partition}",
        page,
        Verb.READ,
        query=HistoryQuery,
        answers={200: wire.KIND},
        problems=("history_dropped",),
    ),
    _route(
        "PUT",
        _READER_PATH,
        follow,
        Verb.OPERATE,
        is_unwritten=True,
        body=wire.ReaderBody,
        answers={200: wire.ReaderTold},
        example={"partition": "p1", "position": 1},
    ),
    _route("DELETE", _READER_PATH, forget, Verb.OPERATE, answers={204: None}),
)
