"""What a job leaves for whoever asked for it: its result, or what became of it.

A job that asks for none leaves nothing, and pays nothing.
"""

from typing import Final

import msgspec

from headway.core import defaults
from headway.core.job import Job
from headway.core.states import JobState

_encode: Final = msgspec.msgpack.Encoder().encode


class Result(msgspec.Struct, frozen=True, gc=False):
    """What a worker brings with its ack."""

    value: bytes | None = None
    """JSON, but for a reply that is none."""
    problem: str = ""
    """Why there is no value, where the handler had one."""


class Outcome(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a job ended, as it is kept. New fields go to the end, with a default."""

    state: JobState
    queue: str
    ended_ms: int
    value: bytes | None = None
    problem: str = ""


NO_VALUE: Final = Result()
NOTHING: Final = Result(b"null")
"""The result of a job that was acked without one."""
Kept = tuple[int, int, bytes]
"""An outcome to be kept: the job's seq, until when, what."""
decode_outcome: Final = msgspec.msgpack.Decoder(Outcome).decode


def kept(job: Job, state: JobState, result: Result, now_ms: int) -> Kept:
    """How a job ended, for those who will ask."""
    keep_ms = job.spec.result_ms
    assert keep_ms is not None
    result = _bounded(result)
    outcome = Outcome(state, job.queue, now_ms, result.value, result.problem)
    return job.seq, now_ms + keep_ms, _encode(outcome)


def _bounded(result: Result) -> Result:
    """The result; or why it is not kept, since a job that is done must not fail."""
    size = 0 if result.value is None else len(result.value)
    if size > defaults.RESULT_BYTES_MAX:
        most = defaults.RESULT_BYTES_MAX
        return Result(None, f"the result has {size} bytes; {most} may be kept")
    if len(result.problem) > defaults.RESULT_PROBLEM_MAX:
        return Result(None, result.problem[: defaults.RESULT_PROBLEM_MAX])
    return result
