"""Between the wire and the core: bodies become specs, jobs become bodies."""

from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from datetime import datetime
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import astuple

from headway.core import defaults
from headway.core import retry as core_retry
from headway.core.durations import parse_ms
from headway.core.errors import BadValue
from headway.core.spec import JobError, JobSpec
from headway.core.states import JobState
from headway.core.windows import Window, WindowSet
from headway.runtime.results import Ended
from headway.runtime.views import JobView, LeasedJob
from headway.search.views import FoundJob
from headway.server.ids import Ids
from headway.wire import jobs, work
from headway.wire.values import PAYLOAD_MAX, Duration, Moment

_decode: Final = msgspec.json.Decoder().decode
_known_ms: Final[dict[str, int]] = {}
"""Durations as texts that were read of late: most jobs have the same few."""
_KNOWN_MAX: Final = 1_000
_USUAL: Final = 4
"""Fields of a job that come first, and which nearly all jobs have: up to its tenant."""
_AS_USUAL: Final = astuple(jobs.NewJob())[_USUAL:]


def spec_of(job: jobs.NewJob) -> JobSpec:
    """What the core is asked for."""
    # All of them at one go: one after another they take as long as all else here.
    fields = astuple(job)
    content = content_of(fields[1], fields[2])
    payload = b"null" if content is None else content
    is_json = fields[2] is None
    if fields[_USUAL:] == _AS_USUAL:
        return JobSpec(
            kind=fields[0], payload=payload, is_json=is_json, tenant=fields[3]
        )
    return JobSpec(
        kind=job.kind,
        payload=payload,
        is_json=is_json,
        tenant=job.tenant,
        slo_ms=ms_of(job.slo, "slo"),
        run_at_ms=None if job.run_at is None else moment_ms(job.run_at, "run_at"),
        delay_ms=ms_of(job.delay, "delay"),
        priority=job.priority,
        weight=job.weight,
        cost=job.cost,
        is_critical=job.critical,
        labels=job.labels,
        windows=None if job.windows is None else windows_of(job.windows),
        timeout_ms=ms_of(job.timeout, "timeout"),
        lifetime_ms=ms_of(job.lifetime, "lifetime"),
        attempts_max=job.attempts,
        retry=None if job.retry is None else retry_of(job.retry),
        idempotency_key=job.idempotency_key,
        headers=job.headers,
        result_ms=ms_of(job.result, "result"),
    )


def ms_of(value: Duration | None, key: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, int):
        return parse_ms(value, key)
    known_ms = _known_ms.get(value)
    if known_ms is None:
        known_ms = parse_ms(value, key)
        if len(_known_ms) >= _KNOWN_MAX:
            _known_ms.clear()
        _known_ms[value] = known_ms
    return known_ms


def moment_ms(value: Moment, key: str) -> int:
    """Milliseconds since 1970 of a number or a date."""
    if isinstance(value, int):
        return value
    try:
        found = datetime.fromisoformat(value.upper().replace(" ", "T"))
        at_ms = round(found.timestamp() * 1_000)
    except (ValueError, OverflowError) as error:
        raise BadValue(key, value, "no such date") from error
    if at_ms < 0:
        raise BadValue(key, value, "before 1970")
    if at_ms > defaults.TIME_MAX_MS:
        raise BadValue(key, value, "after the year 9999")
    return at_ms


def windows_of(windows: list[jobs.Window]) -> WindowSet:
    return WindowSet(tuple(Window.parse(one.span, one.zone) for one in windows))


def retry_of(retry: jobs.Retry) -> core_retry.Retry:
    match retry:
        case jobs.FixedRetry():
            return core_retry.Fixed(parse_ms(retry.delay, "retry.delay"))
        case jobs.ExponentialRetry():
            return core_retry.Exponential(
                parse_ms(retry.first, "retry.first"),
                parse_ms(retry.max, "retry.max"),
                retry.factor,
                retry.jitter,
            )
        case jobs.DelaysRetry():
            delays = (parse_ms(delay, "retry.delays") for delay in retry.delays)
            return core_retry.Delays(tuple(delays))
        case jobs.NoRetry():
            return core_retry.GiveUp()


