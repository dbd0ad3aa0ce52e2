"""Schedules: a job at every tick of a cron expression."""

from typing import Any, Final

from headway.core.commands import Changed, DropSchedule, PutSchedule
from headway.core.cron import Missed, Schedule
from headway.runtime.listing import ListSchedules, ScheduleList, ScheduleView
from headway.server.call import NOTHING, Call, answer
from headway.server.handlers.queues import Paging
from headway.server.plans import Asked, Plan, ask, good, made
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import spec_of
from headway.wire import operations as wire


def list_all(call: Call) -> Plan:
    """Schedules of all queues that the caller may read."""
    query: Paging = call.query()
    after = None
    if query.after:
        queue, _, name = query.after.partition("/")
        after = (queue, name)
    return ask(
        ListSchedules(None, after, query.limit), lambda found: _page(call, found)
    )


def list_queue(call: Call) -> Plan:
    """Schedules of one queue, by name."""
    query: Paging = call.query()
    after = None if query.after is None else (call.queue, query.after.partition("/")[2])
    return ask(
        ListSchedules(call.queue, after, query.limit), lambda found: _page(call, found)
    )


def put(call: Call) -> Plan:
    """Make or change a schedule; the queue is made if it is not there.

    Where minute and hour are both named a tick happens once a day, whatever the clock
    of its zone does; else the real clock counts.
    """
    body: wire.ScheduleBody = call.body
    schedule = Schedule(
        queue=call.queue,
        name=call.params["name"],
        cron=body.cron,
        zone=body.zone,
        missed=Missed(body.missed),
        is_paused=body.paused,
        spec=spec_of(body.job),
    )

    def told(_: Any) -> Plan:
        return _one(call)

    return made([call.queue], PutSchedule(schedule), told)


def drop(call: Call) -> Plan:
    """Remove a schedule. Jobs that it has enqueued stay."""

    def told(changed: Changed) -> Plan:
        if not changed.count:
            raise Refused("unknown_schedule")
        return NOTHING

    return ask(DropSchedule(call.queue, call.params["name"]), told)


def _one(call: Call) -> Plan:
    name = call.params["name"]

    def told(answers: list[Any]) -> Plan:
        found: ScheduleList = good(answers[0])
        for one in found.schedules:
            if one.schedule.name == name:
                return answer(_shown(one))
        raise Refused("unknown_schedule")

    before = (call.queue, name[:-1])
    return Asked([ListSchedules(call.queue, before, 1_000)], told)


def _page(call: Call, found: ScheduleList) -> Plan:
    shown = [
        _shown(one)
        for one in found.schedules
        if call.bearer.may(Verb.READ, one.schedule.queue)
    ]
    following = None if found.next is None else "/".join(found.next)
    return answer(wire.SchedulePage(shown, following))


def _shown(view: ScheduleView) -> wire.ScheduleShown:
    schedule = view.schedule
    return wire.ScheduleShown(
        schedule.queue,
        schedule.name,
        schedule.cron,
        schedule.zone,
        schedule.missed.value,
        schedule.is_paused,
        schedule.spec.kind,
        view.last_ms,
        view.next_ms,
    )


def _route(method: str, path: str, handler: Any, verb: Verb, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        verb=verb,
        tag="schedules",
        **more,
    )


_NAMED: Final = "/v1/queues/{queue}/schedules/{name}"
ROUTES: Final = (
    _route(
        "GET",
        "/v1/schedules",
        list_all,
        Verb.READ,
        is_queue_checked=False,
        query=Paging,
        answers={200: wire.SchedulePage},
    ),
    _route(
        "GET",
        "/v1/queues/{queue}/schedules",
        list_queue,
        Verb.READ,
        query=Paging,
        answers={200: wire.SchedulePage},
        problems=("unknown_queue",),
    ),
    _route(
        "PUT",
        _NAMED,
        put,
        Verb.MANAGE,
        body=wire.ScheduleBody,
        answers={200: wire.ScheduleShown},
        problems=("too_many_queues", "too_many_slos", "no_share"),
        example={
            "cron": "30 1 * * *",
            "zone": "Europe/London",
            "job": {"kind": "report"},
        },
    ),
    _route(
        "DELETE",
        _NAMED,
        drop,
        Verb.MANAGE,
        answers={204: None},
        problems=("unknown_queue", "unknown_schedule"),
    ),
)
