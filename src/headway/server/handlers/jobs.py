"""Jobs: enqueue, show, cancel, and why one is not running."""

from typing import Any, Final

from headway.core.commands import Accepted, Cancel, Enqueue
from headway.core.errors import UnknownJob
from headway.core.why import Why
from headway.runtime.views import Explain, JobView, Show
from headway.server.answers import accepted
from headway.server.call import Call, answer
from headway.server.handlers.room import held_back, is_hasty
from headway.server.handlers.sight import indexed, visible
from headway.server.http.message import Response
from headway.server.plans import Asked, Plan, ask, good, made
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import shown, shown_found, spec_of
from headway.wire import jobs as wire

_IDEMPOTENCY: Final = "Idempotency-Key"
_TRACE: Final = ("traceparent", "tracestate")


def enqueue(call: Call) -> Plan:
    """Enqueue one job, or up to 1,000: all or nothing.

    Answered when they are on stable storage. A queue that does not exist yet is made,
    with the defaults. Jobs may also be sent as JSON lines. An `Idempotency-Key` header
    stands for the key of a single job; `traceparent` and `tracestate` are carried to the
    worker.

    A queue that is full answers 409 `queue_full`: at once, or after a few seconds in which
    there was no room, if its rule `when_full` is `wait`. If that is `shed`, the jobs for
    which there is no room are accepted and go to the dead letters; `shed` names them. With
    the header `Headway-Full: refuse` it is always 409, and at once.
    """
    body = call.body
    new = _named(call, body if isinstance(body, list) else [body])
    specs = [spec_of(job) for job in new]
    command = Enqueue(call.queue, specs, is_refusable=is_hasty(call))

    def told(got: Accepted) -> Plan:
        return Response(201, accepted(got, call.ids))

    first = made([call.queue], command, told)
    return held_back(call, first)


def _named(call: Call, new: list[wire.NewJob]) -> list[wire.NewJob]:
    """Adds what the request's own headers say."""
    key = call.header(_IDEMPOTENCY)
    if key is not None:
        if len(new) != 1:
            raise Refused("bad_value", "it is for one job only", _IDEMPOTENCY)
        key = key.strip('"')
        if not 1 <= len(key) <= 1_024:
            raise Refused("bad_value", "1 to 1024 characters", _IDEMPOTENCY)
        new[0].idempotency_key = key
    traced = {name: text for name in _TRACE if (text := call.header(name)) is not None}
    if traced:
        for job in new:
            job.headers = {**traced, **(job.headers or {})}
    return new


def show(call: Call) -> Plan:
    """A job as it stands; of one that has ended, what the index remembers."""
    seq = call.ids.seq(call.params["id"])

    def told(answers: list[Any]) -> Plan:
        view = answers[0]
        if isinstance(view, UnknownJob):
            return indexed(lambda: _ended(call, seq))
        visible(call, good(view).queue, Verb.READ)
        return answer(shown(view, call.ids))

    return Asked([Show(seq)], told)


def _ended(call: Call, seq: int) -> Plan:
    job = call.facilities.finder.job(seq)
    visible(call, job.queue, Verb.READ)
    return answer(shown_found(job, call.ids))


def why(call: Call) -> Plan:
    """Why a job is not running: every reason, and the one to lift first."""
    seq = call.ids.seq(call.params["id"])

    def told(found: Why) -> Plan:
        visible(call, found.queue, Verb.READ)
        ids = call.ids
        reasons = [
            wire.ReasonShown(
                reason.rule.value,
                reason.text,
                reason.until_ms,
                [ids.job(holder) for holder in reason.holders],
            )
            for reason in found.reasons
        ]
        return answer(
            wire.WhyShown(
                id=ids.job(found.seq),
                state=found.state.value,
                queue=found.queue,
                slo_ms=found.slo_ms,
                tenant=found.tenant,
                reasons=reasons,
                ahead=found.ahead,
                starts_ms=found.starts_ms,
            )
        )

    return ask(Explain(seq), told)


def cancel(call: Call) -> Plan:
    """Cancel a job.

    A job that runs is flagged: its worker hears of it at its next word, and it is
    answered by 202.
    """
    seq = call.ids.seq(call.params["id"])

    def told(view: JobView) -> Plan:
        visible(call, view.queue, Verb.MANAGE)
        return ask(Cancel(seq), lambda got: _CANCELLED[bool(got.count)])

    return ask(Show(seq), told)


_CANCELLED: Final = {
    True: answer(wire.Cancelled("cancelled")),
    False: answer(wire.Cancelled("requested"), 202),
}


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/queues/{queue}/jobs",
        handler=enqueue,
        verb=Verb.ENQUEUE,
        tag="jobs",
        body=wire.NewJob | wire.NewJobs,
        is_lines=True,
        answers={201: wire.Accepted},
        problems=(
            "queue_full",
            "idempotency_conflict",
            "too_many_slos",
            "too_many_queues",
            "no_share",
        ),
        example={"kind": "send_mail", "payload": {"to": "ada"}, "slo": "5s"},
    ),
    Route(
        method="GET",
        path="/v1/jobs/{id}",
        handler=show,
        verb=Verb.READ,
        is_queue_checked=False,
        tag="jobs",
        answers={200: wire.JobShown},
        problems=("unknown_job",),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{id}/why",
        handler=why,
        verb=Verb.READ,
        is_queue_checked=False,
        tag="jobs",
        answers={200: wire.WhyShown},
        problems=("unknown_job",),
    ),
    Route(
        method="DELETE",
        path="/v1/jobs/{id}",
        handler=cancel,
        verb=Verb.MANAGE,
        is_queue_checked=False,
        tag="jobs",
        answers={200: wire.Cancelled, 202: wire.Cancelled},
        problems=("unknown_job", "wrong_state"),
    ),
)
