"""A body that is read by another one says what it would say on its own."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.job import Job
from headway.core.spec import JobSpec
from headway.runtime import alike
from headway.runtime.alike import Alike
from headway.runtime.records import encode, pack_body, unpack_job, unpack_rows


def job_of(spec: JobSpec, *, at_ms: int = 1_000, priority: int = 0) -> Job:
    job = Job(1, spec, "q", at_ms)
    job.slo_ms, job.priority, job.cost, job.attempts_max = 5_000, priority, 2, 3
    job.expires_ms = at_ms + 60_000
    return job


def told(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in dir(job) if name[0] != "_"}


def same_as_alone(bodies: list[bytes]) -> list[Job]:
    """What all of them say, after a look whether each says so on its own."""
    jobs = unpack_rows([(seq, 1, b"", 0, 0, None, x) for seq, x in enumerate(bodies)])
    for seq, body in enumerate(bodies):
        assert told(jobs[seq]) == told(unpack_job(seq, body, None))
    return jobs


@dataclass
class Reads:
    """Counts the bodies that are read as a whole."""

    bodies: list[bytes] = field(default_factory=list)

    def read(self, body: bytes) -> object:
        self.bodies.append(body)
        return REAL(body)


REAL = alike._decode_body


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    reads = Reads()
    monkeypatch.setattr(alike, "_decode_body", reads.read)
    return reads


SPEC = JobSpec(kind="mail", payload=b"x" * 40, tenant="acme", labels={"region": "east"})
LIKE = (
    [SPEC, SPEC],
    [JobSpec(payload=b"one"), JobSpec(payload=b"another"), JobSpec(payload=b"o" * 300)],
    [JobSpec(payload=b"a", tenant=name) for name in ("a", "bb", "ü" * 30, "t" * 200)],
    [JobSpec(kind="k", payload=b"1", is_json=True, tenant=name) for name in "abc"],
    [JobSpec(tenant="a"), JobSpec(tenant="a")],
)


@pytest.mark.interpreted
@pytest.mark.parametrize("specs", LIKE)
def test_what_differs_in_payload_and_tenant_is_read_once(
    specs: list[JobSpec], reads: Reads
) -> None:
    jobs = same_as_alone([pack_body(job_of(spec)) for spec in specs])
    assert [job.spec for job in jobs] == specs
    assert [job.tenant for job in jobs] == [spec.tenant for spec in specs]
    assert len(reads.bodies) == 1


UNLIKE = (
    [JobSpec(kind="a", payload=b"x"), JobSpec(kind="b", payload=b"x")],
    [JobSpec(payload=b"x"), JobSpec(payload=b"x", priority=3)],
    [JobSpec(payload=b"x"), JobSpec()],
    [JobSpec(payload=b"x" * 70_000), JobSpec(payload=b"y" * 70_000)],
    [JobSpec(payload=b"x"), JobSpec(payload=b"x", tenant="a")],
    [JobSpec(payload=b"x", tenant="a"), JobSpec(payload=b"x", tenant="b" * 300)],
    [JobSpec(payload=b"x", is_json=True), JobSpec(payload=b"x")],
)


@pytest.mark.interpreted
@pytest.mark.parametrize("specs", UNLIKE)
def test_what_differs_in_more_is_read_anew(specs: list[JobSpec], reads: Reads) -> None:
    jobs = same_as_alone([pack_body(job_of(spec)) for spec in specs])
    assert [job.spec for job in jobs] == specs
    assert len(reads.bodies) == len(specs)


def test_jobs_of_other_times_are_not_alike() -> None:
    bodies = [pack_body(job_of(SPEC, at_ms=at_ms)) for at_ms in (1, 2, 3)]
    assert [job.enqueued_ms for job in same_as_alone(bodies)] == [1, 2, 3]


def test_a_payload_that_looks_like_a_body_is_a_payload() -> None:
    inner = pack_body(job_of(JobSpec(kind="payload", payload=b"tenant", tenant="x")))
    specs = [JobSpec(payload=inner, tenant="a"), JobSpec(payload=inner * 2, tenant="b")]
    specs += [JobSpec(kind="payload", payload=encode("payload") + inner)] * 2
    jobs = same_as_alone([pack_body(job_of(spec)) for spec in specs])
    assert [job.spec for job in jobs] == specs


def test_a_body_that_ends_too_soon_is_refused() -> None:
    whole = pack_body(job_of(SPEC))
    for length in range(len(whole)):
        reader = Alike()
        reader.job(1, whole)
        with pytest.raises(
            ValueError, match=r"trailing|truncated|Expected|malformed|invalid"
        ):
            reader.job(2, whole[:length])


specs = st.builds(
    JobSpec,
    kind=st.sampled_from(["", "a", "payload"]),
    payload=st.binary(max_size=300),
    is_json=st.booleans(),
    tenant=st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    priority=st.sampled_from([None, 1]),
    labels=st.sampled_from([None, {"tenant": "x"}]),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(specs, st.sampled_from([1, 70_000])), max_size=12))
def test_any_bodies_say_what_they_say_alone(found: list[tuple[JobSpec, int]]) -> None:
    jobs = same_as_alone([pack_body(job_of(spec, at_ms=at)) for spec, at in found])
    assert [job.spec for job in jobs] == [spec for spec, _ in found]
