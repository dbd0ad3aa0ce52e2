"""What may be asked of a partition, and the answers it gives."""

from enum import StrEnum

import msgspec

from headway.core.bulk import EVERYTHING, BulkVerb, BulkView, Cursor, Filter
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.errors import RuleBroken
from headway.core.job import Job
from headway.core.results import Kept, Result
from headway.core.spec import JobSpec
from headway.core.write import WriteView


class Enqueue(msgspec.Struct, eq=False):
    """All of the jobs or none. Answered by Accepted."""

    queue: str
    specs: list[JobSpec]
    is_refusable: bool = False
    """Without room they are refused, even by a queue that would shed them."""


class Lease(msgspec.Struct, eq=False):
    """Up to `max` jobs, now or as soon as there is one. Answered by Granted."""

    worker: str = ""
    queues: tuple[str, ...] | None = None
    """None means: every queue."""
    max: int = 1
    lease_ms: int | None = None
    """None means: as each job's queue says."""
    wait_until_ms: int = 0
    """Until when an empty answer is held back..."""
    wait_ms: int = 0
    """...or for how long, for callers who do not know the partition's time."""


class Withdraw(msgspec.Struct, eq=False):
    """The caller of a waiting Lease is gone. Changed(0) says that it was answered."""

    lease: Lease


class Extend(msgspec.Struct, eq=False):
    """Answered by Settled, which also names the jobs that are to be cancelled."""

    tokens: list[int]
    lease_ms: int


class Ack(msgspec.Struct, eq=False):
    """The jobs are done. Answered by Settled."""

    tokens: list[int]
    results: dict[int, Result] = {}
    """By token, of jobs that were asked for theirs; of others they are dropped."""


class Nack(msgspec.Struct, eq=False):
    """The attempt failed: by the job's retry strategy, or as said here."""

    token: int
    error: str = ""
    retry_in_ms: int | None = None
    is_bury: bool = False
    payload: bytes | None = None
    """The payload of the next attempt, where it is to be another one."""
    is_unused: bool = False
    """The attempt was put off before it began: it does not count."""


class Release(msgspec.Struct, eq=False):
    """Back to ready at the head of its tenant, uncounted and uncharged."""

    tokens: list[int]


class Wait(msgspec.Struct, eq=False):
    """The leased job gives its worker back and waits for a reply."""

    token: int
    reply_key: str
    timeout_ms: int
    is_done_on_reply: bool = False


class Reply(msgspec.Struct, eq=False):
    """An answer from outside. Answered by a ReplyFate."""

    queue: str
    reply_key: str
    payload: bytes = b""


class Cancel(msgspec.Struct, eq=False):
    seq: int


class Redrive(msgspec.Struct, eq=False):
    seq: int
    payload: bytes | None = None
    """What its next attempts are given in place of what they were given so far."""


class Purge(msgspec.Struct, eq=False):
    """Cancels what is ready or scheduled in a queue, of one tenant or of all."""

    queue: str
    tenant: str | None = None


class StartBulk(msgspec.Struct, eq=False):
    """Does one thing to many jobs, page by page. Answered by a BulkView at once.

    A preview changes nothing, and is answered by a BulkPreview.
    """

    queue: str
    verb: BulkVerb
    filter: Filter = EVERYTHING
    rate_per_s: float | None = None
    """Jobs a second at most; None means: as fast as it goes beside the others."""
    is_preview: bool = False


class StopBulk(msgspec.Struct, eq=False):
    """What was done stays done. Answered by a BulkView."""

    id: int


class BulkPage(msgspec.Struct, eq=False):
    """Some of the jobs of a bulk operation, read from the store. Nobody is answered."""

    id: int
    seqs: list[int]
    missing: int
    """Jobs that were named and are not there, or not as it wants them."""
    cursor: Cursor | None
    is_end: bool


class WritePart(msgspec.Struct, frozen=True):
    """What a write has for one queue."""

    queue: str
    jobs: int
    least_slo_ms: int | None = None
    """The strictest SLO that any of them asks for."""


class PublishWrite(msgspec.Struct, eq=False):
    """Accepts all jobs of a write, which come later. Answered by a WriteView."""

    id: str
    digest: str
    parts: list[WritePart]
    series: str = ""
    number: int = 0
    """In a series, what is not above the last number was published before."""


class TakeIn(msgspec.Struct, eq=False):
    """The next jobs of a published write. Answered by a WriteView."""

    id: str
    first: int
    """How many jobs of the write come before these."""
    queue: str
    specs: list[JobSpec]


class Configure(msgspec.Struct, eq=False):
    """Makes the queue, or changes its rules under whatever backlog it has."""

    config: QueueConfig
    is_new_only: bool = False
    """A queue that is there already stays as it is."""


class Hold(StrEnum):
    """Who stopped a queue."""

    PAUSE = "pause"
    BLOCK = "block"


