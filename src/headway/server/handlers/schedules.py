"""Schedules: a job at every tick of a cron expression."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from headway.core.commands import (
    Accepted,
    Changed,
    DropSchedule,
    Enqueue,
    PutSchedule,
)
from headway.core.cron import Missed, Schedule
from headway.runtime.listing import ListSchedules, ScheduleList, ScheduleView
from headway.server.call import NOTHING, Call, answer
from headway.server.handlers.queues import Paging
from headway.server.plans import Plan, ask, made
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import spec_of
from headway.wire import operations as wire
from headway.wire.jobs import Accepted as AcceptedJobs
from headway.wire.jobs import AcceptedJob


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


def pause(call: Call) -> Plan:
    """No tick of a schedule enqueues anything until it is resumed."""
    return _found(call, lambda one: _hold(call, one, is_paused=True))


def resume(call: Call) -> Plan:
    """Go on with a schedule; ticks that were missed meanwhile follow its policy."""
    return _found(call, lambda one: _hold(call, one, is_paused=False))


def run_now(call: Call) -> Plan:
    """Enqueue the job of a schedule at once, beside its ticks."""

    def told(one: ScheduleView) -> Plan:
        command = Enqueue(call.queue, [one.schedule.spec])

        def accepted(got: Accepted) -> Plan:
            jobs = [AcceptedJob(call.ids.job(got.seqs[0]), got.waits_ms[0])]
            return answer(AcceptedJobs(jobs, got.duplicates), 201)

        return ask(command, accepted)

    return _found(call, told)


def _hold(call: Call, one: ScheduleView, *, is_paused: bool) -> Plan:
    schedule = structs.replace(one.schedule, is_paused=is_paused)
    return ask(PutSchedule(schedule), lambda _: _one(call))


def _one(call: Call) -> Plan:
    return _found(call, lambda one: answer(_shown(one)))


def _found(call: Call, then: Callable[[ScheduleView], Plan]) -> Plan:
    name = call.params["name"]

    def told(found: ScheduleList) -> Plan:
        for one in found.schedules:
            if one.schedule.name == name:
                return then(one)
        raise Refused("unknown_schedule", f"there is no schedule {name[:80]!r}")

    return ask(ListSchedules(call.queue, (call.queue, _before(name)), 1_000), told)


def _before(name: str) -> str:
    """Something between a name and the names before it, or nearly so."""
    last = ord(name[-1]) - 1
    is_text = last >= 0 and not 0xD800 <= last <= 0xDFFF
    return name[:-1] + chr(last) + "\U0010ffff" if is_text else name[:-1]


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
    *(
        _route(
            "POST",
            f"{_NAMED}/{word}",
            handler,
            Verb.MANAGE,
            answers={200: wire.ScheduleShown},
            problems=("unknown_queue", "unknown_schedule"),
        )
        for word, handler in (("pause", pause), ("resume", resume))
    ),
    _route(
        "POST",
        f"{_NAMED}/run",
        run_now,
        Verb.MANAGE,
        answers={201: AcceptedJobs},
        problems=("unknown_queue", "unknown_schedule", "queue_full", "no_share"),
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
