"""The records of a job: what was asked for, and where it stands."""

from typing import TYPE_CHECKING

import msgspec

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.retry import Retry
from headway.core.states import JobState
from headway.core.windows import WindowSet

if TYPE_CHECKING:
    from headway.core.fairness import Tenancy
    from headway.core.limits import Gauge
    from headway.core.turn import Turn
    from headway.core.usage import Part

Hold = tuple["Gauge", int, "Part"]
"""Units of a limit that a job has taken, and on whose part of it they count."""


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What a caller asks for. None means: as the queue says.

    It holds plain values only, so the collector of cycles need not walk it.
    """

    kind: str = ""
    payload: bytes = b""
    is_json: bool = False
    """The payload is known to be JSON, and may be shown as such."""
    tenant: str = ""
    slo_ms: int | None = None
    run_at_ms: int | None = None
    """Not before this time; in the past it means now."""
    delay_ms: int | None = None
    """Not before so long after enqueue, and not before `run_at_ms`."""
    priority: int | None = None
    """Lower goes first, among the jobs of its own tenant."""
    weight: float | None = None
    """The tenant's share from now on; None leaves it as it is."""
    cost: int | None = None
    """Units of every limit that the job takes while it runs."""
    is_critical: bool = False
    """Neither waits for limits nor counts against them."""
    labels: dict[str, str] | None = None
    windows: WindowSet | None = None
    timeout_ms: int | None = None
    """How long it may be leased and waiting, in all, for one attempt."""
    lifetime_ms: int | None = None
    """How long after enqueue it may live, whatever its state."""
    attempts_max: int | None = None
    retry: Retry | None = None
    idempotency_key: str | None = None
    headers: dict[str, str] | None = None
    result_ms: int | None = None
    """How long its result is kept; None means that nobody asks for one."""


class JobError(msgspec.Struct, frozen=True):
    """Why an attempt failed."""

    at_ms: int
    attempt: int
    reason: str
    """One of: failed, lease lost, timed out, no reply, put off, expired, refused."""
    text: str = ""


class Job(msgspec.Struct, eq=False):
    """One piece of work. The owner of the partition is its only writer."""

    seq: int
    """Its identity within the partition: given once, never reused."""
    spec: JobSpec
    queue: str
    slo_ms: int
    """The SLO class it was put in: its own, or the next stricter one."""
    priority: int
    run_at_ms: int
    """When it becomes or became ready; its promise counts from here."""
    cost: int
    attempts_max: int
    enqueued_ms: int
    expires_ms: int
    state: JobState = JobState.SCHEDULED
    generation: int = 0
    """Raised by every redrive."""
    attempt: int = 0
    """Deliveries so far in this generation."""
    token: int = 0
    """The current lease; 0 means none."""
    lease_until_ms: int = 0
    timeout_at_ms: int = 0
    """End of the attempt while it is leased or waiting."""
    timeout_left_ms: int = 0
    """What a continuation has left of its attempt; 0 means that none is under way."""
    started_ms: int = 0
    """When it was last started in this wait; 0 means not yet."""
    worker: str = ""
    is_cancel_requested: bool = False
    reply_key: str = ""
    payload: bytes | None = None
    """Another payload than the spec says, for the next attempt."""
    reply: bytes | None = None
    wait_until_ms: int = 0
    waiting_ms: int = 0
    """Since when it waits for a reply."""
    is_done_on_reply: bool = False
    errors: tuple[JobError, ...] = ()
    charge: int = 0
    """What its start has moved its tenant's clock by."""
    level: int = 0
    """Its pass, where a comparison fixes passes at enqueue."""
    # In memory only: where it stands right now.
    turn: "Turn | None" = None
    """Where it stands while it is ready."""
    tenancy: "Tenancy | None" = None
    """On whose account it runs while it is leased."""
    holds: tuple[Hold, ...] = ()
    """Units it has taken of each limit."""
    timer_ms: int = 0
    credit_ms: int = 0
    """Time that does not count against its promise, if it comes back unused."""
    shift_ms: int = 0
    """Held time of its queue, strand and tenant that passed before it was ready."""
    want: int = 0
    """What it adds to its tenant's want of slots, in millionths."""
    is_over: bool = False
    """It was started although its tenant was over its share."""
    ended_token: int = 0
    """The lease that has just ended, until history is told why."""
    is_continued: bool = False
    """This lease goes on with an attempt under way, after a reply."""
    is_cleared: bool = False
    """The queue's throttler has said that it may start."""

    def __lt__(self, other: object) -> bool:
        """Rows are ordered by their keys; only two rows of one job get as far as this."""
        return False


def check_spec(spec: JobSpec) -> None:
    """Refuses values that no queue could honour, naming the key."""
    # Spelled out: this runs for every job, and a loop over names costs ten times more.
    longest_ms = defaults.DURATION_MAX_MS
    if (value := spec.slo_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("slo_ms", value, 1, longest_ms)
    if (value := spec.run_at_ms) is not None and not 0 <= value <= defaults.TIME_MAX_MS:
        raise _outside("run_at_ms", value, 0, defaults.TIME_MAX_MS)
    if (value := spec.delay_ms) is not None and not 0 <= value <= longest_ms:
        raise _outside("delay_ms", value, 0, longest_ms)
    if (value := spec.timeout_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("timeout_ms", value, 1, longest_ms)
    if (value := spec.lifetime_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("lifetime_ms", value, 1, longest_ms)
    if (value := spec.result_ms) is not None and not 1 <= value <= longest_ms:
        raise _outside("result_ms", value, 1, longest_ms)
    most = defaults.COUNT_MAX
    if (value := spec.priority) is not None and not -most <= value <= most:
        raise _outside("priority", value, -most, most)
    if (value := spec.cost) is not None and not 0 <= value <= most:
        raise _outside("cost", value, 0, most)
    if (value := spec.attempts_max) is not None and not 1 <= value <= most:
        raise _outside("attempts_max", value, 1, most)
    least, heaviest = defaults.WEIGHT_MIN, defaults.WEIGHT_MAX
    if (weight := spec.weight) is not None and not least <= weight <= heaviest:
        raise _outside("weight", weight, least, heaviest)
    longest = defaults.NAME_LENGTH_MAX
    if len(spec.kind) > longest:
        raise BadValue("kind", spec.kind, f"at most {longest} characters")
    if len(spec.tenant) > longest:
        raise BadValue("tenant", spec.tenant, f"at most {longest} characters")
    if spec.labels is not None and len(spec.labels) > defaults.LABELS_MAX:
        raise BadValue("labels", spec.labels, f"at most {defaults.LABELS_MAX}")


def _outside(key: str, value: float, low: float, high: float) -> BadValue:
    return BadValue(key, value, f"must be from {low} to {high}")
