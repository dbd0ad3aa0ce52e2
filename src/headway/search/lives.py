"""A job while a batch of events is played: what its row will be, and what it was."""

from typing import Any, Final

from headway.core.states import JobState
from headway.search.schema import CODES

Told = tuple[Any, ...]
"""An event, as history has it."""
Before = tuple[int, str, str, str, str, int]
"""What a row was: state, reply key, worker, reason, error, group."""

# Places of fields, which never move: new ones go to the end. First of all events,
AT_MS: Final = 1
# then of events of jobs.
SEQ: Final = 2
GENERATION: Final = 3
QUEUE: Final = 4
SLO_MS: Final = 5
TENANT: Final = 6
KIND: Final = 7

_LEASED: Final = CODES[JobState.LEASED]
_DONE: Final = CODES[JobState.DONE]


class Life:
    """One job."""

    __slots__ = (
        "attempt",
        "before",
        "changed",
        "changed_ms",
        "cost",
        "ended_ms",
        "enqueued_ms",
        "error",
        "generation",
        "group_id",
        "is_cancel_requested",
        "kind",
        "labels",
        "lease_until_ms",
        "priority",
        "queue",
        "reason",
        "reply_key",
        "run_at_ms",
        "seq",
        "slo_ms",
        "state",
        "tenant",
        "told",
        "worker",
    )

    def __init__(self, event: Told) -> None:
        """Of a job whose beginning is not known, until it is said to be enqueued."""
        # What only goes from the event to the row is never looked at: Any spares
        # compiled code the way from an object to a number and back.
        self.seq: Any = event[SEQ]
        self.queue: str = event[QUEUE]
        self.kind: Any = event[KIND]
        self.tenant: str = event[TENANT]
        self.slo_ms: Any = event[SLO_MS]
        self.priority: Any = 0
        self.cost: Any = 0
        self.enqueued_ms: Any = 0
        self.labels: bytes | None = None
        self.generation: Any = 0
        # Events that move no job are of leased ones.
        self.state = _LEASED
        self.changed = 0
        self.changed_ms: Any = 0
        self.run_at_ms: Any = 0
        self.ended_ms: Any = 0
        self.attempt: Any = 0
        self.lease_until_ms: Any = 0
        self.is_cancel_requested = 0
        self.reply_key = ""
        self.worker: str = ""
        self.reason = ""
        self.error = ""
        self.group_id = 0
        self.told: list[tuple[int, Any]] = []
        self.before: Before | None = None

    def row(self) -> tuple[Any, ...]:
        """In the order of the columns."""
        return (
            self.seq,
            self.queue,
            self.kind,
            self.tenant,
            self.slo_ms,
            self.priority,
            self.cost,
            self.enqueued_ms,
            self.labels,
            self.generation,
            self.state,
            self.changed,
            self.changed_ms,
            self.run_at_ms,
            self.ended_ms,
            self.attempt,
            self.lease_until_ms,
            self.is_cancel_requested,
            self.reply_key,
            self.worker,
            self.reason,
            self.error,
            self.group_id,
        )

    def plain_row(self) -> tuple[Any, ...]:
        """What jobs that are simply done differ in."""
        return (
            self.seq,
            self.queue,
            self.kind,
            self.tenant,
            self.slo_ms,
            self.priority,
            self.cost,
            self.enqueued_ms,
            self.changed,
            self.changed_ms,
            self.attempt,
            self.worker,
        )

    @property
    def is_plain(self) -> bool:
        """Done, without delay or failure on the way, and nothing more to say of it."""
        return (
            self.state == _DONE
            and not self.reason
            and self.labels is None
            and self.run_at_ms == self.enqueued_ms
            and self.ended_ms == self.changed_ms
            and not self.generation
            and not self.is_cancel_requested
            and not self.error
            and not self.group_id
            and not self.reply_key
            and not self.lease_until_ms
        )


def life_of(values: tuple[Any, ...]) -> Life:
    """A job that was there before, by its row."""
    (
        seq,
        queue,
        kind,
        tenant,
        slo_ms,
        priority,
        cost,
        enqueued_ms,
        labels,
        generation,
        state,
        changed,
        changed_ms,
        run_at_ms,
        ended_ms,
        attempt,
        lease_until_ms,
        is_cancel_requested,
        reply_key,
        worker,
        reason,
        error,
        group_id,
    ) = values
    life = Life(("", changed_ms, seq, generation, queue, slo_ms, tenant, kind))
    life.priority = priority
    life.cost = cost
    life.enqueued_ms = enqueued_ms
    life.labels = labels
    life.generation = generation
    life.state = state
    life.changed = changed
    life.changed_ms = changed_ms
    life.run_at_ms = run_at_ms
    life.ended_ms = ended_ms
    life.attempt = attempt
    life.lease_until_ms = lease_until_ms
    life.is_cancel_requested = is_cancel_requested
    life.reply_key = reply_key
    life.worker = worker
    life.reason = reason
    life.error = error
    life.group_id = group_id
    life.before = (state, reply_key, worker, reason, error, group_id)
    return life
