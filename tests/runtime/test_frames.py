"""What crosses the socket between processes that share an owner."""

from headway.core.spec import JobError, JobSpec
from headway.runtime import frames
from headway.runtime.views import Handed, LeasedJob

SPEC = JobSpec(kind="k", tenant="acme", payload=b'"' + b"x" * 500 + b'"', is_json=True)


def test_a_payload_crosses_once() -> None:
    handed = Handed([LeasedJob(7, 70, "q", SPEC, None, 1, 5, 99)])
    frame = frames.pack(1, handed)
    assert frame.count(SPEC.payload) == 1
    call, heard = frames.unpack(frame[frames.HEAD.size :])
    assert (call, heard) == (1, handed)
    assert heard.jobs[0].payload == SPEC.payload


def test_what_an_attempt_has_left_crosses_too() -> None:
    errors = (JobError(5, 1, "failed", "no"),)
    job = LeasedJob(7, 70, "q", SPEC, b"next", 2, 5, 99, errors, b"reply", True)
    frame = frames.pack(2, Handed([job]))
    _, heard = frames.unpack(frame[frames.HEAD.size :])
    assert heard.jobs == [job]
    assert heard.jobs[0].payload == b"next"
