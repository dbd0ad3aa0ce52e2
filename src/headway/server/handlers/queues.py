"""Queues: list, show, rules, holds; their tenants and kinds."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from headway.core.commands import Configure, Hold, SetHold, SetKind, SetTenant
from headway.runtime.listing import (
    KindList,
    ListKinds,
    ListQueues,
    ListTenants,
    QueueList,
    QueueView,
    ShowQueue,
    TenantList,
)
from headway.runtime.views import QueueCounts
from headway.server.bodies import refused
from headway.server.call import Call, answer
from headway.server.plans import Asked, Plan, ask, good
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.rules import config_of, merged
from headway.server.scopes import Verb
from headway.wire import queues as wire
from headway.wire.shown import rules_of
from headway.wire.values import Given, Name

PageSize = Annotated[int, Meta(ge=1, le=1_000)]


class Paging(msgspec.Struct, forbid_unknown_fields=True):
    after: Name | None = None
    """The `next` of the page before."""
    limit: PageSize = 100


def list_queues(call: Call) -> Plan:
    """All queues that the caller may read, by name."""
    query: Paging = call.query()

    def told(found: QueueList) -> Plan:
        briefs = [
            wire.QueueBrief(
                one.name, _counts(one.counts), one.is_paused, one.is_blocked
            )
            for one in found.queues
            if call.bearer.may(Verb.READ, one.name)
        ]
        return answer(wire.QueuePage(briefs, found.next))

    return ask(ListQueues(query.after or "", query.limit), told)


def show(call: Call) -> Plan:
    """A queue: its counts, rules, lanes and limits in use."""
    return ask(ShowQueue(call.queue), lambda view: answer(_shown(view)))


def put(call: Call) -> Plan:
    """Set all rules of a queue; it is made if it is not there.

    What is left out gets its default. Jobs that wait follow the new rules at once; only
    a job that came while its window was closed keeps the time it was given then.
    """
    config = config_of(call.queue, call.body)
    return Asked([Configure(config), ShowQueue(call.queue)], _changed)


def patch(call: Call) -> Plan:
    """Change some rules of a queue; null takes a rule back to its default."""

    def told(view: QueueView) -> Plan:
        try:
            rules = merged(rules_of(view.config), call.body)
        except msgspec.ValidationError as error:
            raise refused(error) from error
        config = config_of(call.queue, rules)
        return Asked([Configure(config), ShowQueue(call.queue)], _changed)

    return ask(ShowQueue(call.queue), told)


def pause(call: Call) -> Plan:
    """Nothing of the queue starts from when this is answered."""
    return _hold(call, Hold.PAUSE, is_on=True)


def resume(call: Call) -> Plan:
    """Lift a pause. A block stays."""
    return _hold(call, Hold.PAUSE, is_on=False)


def block(call: Call) -> Plan:
    """The operator's pause: a resume does not lift it."""
    return _hold(call, Hold.BLOCK, is_on=True)


def unblock(call: Call) -> Plan:
    """Lift a block. A pause stays."""
    return _hold(call, Hold.BLOCK, is_on=False)


def list_tenants(call: Call) -> Plan:
    """Tenants of which something was said."""
    query: Paging = call.query()

    def told(found: TenantList) -> Plan:
        tenants = [
            wire.TenantShown(one.tenant, one.weight, one.is_paused, one.cap)
            for one in found.tenants
        ]
        return answer(wire.TenantPage(tenants, found.next))

    return ask(ListTenants(call.queue, query.after, query.limit), told)


def set_tenant(call: Call) -> Plan:
    """Rules for one tenant: weight, pause, cap. They hold for its backlog, too."""
    body: wire.TenantRules = call.body
    tenant = _name(call, "tenant")
    command = SetTenant(call.queue, tenant, body.weight, body.paused, body.cap)
    return ask(command, lambda _: answer(wire.Done()))


def list_kinds(call: Call) -> Plan:
    """Kinds of which something was said."""
    query: Paging = call.query()

    def told(found: KindList) -> Plan:
        kinds = [
            wire.KindShown(one.kind, one.cost, one.is_paused, one.cap)
            for one in found.kinds
        ]
        return answer(wire.KindPage(kinds, found.next))

    return ask(ListKinds(call.queue, query.after, query.limit), told)


