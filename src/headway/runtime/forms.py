"""The forms in which jobs and history are written down."""

import msgspec

from headway.core.events import AnyEvent
from headway.core.spec import JobError, JobSpec

Body = tuple[JobSpec, str, int, int, int, int, int, int, int]
"""What a job was enqueued as, which never changes: its spec, queue, SLO, priority, when it
may run, cost, attempts, when it was enqueued and when it expires."""


class Change(msgspec.Struct, array_like=True, gc=False):
    """What has become of it since. New fields go to the end, with a default."""

    state: int
    run_at_ms: int
    expires_ms: int
    generation: int
    attempt: int
    token: int
    lease_until_ms: int
    timeout_at_ms: int
    timeout_left_ms: int
    started_ms: int
    worker: str
    is_cancel_requested: bool
    credit_ms: int
    shift_ms: int
    reply_key: str = ""
    wait_until_ms: int = 0
    is_done_on_reply: bool = False
    payload: bytes | None = None
    reply: bytes | None = None
    errors: tuple[JobError, ...] = ()
    waiting_ms: int = 0


class Counts(msgspec.Struct, array_like=True):
    """How many jobs of a queue are in which state."""

    ready: int
    scheduled: int
    leased: int
    waiting: int
    dead: int
    lanes: dict[int, int]
    """Ready jobs by the number of their lane, but for those that go on after a wait."""


class Chapter(msgspec.Struct, array_like=True):
    """One commit in history: what happened, and what it left."""

    last_seq: int
    """The newest identity that was given to a job."""
    counts: dict[str, Counts]
    """Of the queues that it touched."""
    events: list[AnyEvent]


class Heading(msgspec.Struct, array_like=True):
    """A chapter without its events: they are not even looked at."""

    last_seq: int
    counts: dict[str, Counts]
    events: msgspec.Raw
