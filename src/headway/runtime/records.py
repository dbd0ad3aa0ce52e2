"""Jobs and history as bytes: what a store keeps, and back."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from headway.core.job import Job
from headway.core.states import READY, SCHEDULED, JobState
from headway.runtime.alike import Alike
from headway.runtime.forms import Body, Change, Chapter, Heading
from headway.store.port import Row

_STATES: Final = tuple(JobState)
_CODES: Final = {state: code for code, state in enumerate(_STATES)}


encode: Final = msgspec.msgpack.Encoder().encode
_decode_body: Final = msgspec.msgpack.Decoder(Body).decode
_decode_change: Final = msgspec.msgpack.Decoder(Change).decode
_decode_chapter: Final = msgspec.msgpack.Decoder(Chapter).decode
_decode_heading: Final = msgspec.msgpack.Decoder(Heading).decode
_decode_pair: Final = msgspec.msgpack.Decoder(tuple[str, str]).decode


def pack_body(job: Job) -> bytes:
    body: Body = (
        job.spec,
        job.queue,
        job.slo_ms,
        job.priority,
        job.run_at_ms,
        job.cost,
        job.attempts_max,
        job.enqueued_ms,
        job.expires_ms,
    )
    return encode(body)


def pack_change(job: Job, shift_ms: int = 0) -> bytes:
    """`shift_ms` is the job's own, but for what its strand was held."""
    change = Change(
        _CODES[job.state],
        job.run_at_ms,
        job.expires_ms,
        job.generation,
        job.attempt,
        job.token,
        job.lease_until_ms,
        job.timeout_at_ms,
        job.timeout_left_ms,
        job.started_ms,
        job.worker,
        job.is_cancel_requested,
        job.credit_ms,
        shift_ms,
    )
    if job.reply_key:
        change.reply_key = job.reply_key
        change.wait_until_ms = job.wait_until_ms
        change.waiting_ms = job.waiting_ms
        change.is_done_on_reply = job.is_done_on_reply
        change.reply = job.reply
    if job.errors:
        change.errors = job.errors
    if job.payload is not None:
        change.payload = job.payload
    return encode(change)


def unpack_rows(rows: list[Row]) -> list[Job]:
    """Jobs as a store tells of them, in its order."""
    alike = Alike()
    jobs: list[Job] = []
    loose: Sequence[tuple[Any, ...]] = rows
    for row in loose:
        if row[5] is None:
            jobs.append(alike.job(row[0], row[6]))
        else:
            jobs.append(unpack_job(row[0], row[6], row[5]))
    return jobs


def unpack_job(seq: int, body_blob: bytes, change_blob: bytes | None) -> Job:
    """The job as it was written down."""
    (
        spec,
        queue,
        slo_ms,
        priority,
        run_at_ms,
        cost,
        attempts_max,
        enqueued_ms,
        expires_ms,
    ) = _decode_body(body_blob)
    job = Job(seq, spec, queue, enqueued_ms)
    job.slo_ms = slo_ms
    job.priority = priority
    job.run_at_ms = run_at_ms
    job.cost = cost
    job.attempts_max = attempts_max
    job.expires_ms = expires_ms
    if change_blob is None:
        # Enqueued, and nothing else: it was ready at once unless its time was to come.
        job.state = READY if run_at_ms <= enqueued_ms else SCHEDULED
        return job
    change = _decode_change(change_blob)
    job.state = _STATES[change.state]
    for name in _COPIED:
        setattr(job, name, getattr(change, name))
    return job


_COPIED: Final = tuple(name for name in Change.__struct_fields__ if name != "state")


def unpack_chapter(blob: bytes) -> Chapter:
    return _decode_chapter(blob)


def unpack_heading(blob: bytes) -> Heading:
    return _decode_heading(blob)


def died_ms(job: Job) -> int:
    """When a dead letter died: the first key of its place."""
    return job.errors[-1].at_ms if job.errors else 0


def place_of_dead(queue: str) -> bytes:
    """The turn that the dead letters of a queue are written to."""
    return queue.encode("utf-8", "surrogatepass")


def pack_name(queue: str, name: str) -> bytes:
    """The key of a fact."""
    return encode((queue, name))


def unpack_name(key: bytes) -> tuple[str, str]:
    return _decode_pair(key)
