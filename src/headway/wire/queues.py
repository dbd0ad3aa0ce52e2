"""Queues: their rules as they are set, and as they are shown."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from headway.core import defaults
from headway.wire.jobs import ExponentialRetry, Retry, Windows
from headway.wire.values import (
    Count,
    Duration,
    Given,
    Positive,
    Priority,
    Share,
    Weight,
)

PARTITIONS_MAX = 64
"""Of one queue."""
Per = Annotated[str, Meta(min_length=1, max_length=defaults.NAME_LENGTH_MAX)]
"""tenant, kind or the name of a label."""


class ConcurrencyLimit(msgspec.Struct, tag="concurrency", forbid_unknown_fields=True):
    """At most `max` units at once, in all or for each value of `per`."""

    name: Given
    max: Count
    per: Per | None = None


class RateLimit(msgspec.Struct, tag="rate", forbid_unknown_fields=True):
    """At most `count` units a `period`, `burst` of them at once."""

    name: Given
    count: Positive
    period: Duration = "1s"
    burst: Positive | None = None
    per: Per | None = None


class ShareLimit(msgspec.Struct, tag="shares", forbid_unknown_fields=True):
    """At most `max` units at once, divided by percent between the values of a label."""

    name: Given
    max: Count
    by: Per
    percent: Annotated[
        dict[Given, Annotated[int, Meta(ge=0, le=100)]], Meta(max_length=1_000)
    ]
    lending: bool = False
    """Idle units may be lent to other values until their owner wants them."""


Limit = ConcurrencyLimit | RateLimit | ShareLimit


class QueueRules(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The rules of a queue. What is left out has its default."""

    weight: Weight = defaults.WEIGHT
    order: Literal["fair", "time", "priority"] = "fair"
    fair_by: Literal["cost", "time"] = "cost"
    slo: Duration = defaults.SLO_MS
    """How long jobs that name no SLO may wait."""
    slos: Annotated[list[Duration], Meta(max_length=defaults.SLO_CLASSES_MAX)] = []
    priority: Priority = defaults.PRIORITY
    cost: Count = defaults.COST
    lease: Duration = defaults.LEASE_MS
    timeout: Duration = defaults.TIMEOUT_MS
    lifetime: Duration = defaults.LIFETIME_MS
    attempts: Positive = defaults.ATTEMPTS_MAX
    retry: Retry = msgspec.field(default_factory=ExponentialRetry)
    windows: Windows | None = None
    limits: Annotated[list[Limit], Meta(max_length=defaults.LIMITS_MAX)] = []
    margin: Duration | None = None
    """How long before its promise ends a job is to be started."""
    floor: Share = 0.0
    slot_share: Annotated[float, Meta(gt=0.0, le=1.0)] = 1.0
    max_length: Count | None = None
    """Jobs that may be in it, ready, scheduled and leased; 0 takes none."""
    when_full: Literal["refuse", "wait", "shed"] = "refuse"
    """Whether an enqueue that finds no room is refused at once, or held back first."""
    throttler_fails: Literal["closed", "open"] = "closed"
    """Whether its jobs wait or start while its throttler, if it has one, has failed."""
    idempotency_window: Duration = defaults.IDEMPOTENCY_WINDOW_MS
    early_reply: Duration = defaults.EARLY_REPLY_MS
    early_replies: Count = defaults.EARLY_REPLIES_MAX


class Counts(msgspec.Struct):
    """How many jobs are in which state: exact, as of the last commit."""

    ready: int
    scheduled: int
    leased: int
    waiting: int
    dead: int


class LaneShown(msgspec.Struct):
    """The ready jobs of one SLO."""

    slo_ms: int
    ready: int
    critical: bool
    """Of jobs that no limit stops."""
    is_due: bool
    next_aim_ms: int | None
    start_interval_ms: float


class LimitShown(msgspec.Struct):
    name: str
    value: str
    used: int
    max: int


class QueueBrief(msgspec.Struct):
    name: str
    counts: Counts
    is_paused: bool
    is_blocked: bool


class QueueShown(msgspec.Struct):
    name: str
    counts: Counts
    is_paused: bool
    is_blocked: bool
    rules: QueueRules
    lanes: list[LaneShown]
    limits: list[LimitShown]
    has_throttler: bool = False
    """Code of the operator's is asked before its jobs start."""


class QueuePage(msgspec.Struct):
    queues: list[QueueBrief]
    next: str | None
    """Pass it as `after` for the next page."""


class Holds(msgspec.Struct):
    is_paused: bool
    is_blocked: bool


class TenantRules(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    weight: Weight | None = None
    paused: bool | None = None
    cap: Annotated[int, Meta(ge=-1, le=defaults.COUNT_MAX)] | None = None
    """Units that its jobs may hold at once; -1 lifts the cap."""


class KindRules(msgspec.Struct, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    cost: Count | None = None
    paused: bool | None = None
    cap: Annotated[int, Meta(ge=-1, le=defaults.COUNT_MAX)] | None = None


class TenantShown(msgspec.Struct):
    tenant: str
    weight: float
    is_paused: bool
    cap: int | None


class TenantPage(msgspec.Struct):
    """Tenants of which something was said."""

    tenants: list[TenantShown]
    next: str | None


class KindShown(msgspec.Struct):
    kind: str
    cost: int | None
    is_paused: bool
    cap: int | None


class KindPage(msgspec.Struct):
    kinds: list[KindShown]
    next: str | None


class Width(msgspec.Struct, forbid_unknown_fields=True):
    """How many partitions a queue is to have."""

    count: Annotated[int, Meta(ge=1, le=PARTITIONS_MAX)] | Literal["auto"]
    """Auto leaves it to the nodes, by how busy its partitions are."""
    max: Annotated[int, Meta(ge=1, le=PARTITIONS_MAX)] | None = None
    """Where it is left to the nodes, at most so many; as many as there are, if null."""


class QueuePlaces(msgspec.Struct):
    partitions: list[str]
    """Its home first."""
    leaving: list[str] = []
    """Those of them that take no new jobs, and go once they hold none."""
    max: int | None = None
    """Up to so many nodes give it by themselves; null if they don't."""


class Done(msgspec.Struct):
    done: bool = True
