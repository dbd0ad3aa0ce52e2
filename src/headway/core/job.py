"""A job: where it stands."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import astuple

from headway.core.spec import JobError, JobSpec
from headway.core.states import SCHEDULED, JobState

if TYPE_CHECKING:
    from headway.core.fairness import Tenancy
    from headway.core.part import Hold
    from headway.core.turn import Turn
    from headway.core.windows import WindowSet


class Job:
    """One piece of work. The owner of the partition is its only writer."""

    __slots__ = (
        "attempt",
        "attempts_max",
        "behind",
        "changed_in",
        "charge",
        "cleared_ms",
        "cost",
        "credit_ms",
        "ended_token",
        "enqueued_ms",
        "errors",
        "expires_ms",
        "first_key",
        "generation",
        "has_left_line",
        "holds",
        "is_cancel_requested",
        "is_continued",
        "is_critical",
        "is_done_on_reply",
        "is_in_line",
        "is_over",
        "kind",
        "lease_until_ms",
        "level",
        "payload",
        "priority",
        "queue",
        "reply",
        "reply_key",
        "result_ms",
        "run_at_ms",
        "second_key",
        "seq",
        "seq_place",
        "shift_ms",
        "slo_ms",
        "spec",
        "started_ms",
        "state",
        "tenancy",
        "tenant",
        "timeout_at_ms",
        "timeout_left_ms",
        "timeout_ms",
        "timer_ms",
        "timer_place",
        "token",
        "token_place",
        "turn",
        "wait_until_ms",
        "waiting_ms",
        "want",
        "windows",
        "worker",
    )

    # Compiled classes lie in memory as this writes them, and jobs that stand are in no
    # cache: first what is asked of whoever is next in line...
    turn: "Turn | None"
    """Where it stands while it is ready."""
    behind: "Job | None"
    """Who is next in the line of its turn."""
    run_at_ms: int
    """When it becomes or became ready; its promise counts from here."""
    shift_ms: int
    """Held time of its queue, strand and tenant that passed before it was ready."""
    cost: int
    is_in_line: bool
    """Whether it stands in that line, among those that came in order."""
    has_left_line: bool
    """It stands in a line still, where it counts no more."""
    is_critical: bool
    is_over: bool
    """It was started although its tenant was over its share."""
    is_continued: bool
    """This lease goes on with an attempt under way, after a reply."""
    is_cancel_requested: bool
    is_done_on_reply: bool
    # ...then what joins a line, and what every event says...
    seq: int
    """Its identity within the partition: given once, never reused."""
    first_key: int
    second_key: int
    """It stands in the order of these, and then of its seq."""
    priority: int
    slo_ms: int
    """The SLO class it was put in: its own, or the next stricter one."""
    timeout_left_ms: int
    """What a continuation has left of its attempt; 0 means that none is under way."""
    changed_in: int
    """The number of the decision that changed it last."""
    queue: str
    tenant: str
    kind: str
    state: JobState
    # ...what a start and an end ask for, some of it copied from the spec...
    holds: "tuple[Hold, ...]"
    """Units it has taken of each limit."""
    tenancy: "Tenancy | None"
    """On whose account it runs while it is leased."""
    token: int
    """The current lease; 0 means none."""
    attempt: int
    """Deliveries so far in this generation."""
    generation: int
    """Raised by every redrive."""
    worker: str
    started_ms: int
    """When it was last started in this wait; 0 means not yet."""
    lease_until_ms: int
    timeout_at_ms: int
    """End of the attempt while it is leased or waiting."""
    timeout_ms: int | None
    timer_ms: int
    timer_place: int
    """When its timer is due, and where it is among the timers."""
    seq_place: int
    token_place: int
    """Where it is in the registers of jobs and of leases; -1 if nowhere."""
    expires_ms: int
    credit_ms: int
    """Time that does not count against its promise, if it comes back unused."""
    want: int
    """What it adds to its tenant's want of slots, in millionths."""
    charge: int
    """What its start has moved its tenant's clock by."""
    ended_token: int
    """The lease that has just ended, until history is told why."""
    cleared_ms: int
    """Until when it holds that the queue's throttler lets it start; 0 if it does not."""
    level: int
    """Its pass, where a comparison fixes passes at enqueue."""
    result_ms: int | None
    # ...and last what most jobs never use.
    spec: JobSpec
    windows: "WindowSet | None"
    errors: tuple[JobError, ...]
    reply_key: str
    payload: bytes | None
    """Another payload than the spec says, for the next attempt."""
    reply: bytes | None
    attempts_max: int
    enqueued_ms: int
    wait_until_ms: int
    waiting_ms: int
    """Since when it waits for a reply."""

    def __init__(
        self,
        seq: int,
        spec: JobSpec,
        queue: str,
        enqueued_ms: int,
        said: tuple[Any, ...] = (),
    ) -> None:
        """`said` is what the spec says, in its order, if that is known already."""
        said = said or astuple(spec)
        self.kind = said[0]
        self.tenant = said[3]
        self.is_critical = said[10]
        self.windows = said[12]
        self.timeout_ms = said[13]
        self.result_ms = said[19]
        self.seq = seq
        self.spec = spec
        self.queue = queue
        self.slo_ms = 0
        self.priority = 0
        self.run_at_ms = enqueued_ms
        self.cost = 1
        self.attempts_max = 1
        self.enqueued_ms = enqueued_ms
        self.expires_ms = 0
        self.state = SCHEDULED
        self.generation = 0
        self.attempt = 0
        self.token = 0
        self.lease_until_ms = 0
        self.timeout_at_ms = 0
        self.timeout_left_ms = 0
        self.started_ms = 0
        self.worker = ""
        self.is_cancel_requested = False
        self.reply_key = ""
        self.payload = None
        self.reply = None
        self.wait_until_ms = self.waiting_ms = 0
        self.is_done_on_reply = False
        self.errors = ()
        self.charge = 0
        self.level = 0
        self.changed_in = 0
        self.turn = None
        self.first_key = self.second_key = 0
        self.is_in_line = False
        self.has_left_line = False
        self.behind = None
        self.tenancy = None
        self.holds = ()
        self.timer_ms = self.timer_place = 0
        self.seq_place = self.token_place = -1
        self.credit_ms = 0
        self.shift_ms = 0
        self.want = 0
        self.is_over = False
        self.ended_token = 0
        self.is_continued = False
        self.cleared_ms = 0

    def __hash__(self) -> int:
        """Said here: a compiled class that can be compared has none of its own."""
        return self.seq

    def __lt__(self, other: object) -> bool:
        """Rows are ordered by their keys; only two rows of one job get as far as this."""
        return False
