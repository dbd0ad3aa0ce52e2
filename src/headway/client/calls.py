"""Everything the SDK asks of a server, once for all ways of asking.

A call is its method, path and body, how the answer is to be read, and whether it may
be sent again when nobody knows what came of it.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.spec import JobSpec
from headway.wire.jobs import Accepted, NewJob, ResultShown
from headway.wire.shown import new_job, rules_of, schedule_body
from headway.wire.work import (
    AckBody,
    ExtendBody,
    Failure,
    LeaseBody,
    Leased,
    LeasedJobs,
    NackBody,
    ReplyBody,
    ReplyFate,
    ResultBody,
    Settled,
    TokensBody,
    WaitBody,
)

T = TypeVar("T")
_accepted: Final = msgspec.json.Decoder(Accepted).decode
_leased: Final = msgspec.json.Decoder(LeasedJobs).decode
_settled: Final = msgspec.json.Decoder(Settled).decode
_result: Final = msgspec.json.Decoder(ResultShown).decode
_fate: Final = msgspec.json.Decoder(ReplyFate).decode
_encode: Final = msgspec.json.Encoder().encode
_NEW: Final = msgspec.to_builtins(NewJob())
"""What a job says that says nothing."""


class Call(NamedTuple, Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    body: bytes
    read: Callable[[bytes], T]
    wait_s: float = 0.0
    """How long the server may hold the answer back."""
    undo: "Callable[[T], Call[Any] | None] | None" = None
    """What takes back an answer that its caller is not there for any more."""


def enqueue(queue: str, specs: Sequence[JobSpec]) -> Call[list[str]]:
    """All of the jobs or none; answers their ids.

    A job without an idempotency key is given one, so that the call can be repeated
    when its answer is lost.
    """
    call_key = secrets.token_hex(12)
    jobs = []
    for number, spec in enumerate(specs):
        job = new_job(spec)
        if job.idempotency_key is None:
            job.idempotency_key = f"{call_key}.{number}"
        jobs.append(_without_defaults(job))
    path = f"/v1/queues/{_name(queue)}/jobs"
    return Call("POST", path, _encode(jobs), _ids)


def lease(
    queues: Sequence[str],
    most: int,
    *,
    wait_ms: int = 0,
    lease_ms: int | None = None,
    worker: str = "",
) -> Call[list[Leased]]:
    """Up to `most` jobs of the queues (of all, if none is named), most urgent first."""
    body = LeaseBody(list(queues) or None, most, wait_ms, lease_ms, worker)
    return Call(
        "POST",
        "/v1/lease",
        _encode(body),
        lambda got: _leased(got).jobs,
        wait_ms / 1_000,
        _give_back,
    )


def ack(
    tokens: Sequence[str], results: Mapping[str, ResultBody] | None = None
) -> Call[Settled]:
    """The jobs are done; with the results of those that want theirs told."""
    body = AckBody(list(tokens))
    if results:
        body.results = dict(results)
    return _settle("/v1/ack", body)


def extend(tokens: Sequence[str], lease_ms: int) -> Call[Settled]:
    """Heartbeat; the answer also names the jobs that are to be cancelled."""
    return _settle("/v1/extend", ExtendBody(list(tokens), lease_ms))


def release(tokens: Sequence[str]) -> Call[Settled]:
    """Given back unused: nothing is counted or charged."""
    return _settle("/v1/release", TokensBody(list(tokens)))


def nack(failures: Sequence[Failure]) -> Call[Settled]:
    """The attempts failed."""
    return _settle("/v1/nack", NackBody(list(failures)))


def wait(
    token: str, reply_key: str, timeout_ms: int, *, is_done_on_reply: bool = False
) -> Call[Settled]:
    """The leased job gives its worker back and waits for a reply."""
    body = WaitBody(token, reply_key, timeout_ms, is_done_on_reply)
    return _settle("/v1/wait", body)


def reply(queue: str, reply_key: str, payload: bytes) -> Call[str]:
    """An answer from outside, as JSON; tells what became of it."""
    path = f"/v1/queues/{_name(queue)}/replies/{_name(reply_key)}"
    body = _encode(ReplyBody(msgspec.Raw(payload)))
    return Call("POST", path, body, lambda got: _fate(got).fate)


def result(job: str, *, wait_ms: int = 0) -> Call[ResultShown]:
    """What became of a job; held back for so long while it has not ended."""
    path = f"/v1/jobs/{_name(job)}/result?wait={wait_ms}ms"
    return Call("GET", path, b"", _result, wait_ms / 1_000)


def schedule(entry: Schedule) -> Call[None]:
    """A job at every tick of a cron expression."""
    path = f"/v1/queues/{_name(entry.queue)}/schedules/{_name(entry.name)}"
    return Call("PUT", path, _encode(schedule_body(entry)), _nothing)


def configure(config: QueueConfig) -> Call[None]:
    """Makes the queue, or changes its rules under whatever backlog it has."""
    return Call(
        "PUT", f"/v1/queues/{_name(config.name)}", _encode(rules_of(config)), _nothing
    )


def _settle(path: str, body: object) -> Call[Settled]:
    return Call("POST", path, _encode(body), _settled)


def _give_back(jobs: list[Leased]) -> Call[Settled] | None:
    return release([job.token for job in jobs]) if jobs else None


def _without_defaults(job: NewJob) -> dict[str, Any]:
    """What is not said is not sent: a job of few words is a short line."""
    fields = {}
    for name in job.__struct_fields__:
        value = getattr(job, name)
        if value is not None and value is not msgspec.UNSET and value != _NEW.get(name):
            fields[name] = value
    return fields


def _ids(answer: bytes) -> list[str]:
    return [job.id for job in _accepted(answer).jobs]


def _nothing(_: bytes) -> None:
    return None


def _name(text: str) -> str:
    return quote(text, safe="")
