"""Jobs as they are sent and shown."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from headway.wire.values import (
    BATCH_MAX,
    END,
    Base64,
    Count,
    Duration,
    Headers,
    Key,
    Labels,
    Moment,
    Name,
    Positive,
    Priority,
    Span,
    Weight,
)

SPAN: Final = r"^[0-9]{1,2}:[0-9]{2}-[0-9]{1,2}:[0-9]{2}" + END


class Window(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A span of local time of day; past midnight if need be."""

    span: Annotated[str, Meta(pattern=SPAN, max_length=11)]
    zone: Annotated[str, Meta(max_length=64)] = "UTC"


Windows = Annotated[list[Window], Meta(min_length=1, max_length=16)]


class FixedRetry(msgspec.Struct, tag="fixed", forbid_unknown_fields=True):
    """The same delay after every failed attempt."""

    delay: Duration


class ExponentialRetry(msgspec.Struct, tag="exponential", forbid_unknown_fields=True):
    """Each delay is `factor` times the one before, up to `max`."""

    first: Duration = "1s"
    max: Duration = "5m"
    factor: Annotated[float, Meta(ge=1.0, le=1_000.0)] = 2.0
    jitter: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.5
    """The share of a delay that chance may take off it."""


class DelaysRetry(msgspec.Struct, tag="delays", forbid_unknown_fields=True):
    """The listed delays in turn; then no more."""

    delays: Annotated[list[Duration], Meta(max_length=1_000)]


class NoRetry(msgspec.Struct, tag="give_up", forbid_unknown_fields=True):
    """The first failure is the last."""


Retry = FixedRetry | ExponentialRetry | DelaysRetry | NoRetry


class NewJob(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A job to be enqueued. What is left out is as its queue says."""

    kind: Name = ""
    payload: Raw | UnsetType = UNSET
    """Any JSON value; at most 1 MiB. Left out it is null."""
    payload_base64: Base64 | None = None
    """Bytes that are no JSON, in its place."""
    tenant: Name = ""
    slo: Duration | None = None
    """How long it may wait before it starts."""
    run_at: Moment | None = None
    delay: Duration | None = None
    priority: Priority | None = None
    """Lower goes first, among the jobs of its tenant."""
    weight: Weight | None = None
    """The tenant's share from now on."""
    cost: Count | None = None
    critical: bool = False
    """Neither waits for limits nor counts against them."""
    labels: Labels | None = None
    windows: Windows | None = None
    timeout: Span | None = None
    lifetime: Span | None = None
    attempts: Positive | None = None
    retry: Retry | None = None
    idempotency_key: Key | None = None
    headers: Headers | None = None
    result: Span | None = None
    """How long its result is kept once it has ended; left out none is."""


NewJobs = Annotated[list[NewJob], Meta(min_length=1, max_length=BATCH_MAX)]


class AcceptedJob(msgspec.Struct):
    id: str
    expected_wait_ms: int | None = None
    """Until its start, as things stand; null where nothing can be said."""


class Accepted(msgspec.Struct):
    """The jobs, in the order in which they were sent."""

    jobs: list[AcceptedJob]
    duplicates: int = 0
    """How many of them were known by their idempotency key."""
    shed: list[str] | UnsetType = UNSET
    """Those for which the queue had no room, if there are any: they are dead letters."""


class FailedAttempt(msgspec.Struct):
    at_ms: int
    attempt: int
    reason: str
    text: str = ""


class JobShown(msgspec.Struct, kw_only=True):
    """A job as it stands."""

    id: str
    queue: str
    state: str
    kind: str = ""
    tenant: str = ""
    slo_ms: int
    priority: int | None = None
    cost: int | None = None
    run_at_ms: int
    enqueued_ms: int
    expires_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    generation: int = 0
    attempt: int = 0
    attempts_max: int | None = None
    worker: str = ""
    lease_until_ms: int | None = None
    wait_until_ms: int | None = None
    reply_key: str | None = None
    is_cancel_requested: bool = False
    critical: bool = False
    labels: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    payload: Raw | UnsetType = UNSET
    """What its next attempt is given; missing once the job has ended."""
    payload_base64: str | UnsetType = UNSET
    is_payload_changed: bool = False
    """It is not the payload that was sent: a failed attempt or a redrive changed it."""
    errors: list[FailedAttempt] = []


class ResultShown(msgspec.Struct, kw_only=True):
    """What became of a job that was asked for its result."""

    id: str
    state: str
    """done, dead or cancelled once it has ended."""
    value: Raw | UnsetType = UNSET
    """What its handler returned; null where it returned nothing."""
    value_base64: str | UnsetType = UNSET
    """A reply that is no JSON, where that has completed the job."""
    problem: str | None = None
    """Why a job that is done has no value: it could not be kept."""
    ended_ms: int | None = None
    kept_until_ms: int | None = None
    errors: list[FailedAttempt] = []
    """Of a job that is dead."""


class ReasonShown(msgspec.Struct):
    rule: str
    text: str
    until_ms: int | None = None
    holders: list[str] = []
    """Jobs that hold what it waits for."""


class WhyShown(msgspec.Struct, kw_only=True):
    """Why a job is not running: the first reason is the one to lift first."""

    id: str
    state: str
    queue: str
    slo_ms: int
    tenant: str
    reasons: list[ReasonShown]
    ahead: int
    starts_ms: int | None


class Happened(msgspec.Struct):
    """One event of a job's timeline."""

    number: int
    at_ms: int
    event: str
    details: dict[str, Any]


class Timeline(msgspec.Struct):
    id: str
    events: list[Happened]
    next: int | None = None
    """Pass it as `after` to go on."""


class Found(msgspec.Struct):
    """Jobs that a search has found, and how far the index behind it is."""

    jobs: list[JobShown]
    next: str | None
    """The cursor of the next page; null at the end."""
    indexed_to: int
    """The event up to which the index knows everything."""
    indexed_ms: int
    """When that event happened."""


class Cancelled(msgspec.Struct):
    """`cancelled`, or `requested` of the worker that has it."""

    outcome: str
