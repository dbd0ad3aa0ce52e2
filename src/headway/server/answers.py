"""Answers to batches, written as they are sent, without a struct for each job.

The types in `wire` say what they look like. Jobs come by the ten thousand in a second, so
it may be compiled.
"""

from typing import Final

import msgspec
from msgspec.structs import astuple

from headway.core.commands import Accepted
from headway.core.spec import JobSpec
from headway.runtime.views import LeasedJob
from headway.server.ids import Ids
from headway.server.shapes import leased

_encode: Final = msgspec.json.Encoder().encode
_TOKEN: Final = len('{"token":"')


def accepted(got: Accepted, ids: Ids) -> bytes:
    """As `wire.jobs.Accepted`."""
    # It needs no escapes: a partition has letters, digits, dashes and underscores.
    prefix = ids.prefix
    known_ms: int | None = None
    wait = "null"
    told: list[str] = []
    for seq, wait_ms in zip(got.seqs, got.waits_ms, strict=True):
        if wait_ms != known_ms:
            known_ms = wait_ms
            wait = "null" if wait_ms is None else str(wait_ms)
        told.append(f'{{"id":"{prefix}{seq}","expected_wait_ms":{wait}}}')
    text = f'{{"jobs":[{",".join(told)}],"duplicates":{got.duplicates}'
    if got.shed:
        shed = ",".join([f'"{prefix}{seq}"' for seq in got.shed])
        text = f'{text},"shed":[{shed}]'
    return f"{text}}}".encode()


def leased_jobs(handed: list[LeasedJob], ids: Ids) -> bytes:
    """As `wire.work.LeasedJobs`."""
    told: list[bytes] = []
    queue = kind = tenant = ""
    attempt = attempts_max = until_ms = -1
    about = b""
    for job in handed:
        # All fields at one go: one after another they take far longer.
        fields = astuple(job)
        spec: JobSpec = fields[3]
        has_more = fields[8] or fields[9] is not None or fields[10]
        if has_more or fields[4] is not None or not _is_bare(spec):
            told.append(_encode(leased(job, ids)))
            continue
        is_alike = fields[2] == queue and spec.kind == kind and spec.tenant == tenant
        is_alike = is_alike and fields[5] == attempt and fields[6] == attempts_max
        if not is_alike or fields[7] != until_ms:
            # Jobs of one lease have most of it in common.
            queue, kind, tenant = fields[2], spec.kind, spec.tenant
            attempt, attempts_max, until_ms = fields[5], fields[6], fields[7]
            about = _about(job)
        proof = ids.delivery(fields[1], queue)
        begin = f'{{"id":"{ids.prefix}{fields[0]}","token":"{proof}.'
        told.append(b"".join((begin.encode(), about, spec.payload, b"}")))
    return b'{"jobs":[%b]}' % b",".join(told)


def _is_bare(spec: JobSpec) -> bool:
    """Whether of a job nothing is told but what is told of all."""
    is_bare = spec.is_json and spec.headers is None and spec.labels is None
    return is_bare and spec.result_ms is None


def _about(job: LeasedJob) -> bytes:
    """What stands between the proof in a job's token and its payload."""
    about = {
        "token": job.queue,
        "queue": job.queue,
        "kind": job.spec.kind,
        "tenant": job.spec.tenant,
        "attempt": job.attempt,
        "attempts_max": job.attempts_max,
        "lease_until_ms": job.lease_until_ms,
    }
    return _encode(about)[_TOKEN:-1] + b',"payload":'
