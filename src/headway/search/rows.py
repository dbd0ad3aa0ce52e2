"""A job as the index has it, and what each event makes of it."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from headway.core import events
from headway.core.events import AnyEvent, Event
from headway.core.states import JobState
from headway.runtime.replay import TARGETS, target_of
from headway.search.schema import CODES

ERROR_BYTES_MAX: Final = 1_024
"""Of an error's text so much is kept."""
NEW_GROUP: Final = -1
"""A dead letter whose group is still to be found."""

encode: Final = msgspec.msgpack.Encoder().encode
decode_labels: Final = msgspec.msgpack.Decoder(dict[str, str]).decode
decode_told: Final = msgspec.msgpack.Decoder(list[tuple[int, AnyEvent]]).decode

_READY: Final = CODES[JobState.READY]
_LEASED: Final = CODES[JobState.LEASED]
DONE: Final = CODES[JobState.DONE]
DEAD: Final = CODES[JobState.DEAD]
CANCELLED: Final = CODES[JobState.CANCELLED]
ENDED: Final = (DONE, CANCELLED, DEAD)


class JobRow(msgspec.Struct, gc=False):
    """A row of the table of jobs, in the order of its columns."""

    seq: int
    queue: str
    kind: str
    tenant: str
    slo_ms: int
    priority: int
    cost: int
    enqueued_ms: int
    """0 if that was before what the index knows; nor are its labels known then."""
    labels: bytes | None
    generation: int = 0
    state: int = _READY
    changed: int = 0
    changed_ms: int = 0
    run_at_ms: int = 0
    ended_ms: int = 0
    attempt: int = 0
    lease_until_ms: int = 0
    is_cancel_requested: int = 0
    reply_key: str = ""
    worker: str = ""
    """Who had it last."""
    reason: str = ""
    error: str = ""
    group_id: int = 0


def new_row(event: events.Enqueued) -> JobRow:
    labels = event.labels
    return JobRow(
        event.seq,
        event.queue,
        event.kind,
        event.tenant,
        event.slo_ms,
        event.priority,
        event.cost,
        event.at_ms,
        encode(labels) if labels else None,
    )


def row_in_the_middle(event: Event) -> JobRow:
    """Of a job whose beginning is not known."""
    seq, queue, tenant = event.seq, event.queue, event.tenant
    row = JobRow(seq, queue, event.kind, tenant, event.slo_ms, 0, 0, 0, None)
    # Events that move no job are of leased ones.
    row.state = _LEASED
    return row


def move(row: JobRow, event: Any, number: int) -> None:
    """The event happens to the job."""
    kind = type(event)
    if kind is events.Extended:
        row.lease_until_ms = event.lease_until_ms
        if row.changed:
            # A sign of life is no change: or every heartbeat would move the job.
            return
    row.changed = number
    row.changed_ms = event.at_ms
    row.generation = event.generation
    target = _CODES.get(kind)
    if target is not None:
        row.state = target
        row.lease_until_ms = 0
        if row.reply_key:
            row.reply_key = ""
        row.ended_ms = event.at_ms if target in ENDED else 0
    more = _MORE.get(kind)
    if more is not None:
        more(row, event)


def _enqueued(row: JobRow, event: events.Enqueued) -> None:
    row.run_at_ms = event.run_at_ms
    row.state = CODES[target_of(event)]


def _rescheduled(row: JobRow, event: events.Rescheduled) -> None:
    row.run_at_ms = event.run_at_ms


def _leased(row: JobRow, event: events.Leased) -> None:
    row.attempt = event.attempt
    row.worker = event.worker
    row.lease_until_ms = event.lease_until_ms


def _retried(row: JobRow, event: events.Retried) -> None:
    row.attempt = event.attempt
    row.run_at_ms = event.run_at_ms
    row.reason = event.reason
    row.error = cut(event.text)


def _released(row: JobRow, event: events.Released) -> None:
    # Uncounted: the event still tells which attempt it would have been.
    row.attempt = event.attempt - 1


def _attempted(row: JobRow, event: events.Acked | events.Lost) -> None:
    row.attempt = event.attempt


def _waited(row: JobRow, event: events.Waited) -> None:
    row.attempt = event.attempt
    row.reply_key = event.reply_key


def _replied(row: JobRow, event: events.Replied) -> None:
    row.reply_key = ""
    row.state = CODES[target_of(event)]
    if event.is_done:
        row.ended_ms = event.at_ms
    else:
        row.run_at_ms = event.at_ms


def _cancel_requested(row: JobRow, event: events.CancelRequested) -> None:
    row.is_cancel_requested = 1


def _expired(row: JobRow, event: events.Expired) -> None:
    row.reason = "expired"
    row.error = ""
    row.group_id = NEW_GROUP


def _buried(row: JobRow, event: events.Buried) -> None:
    row.attempt = event.attempt
    row.reason = event.reason
    row.error = cut(event.text)
    row.group_id = NEW_GROUP


def _redriven(row: JobRow, event: events.Redriven) -> None:
    row.attempt = 0
    row.run_at_ms = event.at_ms
    row.is_cancel_requested = 0
    row.group_id = 0


def _discarded(row: JobRow, event: events.Discarded) -> None:
    row.group_id = 0


_CODES: Final = {kind: CODES[state] for kind, state in TARGETS.items()}
_MORE: Final[dict[type, Callable[[JobRow, Any], None]]] = {
    events.Enqueued: _enqueued,
    events.Rescheduled: _rescheduled,
    events.Leased: _leased,
    events.Acked: _attempted,
    events.Retried: _retried,
    events.Released: _released,
    events.Lost: _attempted,
    events.Waited: _waited,
    events.Replied: _replied,
    events.CancelRequested: _cancel_requested,
    events.Expired: _expired,
    events.Buried: _buried,
    events.Redriven: _redriven,
    events.Discarded: _discarded,
}


def cut(text: str) -> str:
    """As much of a text as is kept, in whole characters."""
    if len(text) <= ERROR_BYTES_MAX // 4:
        return text
    kept = text.encode("utf-8", "replace")[:ERROR_BYTES_MAX]
    return kept.decode("utf-8", "ignore")
