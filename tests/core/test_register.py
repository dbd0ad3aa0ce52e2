"""The register of jobs: whatever comes and goes, it is a dictionary."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.job import Job
from headway.core.register import PLACES_MIN, LeaseRegister, Register
from headway.core.spec import JobSpec

SPEC = JobSpec()


def _job(seq: int, token: int = 0) -> Job:
    job = Job(seq, SPEC, "q", 0)
    job.token = token
    return job


NUMBERS = st.integers(1, 40) | st.integers(1, 1 << 40)
"""Close together, as mostly, and far apart."""
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "drop", "get"]), NUMBERS)
    | st.tuples(st.sampled_from(["add many", "drop many"]), st.integers(1, 300)),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS)
def test_any_history_matches_a_dictionary(steps: list[tuple[str, int]]) -> None:
    register = Register()
    model: dict[int, Job] = {}
    for verb, number in steps:
        if verb == "add" and number not in model:
            model[number] = _job(number)
            register.add(number, model[number])
        elif verb == "add many":
            for seq in range(number, 2 * number):
                if seq not in model:
                    model[seq] = _job(seq)
                    register.add(seq, model[seq])
        elif verb == "drop" and model:
            seq = sorted(model)[number % len(model)]
            register.drop(seq, model.pop(seq))
        elif verb == "drop many":
            for seq in sorted(model)[:number]:
                register.drop(seq, model.pop(seq))
        assert register.get(number) is model.get(number)
        assert (number in register) == (number in model)
        assert len(register) == len(model)
    assert register.items() == sorted(model.items())
    assert list(register) == sorted(model)
    assert register.values() == [model[number] for number in register]


def test_one_that_is_not_there_has_no_job() -> None:
    register = Register()
    with pytest.raises(KeyError):
        register[1]
    register.add(1, job := _job(1))
    assert register[1] is job
    with pytest.raises(KeyError):
        register.drop(1 + PLACES_MIN, _job(1 + PLACES_MIN))


def test_leases_are_known_by_their_tokens() -> None:
    leases = LeaseRegister()
    jobs = [_job(seq, token=1_000 - seq) for seq in range(1, 500)]
    for job in jobs:
        leases.add(job.token, job)
    assert all(leases.get(job.token) is job for job in jobs)
    assert leases.values() == jobs[::-1]
    for job in jobs:
        leases.drop(job.token, job)
    assert not leases


def test_numbers_in_a_row_never_share_a_place() -> None:
    """However many have gone before, and whatever the size is that it has grown to."""
    register = Register()
    for seq in range(1, 5_000):
        register.add(seq, _job(seq))
        if seq > 1_500:
            register.drop(seq - 1_500, register[seq - 1_500])
        assert not register._others


def test_room_is_given_back() -> None:
    register = Register()
    jobs = [_job(seq) for seq in range(1, 10_000)]
    for job in jobs:
        register.add(job.seq, job)
    for job in jobs[:-1]:
        register.drop(job.seq, job)
    assert len(register._places) <= 2 * PLACES_MIN
    assert register.values() == jobs[-1:]
