"""Writes: chunks of jobs are staged, and published as a whole."""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from headway.core.errors import UnknownWrite
from headway.core.spec_check import check_spec
from headway.server.call import Call, answer
from headway.server.plans import InThread, Plan
from headway.server.problems import Refused
from headway.server.routing import Route
from headway.server.scopes import Verb
from headway.server.shapes import spec_of
from headway.server.staging import Place
from headway.server.writes import Permit
from headway.wire import writes as wire
from headway.wire.values import QueueName

_NAME: Final = re.compile(wire.NAME)
_ATTEMPT: Final = re.compile(wire.ATTEMPT)
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,5}")


class ChunkQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: QueueName
    """The queue of all its jobs."""


def put_chunk(call: Call) -> Plan:
    """Stage a chunk of a write: up to 10,000 jobs of one queue.

    Nothing is enqueued by it. A chunk that is there already stays as it is, and so does
    a write that was published; its state is the answer.
    """
    query: ChunkQuery = call.query()
    call.require(Verb.ENQUEUE, query.queue)
    name = _name(call)
    attempt = call.params["attempt"]
    if not _ATTEMPT.fullmatch(attempt):
        text = "at most 64 letters, digits, _ and -"
        raise Refused("bad_value", text, "attempt")
    place = Place(_number(call, "partition"), attempt, _number(call, "number"))

    def work() -> Plan:
        specs = [spec_of(job) for job in call.late_body()]
        for spec in specs:
            check_spec(spec)
        return answer(call.facilities.writes.put(name, place, query.queue, specs))

    return InThread(work)


def publish(call: Call) -> Plan:
    """Publish a write: all jobs of the attempts that are named, or none.

    Answered when that is on stable storage. From then on they are accepted, and become
    jobs of their queues one after another. A write is published once: whoever repeats
    it is told what became of it, and changes nothing.
    """
    name, body = _name(call), call.body
    permit = _permit(call, Verb.ENQUEUE)
    return _in_thread(lambda: call.facilities.writes.publish(name, body, permit))


def show(call: Call) -> Plan:
    """A write: how much is staged, or how much was taken in."""
    name, permit = _name(call), _permit(call, Verb.READ)
    return _in_thread(lambda: call.facilities.writes.show(name, permit))


def discard(call: Call) -> Plan:
    """Discard a write that was not published. One that was stays as it is."""
    name, permit = _name(call), _permit(call, Verb.ENQUEUE)
    return _in_thread(lambda: call.facilities.writes.discard(name, permit))


def _in_thread(work: Callable[[], wire.WriteShown]) -> InThread:
    return InThread(lambda: answer(work()))


def _permit(call: Call, verb: Verb) -> Permit:
    """Whoever may not even read its queues is not told that there is such a write."""

    def permit(queues: list[str]) -> None:
        may = call.bearer.may
        if not all(may(Verb.READ, queue) or may(verb, queue) for queue in queues):
            raise UnknownWrite(f"there is no write {call.params['id']!r}")
        for queue in queues:
            call.require(verb, queue)

    return permit


def _name(call: Call) -> str:
    name = call.params["id"]
    if not _NAME.fullmatch(name):
        text = "at most 128 letters, digits, . _ and -, the first no sign"
        raise Refused("bad_value", text, "id")
    return name


def _number(call: Call, name: str) -> int:
    text = call.params[name]
    if not _NUMBER.fullmatch(text):
        raise Refused("bad_value", "must be from 0 to 999999", name)
    return int(text)


def _route(method: str, path: str, handler: Any, verb: Verb, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        handler=handler,
        verb=verb,
        is_queue_checked=False,
        tag="writes",
        answers={200: wire.WriteShown},
        **more,
    )


_WRITE: Final = "/v1/writes/{id}"

ROUTES: Final = (
    _route(
        "PUT",
        _WRITE + "/chunks/{partition}/{attempt}/{number}",
        put_chunk,
        Verb.ENQUEUE,
        query=ChunkQuery,
        body=wire.ChunkJobs,
        is_body_late=True,
        problems=("write_conflict", "staging_full"),
        example=[{"kind": "send_mail", "payload": {"to": "ada"}}],
    ),
    _route(
        "POST",
        _WRITE + "/publish",
        publish,
        Verb.ENQUEUE,
        body=wire.Publication,
        problems=(
            "unknown_write",
            "write_conflict",
            "queue_full",
            "too_many_slos",
            "too_many_queues",
            "too_many_writes",
            "staging_full",
        ),
        example={
            "winners": [{"partition": 0, "attempt": "a1", "chunks": 0}],
            "count": 0,
        },
    ),
    _route("GET", _WRITE, show, Verb.READ, problems=("unknown_write",)),
    _route("DELETE", _WRITE, discard, Verb.ENQUEUE, problems=("unknown_write",)),
)
