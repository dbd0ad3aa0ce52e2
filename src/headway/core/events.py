"""What happened: the vocabulary of history and of everything that reads it.

Every event names its job, lane and tenant, so that no reader has to join for them.
Times are milliseconds of the partition's clock.
"""

import msgspec


class Event(msgspec.Struct, array_like=True, tag=True, gc=False):
    """What every event says."""

    at_ms: int
    seq: int
    generation: int
    queue: str
    slo_ms: int
    tenant: str
    kind: str


class Enqueued(Event, tag="enqueue"):
    """A job was accepted; it is ready at `run_at_ms`."""

    run_at_ms: int
    priority: int
    cost: int
    labels: dict[str, str] | None = None
    weight: float | None = None
    """What it set its tenant's weight to."""


class Promoted(Event, tag="promote"):
    """A scheduled job became ready."""


class Rescheduled(Event, tag="reschedule"):
    """A ready job was put off until `run_at_ms`: by a throttler, or by its worker."""

    run_at_ms: int
    unstarted_ms: int = 0


class Leased(Event, tag="lease"):
    """A job was handed to a worker, `wait_ms` after it became ready.

    `wait_ms` leaves out `held_ms`: time paused, blocked or outside its window. For a
    job that came back from a lost or released lease it counts from its first wait.
    """

    attempt: int
    token: int
    worker: str
    wait_ms: int
    held_ms: int
    lease_until_ms: int
    is_again: bool = False
    """It was started before in the same wait, and came back lost or released."""


class Extended(Event, tag="extend"):
    lease_until_ms: int


class Acked(Event, tag="ack"):
    """Done. `run_ms` counts from the start of this attempt."""

    attempt: int
    run_ms: int
    token: int = 0
    """The lease that ended with it, here and below; 0 means that none did."""


class Retried(Event, tag="retry"):
    """An attempt failed; the next may start at `run_at_ms`."""

    attempt: int
    run_ms: int
    reason: str
    text: str
    run_at_ms: int
    token: int = 0
    reply_key: str = ""
    """The key of the reply that did not come, if that is the reason; also below."""


class Released(Event, tag="release"):
    """Given back by its worker, uncounted and uncharged."""

    attempt: int
    run_ms: int
    token: int = 0


class Lost(Event, tag="lose"):
    """Its lease ended without a word from the worker."""

    attempt: int
    run_ms: int
    token: int = 0


class Waited(Event, tag="wait"):
    """Gave its worker back and waits for a reply."""

    attempt: int
    run_ms: int
    reply_key: str
    wait_until_ms: int
    token: int = 0


class Replied(Event, tag="reply"):
    """The reply of a waiting job came."""

    reply_key: str
    is_early: bool
    """The reply was there before the job waited for it."""
    is_done: bool
    """The job ended with it; else it goes on, ready again."""
    waited_ms: int = 0
    """How long the job had waited for it."""


class Cancelled(Event, tag="cancel"):
    token: int = 0
    unstarted_ms: int = 0
    """When the wait was or would have been due to begin that ends here without a
    start; 0 means that there is none. Also above and below."""


class CancelRequested(Event, tag="cancel_request"):
    """A leased job is to be cancelled; its worker hears of it at its next word."""


class Expired(Event, tag="expire"):
    """Its lifetime was over."""

    token: int = 0
    unstarted_ms: int = 0


class Buried(Event, tag="bury"):
    """To the dead letters, with the reason of its last error."""

    attempt: int
    reason: str
    text: str
    token: int = 0
    unstarted_ms: int = 0
    reply_key: str = ""


class Redriven(Event, tag="redrive"):
    """Back from the dead letters, as a new generation."""


class Discarded(Event, tag="discard"):
    """A dead letter was deleted for good."""


class ReplyKept(msgspec.Struct, array_like=True, tag="reply_kept", gc=False):
    """A reply that resolved nothing: early (kept for its job), late or repeated."""

    at_ms: int
    queue: str
    reply_key: str
    fate: str
    """early, repeated or late."""
    payload: bytes


class RuleChanged(msgspec.Struct, array_like=True, tag="rule", gc=False):
    """Configuration, pause, block, weight or cap changed."""

    at_ms: int
    queue: str
    what: str
    rule: bytes = b""
    """The whole rule as it is now, packed as a fact; empty if it is gone."""


class Ticked(msgspec.Struct, array_like=True, tag="tick", gc=False):
    """A schedule's tick came: enqueued as `seq`, or skipped (seq 0)."""

    at_ms: int
    queue: str
    schedule: str
    tick_ms: int
    seq: int


LimitPart = tuple[str | None, int, int, int]
"""A tenant, or None for all others: used_ms, stops and blocked_ms of it."""


class LimitUsed(msgspec.Struct, array_like=True, tag="limit", gc=False):
    """How much of one value of a limit was in use in a minute, and who was stopped.

    It is told at the first decision after the minute, or later if nothing happened: then
    several minutes in which everything stayed as it was are told at once, and the figures
    are those of each. What a minute was before an owner was replaced is never told.
    """

    at_ms: int
    queue: str
    limit: str
    value: str
    """What the limit tells apart: the value of a label, a kind, a tenant; or empty."""
    minute_ms: int
    """When the minute began..."""
    minutes: int
    """...and how many alike there are."""
    capacity: int
    """Units at once; of a rate, in each of its periods."""
    highest: int
    """The most that was in use; of a rate, that was not paid for yet."""
    used_ms: int
    """Units in use times how long. A unit of a rate is in use for one period."""
    stops: int
    """How often the job that was next had to wait for it."""
    blocked_ms: int
    """How long those waited: each turn for itself, a queue as a whole as one."""
    full_ms: int
    """How long anybody did."""
    parts: tuple[LimitPart, ...]
    """The same by tenant: the greatest, and the rest as one."""


AnyEvent = (
    Enqueued
    | Promoted
    | Rescheduled
    | Leased
    | Extended
    | Acked
    | Retried
    | Released
    | Lost
    | Waited
    | Replied
    | Cancelled
    | CancelRequested
    | Expired
    | Buried
    | Redriven
    | Discarded
    | ReplyKept
    | RuleChanged
    | Ticked
    | LimitUsed
)
