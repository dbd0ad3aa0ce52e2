"""The four endpoints of a single simple queue: record, ack and nack.

They work on one queue, which is there from the start. An id belongs to a delivery and
not to a record: once that delivery is over, the id is of no use.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from headway.core import defaults
from headway.core.commands import Ack, Enqueue, Lease, Nack
from headway.core.errors import LeaseLost, QueueFull
from headway.core.spec import JobSpec
from headway.runtime.views import Handed
from headway.server.call import NOTHING, Call, answer
from headway.server.http.message import Response
from headway.server.plans import Asked, Plan, ask, good
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.wire.values import PAYLOAD_MAX

FULL: Final = Response(409, b"Could exceed queue max length", b"text/plain")
OK: Final = Response(200, b"", b"text/plain")
LEASE_MS: Final = 30_000

Delay = Annotated[int, Meta(ge=-defaults.DURATION_MAX_MS, le=defaults.DURATION_MAX_MS)]


class NewRecord(msgspec.Struct):
    payload: Annotated[str, Meta(max_length=PAYLOAD_MAX)]
    delay_ms: Delay = 0
    """In the past means now."""


class Record(msgspec.Struct):
    id: str
    payload: str
    attempts: int
    """Deliveries so far, this one included."""


class NackRecord(msgspec.Struct):
    delay_ms: Delay | None = None
    """In place of the queue's back-off."""


def put(call: Call) -> Plan:
    """Create a record."""
    call.require(Verb.ENQUEUE, call.facilities.default_queue)
    body: NewRecord = call.body
    payload = body.payload.encode()
    if len(payload) > PAYLOAD_MAX:
        raise Refused("too_large", f"more than {PAYLOAD_MAX} bytes of payload")
    delay_ms = body.delay_ms if body.delay_ms > 0 else None
    spec = JobSpec(payload=payload, delay_ms=delay_ms)

    def told(answers: list[Any]) -> Plan:
        if isinstance(answers[0], QueueFull):
            return FULL
        good(answers[0])
        return NOTHING

    queue = call.facilities.default_queue
    return Asked([Enqueue(queue, [spec], is_refusable=True)], told)


def get(call: Call) -> Plan:
    """Get the next record, or 204 if there is none."""
    queue = call.facilities.default_queue
    call.require(Verb.WORK, queue)

    def told(handed: Handed) -> Plan:
        if not handed.jobs:
            return NOTHING
        job = handed.jobs[0]
        payload = job.payload.decode("utf-8", "replace")
        record = Record(call.ids.delivery(job.token, queue), payload, job.attempt)
        return answer(record)

    return ask(Lease("", (queue,), 1, LEASE_MS), told)


def ack(call: Call) -> Plan:
    """Acknowledge a record: it is done."""
    token = _token(call)

    def told(settled: Any) -> Plan:
        if settled.stale:
            raise _unknown(call)
        return OK

    return ask(Ack([token]), told)


def nack(call: Call) -> Plan:
    """Put a record back, after the queue's back-off or a delay of its own."""
    token = _token(call)
    body: NackRecord | None = call.body
    delay_ms = None if body is None else body.delay_ms
    if delay_ms is not None:
        delay_ms = max(0, delay_ms)

    def told(answers: list[Any]) -> Plan:
        if isinstance(answers[0], LeaseLost):
            raise _unknown(call)
        good(answers[0])
        return OK

    return Asked([Nack(token, "", delay_ms)], told)


def _token(call: Call) -> int:
    queue = call.facilities.default_queue
    call.require(Verb.WORK, queue)
    return call.ids.read_delivery(call.params["id"], queue)


def _unknown(call: Call) -> Refused:
    return Refused("unknown_job", f"there is no delivery {call.params['id'][:80]!r}")


def _route(method: str, path: str, handler: Any, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        verb=Verb.ENQUEUE if handler is put else Verb.WORK,
        is_queue_checked=False,
        tag="records",
        **more,
    )


ROUTES: Final = (
    _route(
        "POST",
        "/record",
        put,
        body=NewRecord,
        answers={204: None, 409: "text/plain"},
        example={"payload": "hey!", "delay_ms": 0},
    ),
    _route("GET", "/record", get, answers={200: Record, 204: None}),
    _route("POST", "/ack/{id}", ack, answers={200: None}, problems=("unknown_job",)),
    _route(
        "POST",
        "/nack/{id}",
        nack,
        body=NackRecord,
        is_body_needed=False,
        answers={200: None},
        problems=("unknown_job",),
        example={"delay_ms": 1000},
    ),
)
