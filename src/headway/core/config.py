"""What a queue is told to do: frozen, and checked when it is made."""

from enum import StrEnum

import msgspec

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.retry import Exponential, Retry
from headway.core.windows import WindowSet


class Order(StrEnum):
    """How the jobs of a queue are ranked."""

    FAIR = "fair"
    """Between tenants by pass; a tenant's own by priority, then time."""
    TIME = "time"
    """By scheduled time, then priority: one lane, tenants do not matter."""
    PRIORITY = "priority"
    """By priority, then scheduled time: one lane, tenants do not matter."""
    LEVELS = "levels"
    """By a pass fixed at enqueue: only for comparison in the simulator."""


class FairBy(StrEnum):
    """What a start costs its tenant."""

    COST = "cost"
    TIME = "time"
    """The mean run time of the job's kind."""


class WhenFull(StrEnum):
    """What becomes of jobs for which a queue has no room."""

    REFUSE = "refuse"
    WAIT = "wait"
    """Whoever brings them is held back for a while, and refused then."""
    SHED = "shed"
    """They are accepted, and go to the dead letters at once: whoever brings them goes
    on, and they can be redriven when there is room."""


class FailMode(StrEnum):
    """What holds while a queue's throttler gives no answer."""

    CLOSED = "closed"
    OPEN = "open"


class Concurrency(msgspec.Struct, frozen=True, tag="concurrency"):
    """At most `max` units at once, in all or for each value of `per`."""

    name: str
    max: int
    per: str | None = None
    """"tenant", "kind" or the name of a label."""

    def __post_init__(self) -> None:
        _name("limit", self.name)
        _count(f"limits.{self.name}.max", self.max, 0)


class Rate(msgspec.Struct, frozen=True, tag="rate"):
    """At most `count` units per `period_ms`, `burst` of them at once."""

    name: str
    count: int
    period_ms: int
    burst: int | None = None
    """None means: as many as `count`."""
    per: str | None = None

    def __post_init__(self) -> None:
        _name("limit", self.name)
        _count(f"limits.{self.name}.count", self.count, 1)
        _duration(f"limits.{self.name}.period_ms", self.period_ms)
        if self.burst is not None:
            _count(f"limits.{self.name}.burst", self.burst, 1)


class Shares(msgspec.Struct, frozen=True, tag="shares"):
    """At most `max` units at once, divided by percent between values of a label."""

    name: str
    max: int
    by: str
    """"kind" or the name of a label."""
    percent: dict[str, int]
    """Values not named here share what is left of 100."""
    is_lending: bool = False
    """Idle units may be lent to other values until their owner wants them."""

    def __post_init__(self) -> None:
        _name("limit", self.name)
        _count(f"limits.{self.name}.max", self.max, 0)
        for value, percent in self.percent.items():
            if not 0 <= percent <= 100:
                raise BadValue(
                    f"limits.{self.name}.percent.{value}", percent, "0 to 100"
                )
        if sum(self.percent.values()) > 100:
            raise BadValue(
                f"limits.{self.name}.percent", self.percent, "more than 100 in all"
            )


Limit = Concurrency | Rate | Shares


class QueueConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one queue."""

    name: str
    weight: float = defaults.WEIGHT
    """Its share against queues of the same SLO when both are due."""
    order: Order = Order.FAIR
    fair_by: FairBy = FairBy.COST
    slo_ms: int = defaults.SLO_MS
    """The SLO of jobs that name none."""
    slos_ms: tuple[int, ...] = ()
    """SLO classes declared in advance; others are met, up to 16 in all."""
    priority: int = defaults.PRIORITY
    cost: int = defaults.COST
    lease_ms: int = defaults.LEASE_MS
    timeout_ms: int = defaults.TIMEOUT_MS
    lifetime_ms: int = defaults.LIFETIME_MS
    attempts_max: int = defaults.ATTEMPTS_MAX
    retry: Retry = Exponential()
    windows: WindowSet | None = None
    limits: tuple[Limit, ...] = ()
    margin_ms: int | None = None
    """None means: a tenth of the SLO, or what a start costs if that is more."""
    floor: float = 0.0
    """Share of all starts that this queue gets at least, whatever is due."""
    slot_share: float = 1.0
    """Share of the worker slots that its jobs may hold at once."""
    max_length: int | None = None
    """Enqueue is refused where ready + scheduled + leased would reach it."""
    when_full: WhenFull = WhenFull.REFUSE
    has_throttler: bool = False
    """As the queue's owner was started: what is said here does not count there."""
    throttler_fails: FailMode = FailMode.CLOSED
    """Whether its jobs wait or start while its throttler gives no verdict."""
    idempotency_window_ms: int = defaults.IDEMPOTENCY_WINDOW_MS
    early_reply_ms: int = defaults.EARLY_REPLY_MS
    early_replies_max: int = defaults.EARLY_REPLIES_MAX

    def __post_init__(self) -> None:
        _name("queue", self.name)
        _weight("weight", self.weight)
        _duration("slo_ms", self.slo_ms)
        for slo_ms in self.slos_ms:
            _duration("slos_ms", slo_ms)
        if len(self.slos_ms) > defaults.SLO_CLASSES_MAX:
            raise BadValue(
                "slos_ms", self.slos_ms, f"at most {defaults.SLO_CLASSES_MAX}"
            )
        for key in ("lease_ms", "timeout_ms", "lifetime_ms", "idempotency_window_ms"):
            _duration(key, getattr(self, key))
        _count("attempts_max", self.attempts_max, 1)
        _count("cost", self.cost, 0)
        for key, share in (("floor", self.floor), ("slot_share", self.slot_share)):
            if not 0.0 <= share <= 1.0:
                raise BadValue(key, share, "must be from 0 to 1")
        if self.slot_share == 0.0:
            raise BadValue("slot_share", self.slot_share, "must be above 0")
        if self.margin_ms is not None and not 0 <= self.margin_ms <= self.slo_ms:
            raise BadValue("margin_ms", self.margin_ms, "must be from 0 to the SLO")
        if self.max_length is not None:
            _count("max_length", self.max_length, 0)
        _distinct_limits(self.limits)


def _distinct_limits(limits: tuple[Limit, ...]) -> None:
    if len(limits) > defaults.LIMITS_MAX:
        raise BadValue("limits", len(limits), f"at most {defaults.LIMITS_MAX}")
    seen: set[str] = set()
    for limit in limits:
        if limit.name in seen:
            raise BadValue("limits", limit.name, "two limits of one name")
        seen.add(limit.name)


def _name(key: str, value: str) -> None:
    if not 1 <= len(value) <= defaults.NAME_LENGTH_MAX:
        rule = f"must have 1 to {defaults.NAME_LENGTH_MAX} characters"
        raise BadValue(key, value, rule)


def _weight(key: str, value: float) -> None:
    if not defaults.WEIGHT_MIN <= value <= defaults.WEIGHT_MAX:
        rule = f"must be from {defaults.WEIGHT_MIN} to {defaults.WEIGHT_MAX}"
        raise BadValue(key, value, rule)


def _count(key: str, value: int, low: int) -> None:
    if not low <= value <= defaults.COUNT_MAX:
        raise BadValue(key, value, f"must be from {low} to {defaults.COUNT_MAX}")


def _duration(key: str, value: int) -> None:
    if not 1 <= value <= defaults.DURATION_MAX_MS:
        rule = f"must be from 1 to {defaults.DURATION_MAX_MS} ms"
        raise BadValue(key, value, rule)
