"""Dead letters: list them, and put them back or throw them away."""

from typing import Any, Final

import msgspec

from headway.core.bulk import BulkVerb, Filter
from headway.core.commands import Redrive, StartBulk
from headway.runtime.bulk import BulkPreview
from headway.runtime.listing import DeadList, ListDead
from headway.runtime.views import JobView, Show
from headway.server.call import Call, answer
from headway.server.handlers.operations import operation
from headway.server.handlers.queues import PageSize
from headway.server.handlers.sight import visible
from headway.server.plans import Plan, ask
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import content_of, moment_ms, shown
from headway.wire import operations as wire
from headway.wire.queues import Done
from headway.wire.values import Moment, Name, Token


class DeadQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    tenant: Name | None = None
    kind: Name | None = None
    reason: Name | None = None
    text: Name | None = None
    died_after: Moment | None = None
    died_before: Moment | None = None
    cursor: Token | None = None
    """The `next` of the page before."""
    limit: PageSize = 100


def list_dead(call: Call) -> Plan:
    """Dead letters in the order of their death, with every error of each."""
    query: DeadQuery = call.query()
    which = Filter(
        tenant=query.tenant,
        kind=query.kind,
        reason=query.reason,
        text=query.text,
        died_after_ms=_moment(query.died_after, "died_after"),
        died_before_ms=_moment(query.died_before, "died_before"),
    )

    def told(found: DeadList) -> Plan:
        jobs = [shown(view, call.ids) for view in found.jobs]
        return answer(wire.JobPage(jobs, found.next))

    return ask(ListDead(call.queue, which, query.cursor or "", query.limit), told)


def redrive(call: Call) -> Plan:
    """Put dead letters back, with fresh attempts: those that a filter means.

    With `preview` nothing changes, and the answer says what would be met.
    """
    return _bulk(call, BulkVerb.REDRIVE)


def discard(call: Call) -> Plan:
    """Throw dead letters away: those that a filter means. Their history stays."""
    return _bulk(call, BulkVerb.DISCARD)


def purge(call: Call) -> Plan:
    """Cancel all that has not started, of the queue or of one tenant."""
    body: wire.PurgeBody = call.body or wire.PurgeBody()
    which = Filter(tenant=body.tenant)
    return _start(
        call, StartBulk(call.queue, BulkVerb.PURGE, which, body.rate, body.preview)
    )


def redrive_one(call: Call) -> Plan:
    """Put one dead letter back, with fresh attempts.

    With a payload its next attempts are given that one.
    """
    seq = call.ids.seq(call.params["id"])
    body: wire.RedriveBody = call.body or wire.RedriveBody()
    payload = content_of(body.payload, body.payload_base64)

    def told(view: JobView) -> Plan:
        visible(call, view.queue, Verb.MANAGE)
        return ask(Redrive(seq, payload), lambda _: answer(Done()))

    return ask(Show(seq), told)


def _bulk(call: Call, verb: BulkVerb) -> Plan:
    body: wire.DeadBody = call.body
    given = body.filter
    ids = call.ids
    which = Filter(
        tenant=given.tenant,
        kind=given.kind,
        reason=given.reason,
        text=given.text,
        died_after_ms=_moment(given.died_after, "filter.died_after"),
        died_before_ms=_moment(given.died_before, "filter.died_before"),
        seqs=None if given.ids is None else tuple(map(ids.seq, given.ids)),
    )
    return _start(call, StartBulk(call.queue, verb, which, body.rate, body.preview))


def _start(call: Call, command: StartBulk) -> Plan:
    def told(found: Any) -> Plan:
        if isinstance(found, BulkPreview):
            sample = [shown(view, call.ids) for view in found.sample]
            return answer(wire.Preview(found.matched, found.is_more, sample))
        return answer(operation(found), 202)

    return ask(command, told)


def _moment(value: Moment | None, key: str) -> int | None:
    return None if value is None else moment_ms(value, key)


def _route(path: str, handler: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=f"/v1/queues/{{queue}}{path}",
        handler=handler,
        verb=Verb.MANAGE,
        answers={200: wire.Preview, 202: wire.Operation},
        problems=("unknown_queue", "unknown_job", "too_many_bulks"),
        **more,
    )


_FILTERED: Final = {"filter": {"text": "timeout"}, "rate": 100, "preview": True}
ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/queues/{queue}/dead",
        handler=list_dead,
        verb=Verb.READ,
        tag="dead",
        query=DeadQuery,
        answers={200: wire.JobPage},
        problems=("unknown_queue",),
    ),
    _route("/dead/redrive", redrive, tag="dead", body=wire.DeadBody, example=_FILTERED),
    _route("/dead/discard", discard, tag="dead", body=wire.DeadBody, example=_FILTERED),
    _route(
        "/purge",
        purge,
        tag="queues",
        body=wire.PurgeBody,
        is_body_needed=False,
        example={"tenant": "acme", "preview": True},
    ),
    Route(
        method="POST",
        path="/v1/jobs/{id}/redrive",
        handler=redrive_one,
        verb=Verb.MANAGE,
        is_queue_checked=False,
        tag="dead",
        body=wire.RedriveBody,
        is_body_needed=False,
        example={"payload": {"to": "ada"}},
        answers={200: Done},
        problems=("unknown_job", "wrong_state", "queue_full"),
    ),
)
