"""Jobs and counts as others see them: values that no owner changes any more."""

import msgspec

from headway.core.book import Book
from headway.core.capacity import START_MS, Wanted
from headway.core.errors import RuleBroken
from headway.core.events import AnyEvent
from headway.core.job import Job
from headway.core.queue import Queue
from headway.core.spec import JobError, JobSpec
from headway.core.states import JobState
from headway.core.why import Why, why
from headway.runtime.measures import Measures


class LeasedJob(msgspec.Struct, frozen=True, array_like=True):
    """A job in the hands of a worker."""

    seq: int
    token: int
    """Proof of the lease: ack, nack, extend and release ask for it."""
    queue: str
    spec: JobSpec
    new_payload: bytes | None
    """Another payload than the spec says: an earlier attempt has left it."""
    attempt: int
    attempts_max: int
    lease_until_ms: int
    errors: tuple[JobError, ...] = ()
    reply: bytes | None = None
    """The answer that it waited for, if it goes on after a wait."""
    is_continued: bool = False
    """It goes on with an attempt under way: the reply has just come."""

    @property
    def payload(self) -> bytes:
        """The payload of this attempt."""
        return self.spec.payload if self.new_payload is None else self.new_payload


class Handed(msgspec.Struct, frozen=True):
    """The jobs that a lease was granted, most urgent first."""

    jobs: list[LeasedJob]


class JobView(msgspec.Struct, frozen=True):
    """A job as it stood after the last commit."""

    seq: int
    queue: str
    state: JobState
    spec: JobSpec
    slo_ms: int
    run_at_ms: int
    enqueued_ms: int
    expires_ms: int
    generation: int
    attempt: int
    attempts_max: int
    worker: str
    lease_until_ms: int
    reply_key: str
    is_cancel_requested: bool
    errors: tuple[JobError, ...]
    payload: bytes | None = None
    """Another payload than the spec says, for the next attempt."""
    priority: int = 0
    cost: int = 0
    started_ms: int = 0
    """When its newest attempt was begun, or went on after a wait; 0 means never."""
    timeout_at_ms: int = 0
    """When the attempt under way must have ended."""
    wait_until_ms: int = 0
    """Until when it waits for its reply."""


class QueueCounts(msgspec.Struct, frozen=True):
    """How many jobs of a queue are in which state."""

    ready: int
    scheduled: int
    leased: int
    waiting: int
    dead: int


class HistoryPage(msgspec.Struct, frozen=True):
    """What happened, from one event on."""

    first: int
    """Number of the first event; the next ones follow without gaps."""
    events: list[AnyEvent]

    @property
    def next(self) -> int:
        """Where to go on reading."""
        return self.first + len(self.events)


class ReadHistory(msgspec.Struct, eq=False):
    """Asks for history from an event on. Answered by a HistoryPage."""

    first: int = 1
    most_bytes: int = 1 << 20


class Follow(msgspec.Struct, eq=False):
    """A reader of history tells how far it is: what it has not read is kept.

    A position of None means that it reads no more. Answered by Changed(0) if it was cut
    off before, since it lagged too far, and has missed something; else by Changed(1).
    """

    reader: str
    position: int | None


class Show(msgspec.Struct, eq=False):
    """Asks for a job. Answered by a JobView."""

    seq: int


class Explain(msgspec.Struct, eq=False):
    """Asks why a job is not running. Answered by a Why."""

    seq: int


class Count(msgspec.Struct, eq=False):
    """Asks how many jobs a queue has in which state. Answered by QueueCounts."""

    queue: str


class Measure(msgspec.Struct, eq=False):
    """Asks for everything in numbers. Answered by Measures."""

    is_brief: bool = False
    """By a look at memory alone, and at few jobs of each lane: for those who ask often."""


class Autoscale(msgspec.Struct, eq=False):
    """Asks how many worker slots some queues want, or all. Answered by Wanted."""

    queues: tuple[str, ...] | None = None
    start_ms: int = START_MS
    """How long a new worker takes to be there."""
    is_brief: bool = False
    """As above."""


Query = Show | Explain | Count | ReadHistory | Follow | Measure | Autoscale
View = JobView | Why | QueueCounts | HistoryPage | Measures | Wanted | RuleBroken


def look(book: Book, query: Show | Explain | Count, now_ms: int) -> View:
    """Answers a query; nothing changes."""
    try:
        match query:
            case Show(seq=seq):
                return job_view(book.job(seq))
            case Explain(seq=seq):
                return why(book, seq, now_ms)
            case Count(queue=name):
                return counts_of(book.queue(name))
    except RuleBroken as error:
        return error


def counts_of(queue: Queue) -> QueueCounts:
    return QueueCounts(
        queue.ready, queue.scheduled, queue.leased, queue.waiting, queue.dead
    )


def job_view(job: Job) -> JobView:
    return JobView(
        job.seq,
        job.queue,
        job.state,
        job.spec,
        job.slo_ms,
        job.run_at_ms,
        job.enqueued_ms,
        job.expires_ms,
        job.generation,
        job.attempt,
        job.attempts_max,
        job.worker,
        job.lease_until_ms,
        job.reply_key,
        job.is_cancel_requested,
        job.errors,
        job.payload,
        job.priority,
        job.cost,
        job.started_ms,
        job.timeout_at_ms,
        job.wait_until_ms,
    )