def set_kind(call: Call) -> Plan:
    """Rules for one kind: cost, pause, cap. They hold for its backlog, too."""
    body: wire.KindRules = call.body
    kind = _name(call, "kind")
    command = SetKind(call.queue, kind, body.cost, body.paused, body.cap)
    return ask(command, lambda _: answer(wire.Done()))


def _name(call: Call, what: str) -> str:
    try:
        return msgspec.convert(call.params[what], Given)
    except msgspec.ValidationError as error:
        raise Refused("bad_value", str(error), what) from error


def _hold(call: Call, hold: Hold, *, is_on: bool) -> Plan:
    def told(answers: list[Any]) -> Plan:
        good(answers[0])
        view: QueueView = good(answers[1])
        return answer(wire.Holds(view.is_paused, view.is_blocked))

    return Asked([SetHold(call.queue, hold, is_on), ShowQueue(call.queue)], told)


def _changed(answers: list[Any]) -> Plan:
    good(answers[0])
    return answer(_shown(good(answers[1])))


def _shown(view: QueueView) -> wire.QueueShown:
    lanes = [
        wire.LaneShown(
            lane.slo_ms,
            lane.ready,
            lane.is_exempt,
            lane.is_due,
            lane.next_aim_ms,
            lane.start_interval_ms,
        )
        for lane in view.lanes
    ]
    limits = [
        wire.LimitShown(limit.name, limit.value, limit.used, limit.max)
        for limit in view.limits
    ]
    return wire.QueueShown(
        view.name,
        _counts(view.counts),
        view.is_paused,
        view.is_blocked,
        rules_of(view.config),
        lanes,
        limits,
        view.config.has_throttler,
    )


def _counts(counts: QueueCounts) -> wire.Counts:
    return wire.Counts(
        counts.ready, counts.scheduled, counts.leased, counts.waiting, counts.dead
    )


def _route(method: str, path: str, handler: Any, verb: Verb, **more: Any) -> Route:
    more.setdefault("problems", ("unknown_queue",))
    return Route(
        method=method,
        path=f"/v1/queues{path}",
        handler=handler,
        verb=verb,
        tag="queues",
        **more,
    )


_RULES: Final = {
    "slo": "5s",
    "limits": [{"type": "concurrency", "name": "smtp", "max": 20}],
}
ROUTES: Final = (
    _route(
        "GET",
        "",
        list_queues,
        Verb.READ,
        is_queue_checked=False,
        query=Paging,
        answers={200: wire.QueuePage},
        problems=(),
    ),
    _route("GET", "/{queue}", show, Verb.READ, answers={200: wire.QueueShown}),
    _route(
        "PUT",
        "/{queue}",
        put,
        Verb.MANAGE,
        body=wire.QueueRules,
        answers={200: wire.QueueShown},
        problems=("too_many_slos", "too_many_queues", "no_share"),
        example=_RULES,
    ),
    _route(
        "PATCH",
        "/{queue}",
        patch,
        Verb.MANAGE,
        body=dict[str, Any],
        answers={200: wire.QueueShown},
        problems=("unknown_queue", "too_many_slos", "no_share"),
        example=_RULES,
    ),
    _route("POST", "/{queue}/pause", pause, Verb.MANAGE, answers={200: wire.Holds}),
    _route("POST", "/{queue}/resume", resume, Verb.MANAGE, answers={200: wire.Holds}),
    _route("POST", "/{queue}/block", block, Verb.OPERATE, answers={200: wire.Holds}),
    _route(
        "POST", "/{queue}/unblock", unblock, Verb.OPERATE, answers={200: wire.Holds}
    ),
    _route(
        "GET",
        "/{queue}/tenants",
        list_tenants,
        Verb.READ,
        query=Paging,
        answers={200: wire.TenantPage},
    ),
    _route(
        "PUT",
        "/{queue}/tenants/{tenant}",
        set_tenant,
        Verb.MANAGE,
        body=wire.TenantRules,
        answers={200: wire.Done},
        example={"weight": 2.0, "cap": 50},
    ),
    _route(
        "GET",
        "/{queue}/kinds",
        list_kinds,
        Verb.READ,
        query=Paging,
        answers={200: wire.KindPage},
    ),
    _route(
        "PUT",
        "/{queue}/kinds/{kind}",
        set_kind,
        Verb.MANAGE,
        body=wire.KindRules,
        answers={200: wire.Done},
        example={"cost": 3},
    ),
)
