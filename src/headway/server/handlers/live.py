"""What a dashboard watches: this moment, trends, this server, and who acted."""

from importlib.metadata import version
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from headway.search.errors import SearchFailed
from headway.server.call import Call, answer
from headway.server.metrics import memory_of_process
from headway.server.plans import Awaited, InThread, Plan
from headway.server.problems import Refused
from headway.server.pulse import LISTENERS_MAX
from headway.server.routing import Route
from headway.server.scopes import ANYBODY, Verb
from headway.wire import live as wire
from headway.wire.values import QueueName

_NUMBER_MAX: Final = 2**53
Number = Annotated[int, Meta(ge=0, le=_NUMBER_MAX)]


class LiveQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    after: Number = 0
    """The `number` that is known; the answer waits for the next, for 25 s at most."""


class TrendQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: QueueName | None = None
    span: Literal["30m", "24h"] = "30m"


class ActQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: QueueName | None = None
    before: Number | None = None
    """The `next` of the page before."""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


def me(call: Call) -> Plan:
    """Who asks, and what they may do."""
    bearer = call.bearer
    return answer(
        wire.Me(
            bearer.name,
            bearer is ANYBODY,
            [str(scope) for scope in bearer.scopes],
            call.ids.partition,
            version("headway"),
        )
    )


def live(call: Call) -> Plan:
    """Whether promises are kept right now: what has changed since a number.

    One look at the owner serves all who ask, about once a second.
    """
    query: LiveQuery = call.query()
    pulse = call.facilities.pulse
    if pulse.listeners >= LISTENERS_MAX:
        raise Refused("busy", f"{LISTENERS_MAX} others are waiting for this")
    if call.facilities.is_stopping:
        return pulse.answer(call.bearer)
    return Awaited(lambda tell: pulse.listen(query.after, call.bearer, tell))


def trends(call: Call) -> Plan:
    """Lanes of the last half hour or day, as far as this server has watched them."""
    query: TrendQuery = call.query()
    found = call.facilities.pulse.trends_of(
        call.bearer, query.queue, is_long=query.span == "24h"
    )
    return answer(found)


def node(call: Call) -> Plan:
    """This server: its store, memory, commits and index."""
    pulse = call.facilities.pulse
    measures = pulse.measures
    if measures is None:
        raise Refused("busy", "it has only just begun to look")

    def work() -> Plan:
        try:
            place = call.facilities.finder.position()
            indexed: tuple[int, int] | tuple[None, None] = (place.next - 1, place.at_ms)
        except SearchFailed:
            indexed = (None, None)
        return answer(
            wire.Node(
                partition=call.ids.partition,
                version=version("headway"),
                since_ms=pulse.since_ms,
                at_ms=measures.at_ms,
                queues=len(measures.queues),
                lanes=len(measures.lanes),
                store_bytes=measures.store_bytes,
                log_bytes=measures.log_bytes,
                memory_bytes=memory_of_process().resident,
                jobs_in_memory=measures.jobs_in_memory,
                jobs_in_memory_max=measures.jobs_in_memory_max,
                turns_in_memory=measures.turns_in_memory,
                commits_per_s=pulse.commits_per_s,
                commit_ms=pulse.commit_ms,
                commands_per_commit=pulse.batch,
                slots_busy=measures.slots_busy,
                slots_idle=measures.slots_idle,
                ticks_skipped=measures.ticks_skipped,
                replies=measures.replies,
                indexed_to=indexed[0],
                indexed_ms=indexed[1],
                listeners=pulse.listeners,
            )
        )

    return InThread(work)


def acts(call: Call) -> Plan:
    """What operators have done, the newest first."""
    query: ActQuery = call.query()
    call.require(Verb.READ, query.queue)
    before = _NUMBER_MAX if query.before is None else query.before
    found = call.facilities.acts.newest(
        query.limit, before, lambda queue: query.queue in (None, queue)
    )
    following = found[-1].number if len(found) == query.limit else None
    return answer(wire.Acts(found, following))


def _route(path: str, handler: Any, answers: Any, **more: Any) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        verb=Verb.READ,
        answers={200: answers},
        tag="dashboard",
        **more,
    )


ROUTES: Final = (
    _route("/v1/me", me, wire.Me, is_queue_checked=False),
    _route("/v1/live", live, wire.Live, is_queue_checked=False, query=LiveQuery),
    _route("/v1/trends", trends, wire.Trends, is_queue_checked=False, query=TrendQuery),
    _route("/v1/node", node, wire.Node),
    _route("/v1/acts", acts, wire.Acts, is_queue_checked=False, query=ActQuery),
)
