"""Bulk operations under way, and jobs that are running."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from headway.core.bulk import BulkView
from headway.core.commands import StopBulk
from headway.runtime.bulk import BulkList, ListBulks
from headway.runtime.listing import JobList, ListRunning
from headway.server.call import Call, answer
from headway.server.handlers.queues import PageSize
from headway.server.plans import Plan, ask
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import shown
from headway.wire import operations as wire
from headway.wire.values import Name, QueueName, Token


class RunningQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: QueueName | None = None
    worker: Name | None = None
    state: Literal["leased", "waiting"] | None = None
    holding: Name | None = None
    """Only jobs that hold units of this limit; the queue has to be named..."""
    value: Annotated[str, Meta(max_length=256)] = ""
    """...and which value of it, if it is one for each value of something."""
    after: Token | None = None
    """The `next` of the page before."""
    limit: PageSize = 100


def list_operations(call: Call) -> Plan:
    """Operations that run, and the newest that have ended."""

    def told(found: BulkList) -> Plan:
        mine = [one for one in found.bulks if call.bearer.may(Verb.READ, one.queue)]
        return answer(wire.Operations([operation(one) for one in mine]))

    return ask(ListBulks(), told)


def show(call: Call) -> Plan:
    """One operation, and how far it is."""
    return _found(call, Verb.READ, lambda one: answer(operation(one)))


def stop(call: Call) -> Plan:
    """Stop an operation. What it has done stays done."""

    def told(one: BulkView) -> Plan:
        return ask(StopBulk(one.id), lambda view: answer(operation(view)))

    return _found(call, Verb.MANAGE, told)


def running(call: Call) -> Plan:
    """Jobs that are leased, or wait for a reply, oldest first."""
    query: RunningQuery = call.query()
    call.require(Verb.READ, query.queue)
    after = 0 if query.after is None else call.ids.seq(query.after)

    def told(found: JobList) -> Plan:
        jobs = [shown(view, call.ids) for view in found.jobs]
        following = None if found.next is None else call.ids.job(found.next)
        return answer(wire.JobPage(jobs, following))

    return ask(
        ListRunning(
            query.queue,
            after,
            query.limit,
            query.worker,
            None if query.state is None else query.state == "waiting",
            None if query.holding is None else (query.holding, query.value),
        ),
        told,
    )


def operation(view: BulkView) -> wire.Operation:
    return wire.Operation(
        id=view.id,
        queue=view.queue,
        verb=view.verb.value,
        state=view.state.value,
        done=view.done,
        failed=view.failed,
        total=view.matched_total,
        rate=view.rate_per_s,
        started_ms=view.started_ms,
        ended_ms=view.ended_ms,
    )


def _found(call: Call, verb: Verb, then: Any) -> Plan:
    text = call.params["number"]
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise Refused("unknown_bulk")
    number = int(text)

    def told(found: BulkList) -> Plan:
        for one in found.bulks:
            if one.id == number and (
                call.bearer.may(Verb.READ, one.queue)
                or call.bearer.may(verb, one.queue)
            ):
                call.require(verb, one.queue)
                call.concerns = one.queue
                plan: Plan = then(one)
                return plan
        raise Refused("unknown_bulk", f"there is no operation {number}")

    return ask(ListBulks(), told)


def _route(method: str, path: str, handler: Any, verb: Verb, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        verb=verb,
        is_queue_checked=False,
        tag="operations",
        **more,
    )


ROUTES: Final = (
    _route(
        "GET",
        "/v1/operations",
        list_operations,
        Verb.READ,
        answers={200: wire.Operations},
    ),
    _route(
        "GET",
        "/v1/operations/{number}",
        show,
        Verb.READ,
        answers={200: wire.Operation},
        problems=("unknown_bulk",),
    ),
    _route(
        "POST",
        "/v1/operations/{number}/stop",
        stop,
        Verb.MANAGE,
        answers={200: wire.Operation},
        problems=("unknown_bulk", "wrong_state"),
    ),
    _route(
        "GET",
        "/v1/running",
        running,
        Verb.READ,
        query=RunningQuery,
        answers={200: wire.JobPage},
        problems=("unknown_queue", "unknown_job"),
    ),
)