class SetHold(msgspec.Struct, eq=False):
    """Pause (the user's) or block (the operator's); both must be lifted."""

    queue: str
    hold: Hold
    is_on: bool


class SetTenant(msgspec.Struct, eq=False):
    """Rules for one tenant of a queue. None leaves a rule as it is."""

    queue: str
    tenant: str
    weight: float | None = None
    is_paused: bool | None = None
    cap: int | None = None
    """Units its jobs may hold at once; -1 lifts the cap."""


class SetKind(msgspec.Struct, eq=False):
    """Rules for one kind of a queue. None leaves a rule as it is."""

    queue: str
    kind: str
    cost: int | None = None
    is_paused: bool | None = None
    cap: int | None = None


class Verdict(StrEnum):
    START = "start"
    LATER = "later"
    REFUSE = "refuse"
    FAILED = "failed"  # there is none


class Judge(msgspec.Struct, eq=False):
    """What the queue's throttler says of a job it was asked about."""

    seq: int
    verdict: Verdict
    at_ms: int = 0
    """For LATER: when to ask again; for FAILED: the same, so that others have a turn."""
    text: str = ""


class PutSchedule(msgspec.Struct, eq=False):
    schedule: Schedule


class DropSchedule(msgspec.Struct, eq=False):
    queue: str
    name: str


class Tick(msgspec.Struct, eq=False):
    """Nothing but the passing of time."""


class Fetched(msgspec.Struct, eq=False):
    """What the store had of something that was to be read. Nobody is answered."""

    source: object
    """The turn, the lane or the scheduled jobs; None for jobs by their identity."""
    jobs: list[Job]
    is_end: bool = True
    """The store has no more of it."""
    names: list[bytes] = []
    """Of a lane: the turn of each job, under which it is written."""
    each: int = 0
    """Of a lane: how many jobs of a turn were asked for."""
    is_full: bool = False
    """Memory holds as many turns as it may."""


Command = (
    Enqueue
    | Lease
    | Withdraw
    | Extend
    | Ack
    | Nack
    | Release
    | Wait
    | Reply
    | Cancel
    | Redrive
    | Purge
    | StartBulk
    | StopBulk
    | BulkPage
    | PublishWrite
    | TakeIn
    | Configure
    | SetHold
    | SetTenant
    | SetKind
    | Judge
    | PutSchedule
    | DropSchedule
    | Tick
    | Fetched
)


class Accepted(msgspec.Struct, eq=False):
    """The jobs' identities, in the order of the specs."""

    seqs: list[int]
    duplicates: int = 0
    """How many of them were known by their idempotency key."""
    waits_ms: list[int | None] = []
    """How long each is expected to wait for its start; None where nothing is known."""
    shed: tuple[int, ...] = ()
    """Those for which there was no room: they are dead letters."""
    jobs: list[Job | None] = []
    """Those that are new, until it is known how long they wait; None for the others."""


class Granted(msgspec.Struct, eq=False):
    """The leased jobs, most urgent first; empty when the wait was over."""

    jobs: list[Job]


class Settled(msgspec.Struct, eq=False):
    """`stale` tokens changed nothing; `cancelled` are to be given up."""

    stale: list[int]
    cancelled: list[int]


class ReplyFate(StrEnum):
    RESOLVED = "resolved"
    EARLY = "early"
    REPEATED = "repeated"
    LATE = "late"


class Changed(msgspec.Struct, eq=False):
    """How many jobs a command moved."""

    count: int


Answer = (
    Accepted
    | Granted
    | Settled
    | ReplyFate
    | Changed
    | BulkView
    | WriteView
    | RuleBroken
)


class FactKind(StrEnum):
    """What a partition has to remember besides its jobs."""

    QUEUE = "queue"
    TENANT = "tenant"
    KIND = "kind"
    SCHEDULE = "schedule"
    REPLY = "reply"
    """An answer that came before its question."""
    ANSWER = "answer"
    """How the last wait for a reply key ended."""
    BULK = "bulk"
    """A bulk operation, and how far it is."""
    WRITE = "write"
    """A published write, and how far it was taken in."""


Fact = tuple[str, str, str]
"""Which fact: its kind, its queue, its name within the queue."""


class Decision(msgspec.Struct, eq=False):
    """What a batch of commands comes to: write the jobs, then give the answers."""

    answers: list[tuple[Command, Answer]]
    jobs: list[Job]
    """Every job that changed, once, as it now stands."""
    events: list[msgspec.Struct]
    asks: list[Job]
    """Jobs about which the throttler of their queue must be asked."""
    facts: dict[Fact, None] = {}
    """What else changed, apart from jobs."""
    moved: dict[int, Job] = {}
    """Jobs that stand elsewhere now, and are the same in everything else."""
    keys: list[tuple[str, str, int, bytes, int]] = []
    """Idempotency keys met for the first time: queue, key, seq, fingerprint, time."""
    results: list[Kept] = []
    """How jobs ended that were asked for their result."""
