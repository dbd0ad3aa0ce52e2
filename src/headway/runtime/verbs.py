"""Everything that can be asked of a queue, once for all ways of asking.

A verb makes a request: the command, and how its answer is to be read. Who asks, and
whether it blocks or awaits, is not decided here.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar, Unpack

from headway.core.capacity import START_MS, Wanted
from headway.core.commands import (
    Ack,
    Cancel,
    Configure,
    DropSchedule,
    Enqueue,
    Extend,
    Hold,
    Lease,
    Nack,
    Purge,
    PutSchedule,
    Redrive,
    Release,
    Reply,
    ReplyFate,
    SetHold,
    SetKind,
    SetTenant,
    Settled,
    Wait,
)
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.durations import parse_ms
from headway.core.results import Result
from headway.core.retry import Retry
from headway.core.spec import JobSpec
from headway.core.why import Why
from headway.core.windows import WindowSet
from headway.runtime.measures import Measures
from headway.runtime.owner import Ask
from headway.runtime.results import Ended, Watch
from headway.runtime.views import (
    Autoscale,
    Count,
    Explain,
    Follow,
    HistoryPage,
    JobView,
    LeasedJob,
    Measure,
    QueueCounts,
    ReadHistory,
    Show,
)

T = TypeVar("T")
Duration = int | str
"""Milliseconds, or text such as "500ms", "5s" or "2h"."""


class Request(NamedTuple, Generic[T]):
    """A command or query, and how its answer is to be read."""

    ask: Ask
    read: Callable[[Any], T]


class JobFields(TypedDict, total=False):
    """What may be said of a job beside its queue and payload."""

    kind: str
    tenant: str
    slo: Duration
    delay: Duration
    run_at_ms: int
    priority: int
    weight: float
    cost: int
    is_critical: bool
    labels: dict[str, str]
    windows: WindowSet
    timeout: Duration
    lifetime: Duration
    attempts_max: int
    retry: Retry
    idempotency_key: str
    headers: dict[str, str]
    result: Duration
    """How long its result is kept; without it none is."""


_DURATIONS = ("slo", "delay", "timeout", "lifetime", "result")


def spec(payload: bytes = b"", **fields: Unpack[JobFields]) -> JobSpec:
    """A job, to be enqueued with others."""
    values: dict[str, Any] = dict(fields)
    for name in _DURATIONS:
        if name in values:
            values[f"{name}_ms"] = parse_ms(values.pop(name), name)
    return JobSpec(payload=payload, **values)


def configure(config: QueueConfig) -> Request[None]:
    """Makes the queue, or changes its rules under whatever backlog it has."""
    return Request(Configure(config), _nothing)


def enqueue(
    queue: str, payload: bytes = b"", **fields: Unpack[JobFields]
) -> Request[int]:
    """One job; answers its identity when it is on stable storage."""
    return Request(Enqueue(queue, [spec(payload, **fields)]), lambda got: got.seqs[0])


def enqueue_many(queue: str, specs: Iterable[JobSpec]) -> Request[list[int]]:
    """All of the jobs or none."""
    return Request(Enqueue(queue, list(specs)), lambda got: list(got.seqs))


def lease(
    *queues: str,
    most: int = 1,
    wait: Duration = 0,
    lease: Duration | None = None,
    worker: str = "",
) -> Request[list[LeasedJob]]:
    """Up to `most` jobs of the queues (of all, if none is named), most urgent first.

    With `wait` an empty answer is held back for so long.
    """
    lease_ms = None if lease is None else parse_ms(lease, "lease")
    command = Lease(worker, queues or None, most, lease_ms)
    command.wait_ms = parse_ms(wait, "wait")
    return Request(command, lambda got: got.jobs)


def ack(*tokens: int, results: Mapping[int, bytes] | None = None) -> Request[list[int]]:
    """The jobs are done. Answers the tokens that were stale, and changed nothing.

    `results` are JSON by token, of jobs that were asked for theirs.
    """
    values = {token: Result(value) for token, value in (results or {}).items()}
    return Request(Ack(list(tokens), values), _stale)


def extend(*tokens: int, lease: Duration = "30s") -> Request[Settled]:
    """Heartbeat: the leases end so long from now, if they would have ended before."""
    return Request(Extend(list(tokens), parse_ms(lease, "lease")), itself)


def nack(
    token: int,
    error: str = "",
    *,
    retry_in: Duration | None = None,
    is_bury: bool = False,
    payload: bytes | None = None,
    is_unused: bool = False,
) -> Request[None]:
    """The attempt failed: by the job's retry strategy, or as said here.

    Unused, it was put off before it began and does not count.
    """
    delay_ms = None if retry_in is None else parse_ms(retry_in, "retry_in")
    command = Nack(token, error, delay_ms, is_bury, payload, is_unused)
    return Request(command, _nothing)


def release(*tokens: int) -> Request[list[int]]:
    """Given back unused: nothing is counted or charged. Answers the stale tokens."""
    return Request(Release(list(tokens)), _stale)


def wait(
    token: int, reply_key: str, timeout: Duration, *, is_done_on_reply: bool = False
) -> Request[None]:
    """The leased job gives its worker back and waits for a reply."""
    timeout_ms = parse_ms(timeout, "timeout")
    return Request(Wait(token, reply_key, timeout_ms, is_done_on_reply), _nothing)


def reply(queue: str, reply_key: str, payload: bytes = b"") -> Request[ReplyFate]:
    """An answer from outside, and what became of it."""
    return Request(Reply(queue, reply_key, payload), itself)


def cancel(seq: int) -> Request[bool]:
    """True if it is cancelled; False if it runs, and its worker is told."""
    return Request(Cancel(seq), lambda got: bool(got.count))


def redrive(seq: int) -> Request[None]:
    """Back from the dead letters, with fresh attempts."""
    return Request(Redrive(seq), _nothing)


def purge(queue: str, tenant: str | None = None) -> Request[int]:
    """Cancels what has not started; answers how many that were, when all are.

    Others are served meanwhile. What comes in after it was asked for stays.
    """
    return Request(Purge(queue, tenant), lambda got: int(got.count))


def pause(queue: str) -> Request[None]:
    """Nothing of the queue starts from when this is answered."""
    return Request(SetHold(queue, Hold.PAUSE, is_on=True), _nothing)


def resume(queue: str) -> Request[None]:
    return Request(SetHold(queue, Hold.PAUSE, is_on=False), _nothing)


def block(queue: str) -> Request[None]:
    """The operator's pause: a resume does not lift it."""
    return Request(SetHold(queue, Hold.BLOCK, is_on=True), _nothing)


