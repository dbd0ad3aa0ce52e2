"""Search, timelines, and counts by tenant: from the index, which says how far it is."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from headway.core.defaults import TIME_MAX_MS
from headway.core.errors import BadValue
from headway.core.states import JobState
from headway.search.query import By, Search
from headway.server.call import Call, answer
from headway.server.handlers.queues import PageSize, Paging
from headway.server.handlers.sight import indexed, visible
from headway.server.plans import Plan
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import moment_ms, shown_found
from headway.wire import jobs as wire
from headway.wire import search as wire_search
from headway.wire.values import DATE, END, Name, QueueName, Token

_STATES: Final = frozenset(state.value for state in JobState)


Asked = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{1,15}" + END + "|" + DATE,
        max_length=64,
        description="Milliseconds since 1970 UTC, or a date and time with its zone.",
        examples=["2026-11-27T08:00:00Z"],
    ),
]
"""A moment in a query, where a number is text like everything else."""


class SearchQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: QueueName | None = None
    state: Annotated[str, Meta(max_length=100, pattern="^[a-z,]+$")] | None = None
    """One of scheduled, ready, leased, waiting, done, cancelled, dead; or several,
    with commas between them."""
    tenant: Name | None = None
    kind: Name | None = None
    label: Annotated[str, Meta(max_length=1_024, pattern="^[^=,]+=[^,]*$")] | None = (
        None
    )
    """name=value"""
    worker: Name | None = None
    reason: Name | None = None
    """Of the last failure."""
    error: Annotated[str, Meta(max_length=256)] | None = None
    """How the text of the last failure begins; the reason has to be named."""
    group: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    """Dead letters of one group."""
    by: Literal["enqueued", "changed"] = "enqueued"
    since: Asked | None = None
    until: Asked | None = None
    order: Literal["newest", "oldest"] = "newest"
    cursor: Token | None = None
    """The `next` of the page before."""
    limit: PageSize = 100


class TimelineQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: PageSize = 100


def search(call: Call) -> Plan:
    """Jobs by queue, state, tenant, kind, label, worker, failure and time.

    The answer comes from an index that follows what happens; it says how far it is.
    """
    query: SearchQuery = call.query()
    call.require(Verb.READ, query.queue)
    wanted = Search(
        queue=query.queue,
        states=_states(query.state),
        tenant=query.tenant,
        kind=query.kind,
        labels=dict([query.label.split("=", 1)]) if query.label else {},
        worker=query.worker,
        reason=query.reason,
        error=query.error,
        group=query.group,
        by=By(query.by),
        since_ms=_asked_ms(query.since, "since"),
        until_ms=_asked_ms(query.until, "until"),
        is_newest_first=query.order == "newest",
        limit=query.limit,
        cursor=query.cursor,
    )

    def work() -> Plan:
        page = call.facilities.finder.search(wanted)
        jobs = [shown_found(job, call.ids) for job in page.jobs]
        place = page.place
        return answer(wire.Found(jobs, page.cursor, place.next - 1, place.at_ms))

    return indexed(work)


def timeline(call: Call) -> Plan:
    """Everything that happened to a job, in order."""
    seq = call.ids.seq(call.params["id"])
    query: TimelineQuery = call.query()

    def work() -> Plan:
        finder = call.facilities.finder
        visible(call, finder.job(seq).queue, Verb.READ)
        told = finder.timeline(seq, query.after, query.limit)
        events = [
            wire.Happened(
                one.number,
                one.event.at_ms,
                str(one.event.__struct_config__.tag),
                _details(one.event),
            )
            for one in told
        ]
        following = events[-1].number if len(events) == query.limit else None
        return answer(wire.Timeline(call.params["id"], events, following))

    return indexed(work)


def counts(call: Call) -> Plan:
    """Jobs of the queue by lane and state, as of the event that the index is at."""

    def work() -> Plan:
        finder = call.facilities.finder
        lanes = [
            wire_search.LaneCounts(lane.slo_ms, _by_state(lane.states))
            for lane in finder.counts(call.queue)
        ]
        place = finder.position()
        return answer(wire_search.QueueUse(lanes, place.next - 1, place.at_ms))

    return indexed(work)


def tenant_counts(call: Call) -> Plan:
    """Jobs of the queue by tenant and state, as of the event that the index is at."""
    query: Paging = call.query()

    def work() -> Plan:
        finder = call.facilities.finder
        found = finder.tenants(call.queue, query.after, query.limit)
        tenants = [
            wire_search.TenantCounts(one.tenant, _by_state(one.states)) for one in found
        ]
        following = tenants[-1].tenant if len(tenants) == query.limit else None
        place = finder.position()
        return answer(
            wire_search.TenantUse(tenants, following, place.next - 1, place.at_ms)
        )

    return indexed(work)


def dead_groups(call: Call) -> Plan:
    """Dead letters by what they died of, the largest group first."""

    def work() -> Plan:
        groups = [
            wire_search.DeadGroup(
                one.group,
                one.reason,
                one.line,
                one.count,
                one.first_ms,
                one.last_ms,
                call.ids.job(one.seq),
            )
            for one in call.facilities.finder.dead_groups(call.queue)
        ]
        return answer(wire_search.DeadGroups(groups))

    return indexed(work)


def _asked_ms(text: str | None, key: str) -> int | None:
    if text is None:
        return None
    at_ms = int(text) if text.isdecimal() else moment_ms(text, key)
    if at_ms > TIME_MAX_MS:
        raise BadValue(key, text, "after the year 9999")
    return at_ms


def _states(text: str | None) -> tuple[JobState, ...]:
    if text is None:
        return ()
    names = text.split(",")
    for name in names:
        if name not in _STATES:
            raise BadValue(
                "state", name, f"must be one of {', '.join(sorted(_STATES))}"
            )
    return tuple(JobState(name) for name in dict.fromkeys(names))


def _by_state(states: dict[JobState, int]) -> dict[str, int]:
    return {state.value: count for state, count in states.items()}


def _details(event: Any) -> dict[str, Any]:
    """What the event says beside its time and its job."""
    skipped = ("at_ms", "seq", "queue", "slo_ms", "tenant", "kind", "token")
    return {
        name: getattr(event, name)
        for name in event.__struct_fields__
        if name not in skipped
    }


def _route(path: str, handler: Any, answers: Any, **more: Any) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        verb=Verb.READ,
        answers={200: answers},
        **more,
    )


_INDEX: Final = ("search_busy", "not_indexed")
ROUTES: Final = (
    _route(
        "/v1/jobs",
        search,
        wire.Found,
        is_queue_checked=False,
        tag="jobs",
        query=SearchQuery,
        problems=_INDEX,
    ),
    _route(
        "/v1/jobs/{id}/timeline",
        timeline,
        wire.Timeline,
        is_queue_checked=False,
        tag="jobs",
        query=TimelineQuery,
        problems=("unknown_job", *_INDEX),
    ),
    _route(
        "/v1/queues/{queue}/counts",
        counts,
        wire_search.QueueUse,
        tag="queues",
        problems=_INDEX,
    ),
    _route(
        "/v1/queues/{queue}/counts/tenants",
        tenant_counts,
        wire_search.TenantUse,
        tag="queues",
        query=Paging,
        problems=_INDEX,
    ),
    _route(
        "/v1/queues/{queue}/dead/groups",
        dead_groups,
        wire_search.DeadGroups,
        tag="dead",
        problems=_INDEX,
    ),
)
