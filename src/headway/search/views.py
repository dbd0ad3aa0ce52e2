"""What is found, as values for others to show."""

import msgspec

from headway.core.events import AnyEvent
from headway.core.states import JobState
from headway.search.rows import CANCELLED, DONE, JobRow, decode_labels
from headway.search.schema import STATES


class IndexPlace(msgspec.Struct, frozen=True):
    """How far the index is: what happened later is not in what it answers."""

    next: int
    """The first event that is not indexed."""
    at_ms: int
    """When the last indexed event happened."""


class Gap(msgspec.Struct, frozen=True):
    """Events that were dropped before they were indexed."""

    first: int
    next: int
    """The first event after the gap."""
    at_ms: int
    """When the last event before it happened."""


class FoundJob(msgspec.Struct, frozen=True):
    """A job as the index has it; it may have ended long ago."""

    seq: int
    generation: int
    queue: str
    kind: str
    tenant: str
    state: JobState
    slo_ms: int
    priority: int
    cost: int
    labels: dict[str, str]
    enqueued_ms: int | None
    """None if that was before what the index knows; then priority, cost and labels are
    not known either."""
    run_at_ms: int
    changed_ms: int
    ended_ms: int | None
    attempt: int
    worker: str
    lease_until_ms: int | None
    reply_key: str
    reason: str
    error: str
    is_cancel_requested: bool
    is_doubtful: bool
    """It was open when history was missed: it may have changed without a trace."""


class Page(msgspec.Struct, frozen=True):
    """Some of what a search finds."""

    jobs: list[FoundJob]
    cursor: str | None
    """For the next page; None if this was the last."""
    place: IndexPlace


class Told(msgspec.Struct, frozen=True):
    """One thing that happened to a job."""

    number: int
    event: AnyEvent


class LaneCounts(msgspec.Struct, frozen=True):
    """Jobs of a queue and SLO, by state; states without jobs are left out."""

    slo_ms: int
    states: dict[JobState, int]


class TenantCounts(msgspec.Struct, frozen=True):
    tenant: str
    states: dict[JobState, int]


class DeadGroup(msgspec.Struct, frozen=True):
    """Dead letters that died of the same."""

    group: int
    reason: str
    line: str
    """First line of the error, with placeholders for what varies; empty if there was
    none, or if there are too many different ones."""
    count: int
    first_ms: int
    last_ms: int
    seq: int
    """The one that died last, as an example."""


def found(row: JobRow, gap: int) -> FoundJob:
    """`gap` is the first event after the newest gap."""
    is_open = row.state not in (DONE, CANCELLED)
    return FoundJob(
        seq=row.seq,
        generation=row.generation,
        queue=row.queue,
        kind=row.kind,
        tenant=row.tenant,
        state=STATES[row.state],
        slo_ms=row.slo_ms,
        priority=row.priority,
        cost=row.cost,
        labels={} if row.labels is None else decode_labels(row.labels),
        enqueued_ms=row.enqueued_ms or None,
        run_at_ms=row.run_at_ms,
        changed_ms=row.changed_ms,
        ended_ms=row.ended_ms or None,
        attempt=row.attempt,
        worker=row.worker,
        lease_until_ms=row.lease_until_ms or None,
        reply_key=row.reply_key,
        reason=row.reason,
        error=row.error,
        is_cancel_requested=bool(row.is_cancel_requested),
        is_doubtful=is_open and row.changed < gap,
    )
