"""What an operator looks at first: queues in trouble, tenants at work, workers."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from headway.runtime import ranking
from headway.runtime.ranking import (
    SKIPPED_MAX,
    ListBusyTenants,
    ListWorkers,
    RankQueues,
)
from headway.runtime.views import QueueCounts
from headway.server.call import Call, answer
from headway.server.plans import Plan, ask
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.wire import live as wire
from headway.wire.queues import Counts
from headway.wire.values import Name, QueueName

_Page = Annotated[int, Meta(ge=1, le=200)]
_Sorts = Literal["name", "trouble", "ready", "scheduled", "leased", "waiting", "dead"]


class RankingQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    sort: _Sorts = "trouble"
    contains: Name = ""
    """Only queues whose name has this in it."""
    held: Literal["yes"] | None = None
    """Only those that are paused or blocked."""
    skip: Annotated[int, Meta(ge=0, le=SKIPPED_MAX)] = 0
    limit: _Page = 50


class BusyQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    limit: _Page = 50


class WorkerQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: QueueName | None = None
    after: Name | None = None
    """The `next` of the page before."""
    limit: _Page = 100


def queues(call: Call) -> Plan:
    """Queues that the caller may read, by trouble, name or what they have."""
    query: RankingQuery = call.query()
    wish = RankQueues(
        ranking.Order(query.sort),
        query.contains,
        query.held is not None,
        call.bearer.patterns(Verb.READ),
        query.skip,
        query.limit,
    )

    def told(found: ranking.QueueRanking) -> Plan:
        pulse = call.facilities.pulse
        shown = [
            wire.RankedQueue(
                name=one.name,
                counts=_counts(one.counts),
                is_paused=one.is_paused,
                is_blocked=one.is_blocked,
                slos_ms=one.slos_ms,
                due=one.due,
                oldest_ms=pulse.oldest_ms(one.name, one.slos_ms),
            )
            for one in found.queues
        ]
        return answer(wire.Ranking(shown, found.total))

    return ask(wish, told)


def busy_tenants(call: Call) -> Plan:
    """Tenants that wait or run in a queue, those that hold most slots first."""
    query: BusyQuery = call.query()

    def told(found: ranking.BusyTenantList) -> Plan:
        shown = [
            msgspec.convert(one, wire.BusyTenant, from_attributes=True)
            for one in found.tenants
        ]
        return answer(wire.BusyTenants(shown, found.total))

    return ask(ListBusyTenants(call.queue, query.limit), told)


def workers(call: Call) -> Plan:
    """Workers that have jobs, by name."""
    query: WorkerQuery = call.query()
    call.require(Verb.READ, query.queue)

    def told(found: ranking.WorkerList) -> Plan:
        shown = [
            wire.BusyWorker(
                one.worker,
                one.jobs,
                call.ids.job(one.oldest),
                one.oldest_ms,
                one.lease_until_ms,
            )
            for one in found.workers
        ]
        return answer(wire.BusyWorkers(shown, found.next, found.total))

    return ask(ListWorkers(query.queue, query.after, query.limit), told)


def _counts(counts: QueueCounts) -> Counts:
    return Counts(
        counts.ready, counts.scheduled, counts.leased, counts.waiting, counts.dead
    )


def _route(path: str, handler: Any, answers: Any, tag: str, **more: Any) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        verb=Verb.READ,
        answers={200: answers},
        tag=tag,
        **more,
    )


ROUTES: Final = (
    _route(
        "/v1/ranking",
        queues,
        wire.Ranking,
        "queues",
        is_queue_checked=False,
        query=RankingQuery,
    ),
    _route(
        "/v1/queues/{queue}/busy",
        busy_tenants,
        wire.BusyTenants,
        "queues",
        query=BusyQuery,
        problems=("unknown_queue",),
    ),
    _route(
        "/v1/workers",
        workers,
        wire.BusyWorkers,
        "operations",
        is_queue_checked=False,
        query=WorkerQuery,
        problems=("unknown_queue",),
    ),
)
