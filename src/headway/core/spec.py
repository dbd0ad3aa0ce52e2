"""What a caller asks for, and why an attempt failed."""

import msgspec

from headway.core.retry import Retry
from headway.core.windows import WindowSet


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