def unblock(queue: str) -> Request[None]:
    return Request(SetHold(queue, Hold.BLOCK, is_on=False), _nothing)


def set_tenant(
    queue: str,
    tenant: str,
    *,
    weight: float | None = None,
    is_paused: bool | None = None,
    cap: int | None = None,
) -> Request[None]:
    """Rules for one tenant; None leaves a rule as it is, a cap of -1 lifts it."""
    return Request(SetTenant(queue, tenant, weight, is_paused, cap), _nothing)


def set_kind(
    queue: str,
    kind: str,
    *,
    cost: int | None = None,
    is_paused: bool | None = None,
    cap: int | None = None,
) -> Request[None]:
    """Rules for one kind; None leaves a rule as it is, a cap of -1 lifts it."""
    return Request(SetKind(queue, kind, cost, is_paused, cap), _nothing)


def schedule(entry: Schedule) -> Request[None]:
    """A job at every tick of a cron expression."""
    return Request(PutSchedule(entry), _nothing)


def unschedule(queue: str, name: str) -> Request[bool]:
    return Request(DropSchedule(queue, name), lambda got: bool(got.count))


def show(seq: int) -> Request[JobView]:
    """The job as it stands."""
    return Request(Show(seq), itself)


def result(seq: int, *, wait: Duration = 0) -> Request[Ended]:
    """What became of a job that was asked for its result.

    With `wait`, at most a minute, the answer is held back until the job has ended.
    """
    return Request(Watch(seq, parse_ms(wait, "wait")), itself)


def why(seq: int) -> Request[Why]:
    """Why the job is not running."""
    return Request(Explain(seq), itself)


def counts(queue: str) -> Request[QueueCounts]:
    """How many jobs the queue has in which state."""
    return Request(Count(queue), itself)


def measure() -> Request[Measures]:
    """Everything in numbers: lanes, queues, limits, commits and memory."""
    return Request(Measure(), itself)


def autoscale(
    queues: Iterable[str] | None = None, *, start: Duration = START_MS
) -> Request[Wanted]:
    """How many worker slots these queues want, or all, and why.

    `start` is how long a new worker takes to be there.
    """
    names = None if queues is None else tuple(queues)
    return Request(Autoscale(names, parse_ms(start, "start")), itself)


def history(first: int = 1, most_bytes: int = 1 << 20) -> Request[HistoryPage]:
    """What happened, from an event on. Raises HistoryDropped if it is kept no more."""
    return Request(ReadHistory(first, most_bytes), itself)


def follow(reader: str, position: int | None) -> Request[bool]:
    """A reader of history is so far (None: it reads no more); the rest is kept for it.

    False if it was cut off before, since it lagged too far.
    """
    return Request(Follow(reader, position), lambda got: bool(got.count))


def _nothing(answer: object) -> None:
    return None


def itself(answer: Any) -> Any:
    """The answer is read as it is."""
    return answer


def _stale(answer: Settled) -> list[int]:
    return list(answer.stale)