def bytes_of(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (BadBase64, ValueError) as error:
        raise BadValue("payload_base64", text, "is no base64") from error


def content_of(payload: Raw | UnsetType, payload_base64: str | None) -> bytes | None:
    """The bytes of a body's payload; None if it has none."""
    if payload_base64 is not None:
        content = bytes_of(payload_base64)
    elif payload is UNSET:
        return None
    else:
        content = bytes(payload)
    if len(content) > PAYLOAD_MAX:
        raise BadValue("payload", len(content), f"at most {PAYLOAD_MAX} bytes")
    return content


def leased(job: LeasedJob, ids: Ids) -> work.Leased:
    """A job as its worker gets it."""
    spec = job.spec
    shown = work.Leased(
        id=ids.job(job.seq),
        token=ids.token(job.token, job.queue),
        queue=job.queue,
        kind=spec.kind,
        tenant=spec.tenant,
        attempt=job.attempt,
        attempts_max=job.attempts_max,
        lease_until_ms=job.lease_until_ms,
    )
    payload = job.payload
    if (spec.is_json and job.new_payload is None) or is_json(payload):
        shown.payload = Raw(payload)
    else:
        shown.payload_base64 = b64encode(payload).decode()
    if job.reply is not None:
        if is_json(job.reply):
            shown.reply = Raw(job.reply)
        else:
            shown.reply_base64 = b64encode(job.reply).decode()
    if job.is_continued:
        shown.is_continued = True
    if spec.headers is not None:
        shown.headers = spec.headers
    if spec.labels is not None:
        shown.labels = spec.labels
    if job.errors:
        shown.errors = errors_of(job.errors)
    if spec.result_ms is not None:
        shown.wants_result = True
    return shown


def is_json(content: bytes) -> bool:
    try:
        _decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def errors_of(errors: tuple[JobError, ...]) -> list[jobs.FailedAttempt]:
    return [
        jobs.FailedAttempt(error.at_ms, error.attempt, error.reason, error.text)
        for error in errors
    ]


def shown(view: JobView, ids: Ids) -> jobs.JobShown:
    """A job as anybody may see it."""
    spec = view.spec
    found = jobs.JobShown(
        id=ids.job(view.seq),
        queue=view.queue,
        state=view.state.value,
        kind=spec.kind,
        tenant=spec.tenant,
        slo_ms=view.slo_ms,
        priority=view.priority,
        cost=view.cost,
        run_at_ms=view.run_at_ms,
        enqueued_ms=view.enqueued_ms,
        expires_ms=view.expires_ms,
        started_ms=view.started_ms or None,
        generation=view.generation,
        attempt=view.attempt,
        attempts_max=view.attempts_max,
        worker=view.worker,
        lease_until_ms=view.lease_until_ms or None,
        wait_until_ms=view.wait_until_ms or None,
        reply_key=view.reply_key or None,
        is_cancel_requested=view.is_cancel_requested,
        critical=spec.is_critical,
        labels=spec.labels,
        headers=spec.headers,
        errors=errors_of(view.errors),
    )
    if view.payload is not None:
        found.is_payload_changed = True
    payload = spec.payload if view.payload is None else view.payload
    if (spec.is_json and view.payload is None) or is_json(payload):
        found.payload = Raw(payload)
    else:
        found.payload_base64 = b64encode(payload).decode()
    return found


def ended(found: Ended, ids: Ids) -> jobs.ResultShown:
    """What became of a job."""
    told = jobs.ResultShown(
        id=ids.job(found.seq),
        state=found.state.value,
        problem=found.problem or None,
        ended_ms=found.ended_ms,
        kept_until_ms=found.until_ms,
    )
    if found.state is JobState.DEAD:
        told.errors = errors_of(found.errors)
    if found.value is not None:
        if is_json(found.value):
            told.value = Raw(found.value)
        else:
            told.value_base64 = b64encode(found.value).decode()
    return told


def shown_found(job: FoundJob, ids: Ids) -> jobs.JobShown:
    """A job as the index has it: without its payload."""
    return jobs.JobShown(
        id=ids.job(job.seq),
        queue=job.queue,
        state=job.state.value,
        kind=job.kind,
        tenant=job.tenant,
        slo_ms=job.slo_ms,
        priority=job.priority,
        cost=job.cost,
        run_at_ms=job.run_at_ms,
        enqueued_ms=job.enqueued_ms or 0,
        ended_ms=job.ended_ms,
        generation=job.generation,
        attempt=job.attempt,
        worker=job.worker,
        lease_until_ms=job.lease_until_ms,
        reply_key=job.reply_key or None,
        is_cancel_requested=job.is_cancel_requested,
        labels=job.labels or None,
        errors=(
            [jobs.FailedAttempt(job.changed_ms, job.attempt, job.reason, job.error)]
            if job.reason
            else []
        ),
    )
