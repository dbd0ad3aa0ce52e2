"""The life of a job that fails, times out, expires, is cancelled or comes back."""

import pytest

from headway.core import events
from headway.core.commands import (
    Ack,
    Cancel,
    Command,
    Extend,
    Nack,
    Redrive,
    Release,
    Reply,
    Settled,
    Wait,
)
from headway.core.config import Concurrency, QueueConfig
from headway.core.defaults import ERRORS_KEPT
from headway.core.errors import LeaseLost, UnknownJob, WrongState
from headway.core.job import Job
from headway.core.retry import Delays, Fixed, GiveUp, WithPayload
from headway.core.spec import JobSpec
from headway.core.states import JobState
from tests.core.machine import MINUTE_MS, Machine

QUEUE = QueueConfig(name="q", retry=Fixed(1_000), attempts_max=3, lease_ms=30_000)


def leased(machine: Machine, spec: JobSpec | None = None) -> Job:
    if spec is not None:
        machine.put("q", spec)
    (job,) = machine.lease()
    return job


def test_attempts_are_counted_and_end() -> None:
    """Invariant 7: one more for each delivery, and never more than the most."""
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    for attempt in (1, 2, 3):
        assert job.attempt == attempt
        machine.ask(Nack(job.token, f"error {attempt}"))
        machine.pass_ms(1_000)
        if attempt < 3:
            leased(machine)
    assert job.state is JobState.DEAD
    assert [error.text for error in job.errors] == ["error 1", "error 2", "error 3"]


def test_retries_follow_the_jobs_own_strategy() -> None:
    """Invariant 20: not before the delay is over."""
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec(retry=Delays((5_000,))))
    machine.ask(Nack(job.token))
    machine.pass_ms(4_999)
    assert machine.starts() == []
    machine.pass_ms(1)
    assert leased(machine) is job
    machine.ask(Nack(job.token))
    assert job.state is JobState.DEAD


def test_a_retry_may_have_another_payload() -> None:
    machine = Machine(QUEUE)
    spec = JobSpec(payload=b"old", retry=WithPayload(b"new", Fixed(0)))
    job = leased(machine, spec)
    machine.ask(Nack(job.token))
    assert leased(machine).payload == b"new"
    machine.ask(Nack(job.token, retry_in_ms=0, payload=b"said"))
    assert leased(machine).payload == b"said"


def test_a_worker_may_bury_or_set_the_delay() -> None:
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    machine.ask(Nack(job.token, retry_in_ms=0))
    assert leased(machine) is job
    machine.ask(Nack(job.token, is_bury=True))
    assert job.state is JobState.DEAD


def test_a_lost_lease_counts_and_gives_the_job_to_another() -> None:
    """Invariants 7 and 8; P7: at once when the lease is over."""
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    old = job.token
    machine.pass_ms(30_000)
    assert leased(machine).attempt == 2
    assert job.token != old
    answer = machine.ask(Ack([old]))
    assert isinstance(answer, Settled)
    assert answer.stale == [old]
    assert job.state is JobState.LEASED


def test_a_job_that_kills_its_workers_is_buried() -> None:
    """Invariant 7: lost leases use attempts up, too."""
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    machine.pass_ms(30_000)
    leased(machine)
    machine.pass_ms(30_000)
    leased(machine)
    machine.pass_ms(30_000)
    assert job.state is JobState.DEAD
    assert [error.reason for error in job.errors] == ["lease lost"] * 3


def test_heartbeats_keep_a_lease_but_not_beyond_the_timeout() -> None:
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec(timeout_ms=100_000))
    token = job.token
    for _ in range(4):
        machine.pass_ms(20_000)
        machine.ask(Extend([token], 30_000))
    assert job.token == token
    machine.pass_ms(20_000)
    assert job.state is JobState.SCHEDULED
    assert [error.reason for error in job.errors] == ["timed out"]


def test_an_extension_never_makes_a_lease_shorter() -> None:
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    until_ms = job.lease_until_ms
    machine.ask(Extend([job.token], 1))
    assert job.lease_until_ms == until_ms


def test_a_release_is_not_counted() -> None:
    """Invariant 7."""
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    for _ in range(10):
        machine.ask(Release([job.token]))
        assert leased(machine).attempt == 1


def test_the_timeout_counts_leased_and_waiting_time_of_one_attempt() -> None:
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec(timeout_ms=10_000))
    machine.pass_ms(4_000)
    machine.ask(Wait(job.token, "k", 60_000))
    machine.pass_ms(4_000)
    machine.ask(Reply("q", "k"))
    machine.pass_ms(50_000)
    leased(machine)
    machine.pass_ms(1_999)
    assert job.state is JobState.LEASED
    machine.pass_ms(1)
    assert [error.reason for error in job.errors] == ["timed out"]


@pytest.mark.parametrize("state", ["scheduled", "ready", "leased", "waiting"])
def test_a_lifetime_ends_in_every_state(state: str) -> None:
    """Invariants 4 and 29."""
    machine = Machine(QUEUE)
    run_at_ms = machine.now_ms + 900_000 if state == "scheduled" else None
    machine.put("q", JobSpec(lifetime_ms=20_000, run_at_ms=run_at_ms))
    job = machine.partition.book.jobs[1]
    if state in ("leased", "waiting"):
        leased(machine)
    if state == "waiting":
        machine.ask(Wait(job.token, "k", 900_000))
    assert job.state == state
    machine.pass_ms(20_000)
    assert job.state is JobState.DEAD
    assert job.errors[-1].reason == "expired"
    assert job.token == 0


@pytest.mark.parametrize("state", ["scheduled", "ready", "waiting"])
def test_a_cancel_takes_hold_at_once(state: str) -> None:
    """Invariant 4."""
    machine = Machine(QUEUE)
    run_at_ms = machine.now_ms + 900_000 if state == "scheduled" else None
    machine.put("q", JobSpec(run_at_ms=run_at_ms))
    job = machine.partition.book.jobs[1]
    if state == "waiting":
        leased(machine)
        machine.ask(Wait(job.token, "k", 900_000))
    machine.ask(Cancel(1))
    assert job.state is JobState.CANCELLED
    assert isinstance(machine.ask(Cancel(1)), UnknownJob)
    machine.pass_ms(1_000_000)
    assert machine.starts() == []


@pytest.mark.parametrize("word", ["ack", "nack", "release", "wait", "silence"])
def test_a_leased_job_is_cancelled_when_its_lease_ends(word: str) -> None:
    """Invariant 4: unless its work is done already; its units stay held till then."""
    config = QueueConfig(name="q", limits=(Concurrency("c", 1),), lease_ms=30_000)
    machine = Machine(config)
    job = leased(machine, JobSpec())
    machine.put("q", JobSpec())
    machine.ask(Cancel(1))
    assert job.token in machine.partition.book.leases
    assert machine.starts() == []
    answer = machine.ask(Extend([job.token], 1))
    assert isinstance(answer, Settled)
    assert answer.cancelled == [job.token]
    words: dict[str, Command] = {
        "ack": Ack([job.token]),
        "nack": Nack(job.token),
        "release": Release([job.token]),
        "wait": Wait(job.token, "k", 1_000),
    }
    if word == "silence":
        machine.pass_ms(30_000)
    else:
        machine.ask(words[word])
    assert job.state is (JobState.DONE if word == "ack" else JobState.CANCELLED)
    assert machine.starts() == [2]


def test_dead_letters_keep_all_they_have_and_come_back_whole() -> None:
    """Invariants 4 and 27: as a new generation, with fresh attempts."""
    machine = Machine(QUEUE)
    spec = JobSpec(payload=b"body", retry=GiveUp(), tenant="a", labels={"x": "y"})
    job = leased(machine, spec)
    machine.ask(Nack(job.token, "broken"))
    book = machine.partition.book
    assert book.jobs.values() == [job]
    assert (job.spec.payload, job.attempt) == (b"body", 1)
    assert [error.text for error in job.errors] == ["broken"]
    machine.pass_ms(20 * 24 * 60 * MINUTE_MS)
    machine.ask(Redrive(1))
    assert (job.state, job.generation) == (JobState.READY, 1)
    assert book.queues["q"].dead == 0
    assert leased(machine).attempt == 1
    assert [error.text for error in job.errors] == ["broken"]
    machine.ask(Ack([job.token]))
    assert job.state is JobState.DONE


def test_only_the_dead_are_redriven() -> None:
    """Invariant 4."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    assert isinstance(machine.ask(Redrive(1)), WrongState)
    assert isinstance(machine.ask(Redrive(2)), UnknownJob)


def test_redriving_many_preserves_their_count() -> None:
    """Invariant 27."""
    machine = Machine(QUEUE)
    machine.put("q", *[JobSpec(retry=GiveUp(), payload=bytes([n])) for n in range(50)])
    for job in machine.lease(50):
        machine.ask(Nack(job.token))
    machine.decide(*(Redrive(seq) for seq in range(1, 51)))
    jobs = machine.run(100)
    assert sorted(job.spec.payload[0] for job in jobs) == list(range(50))


def test_a_stale_token_changes_nothing() -> None:
    """Invariant 9, for every verb that takes one."""
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    token = job.token
    machine.ask(Release([token]))
    leased(machine)
    for command in (Ack([token]), Release([token]), Extend([token], 90_000)):
        decision = machine.decide(command)
        assert (decision.jobs, decision.events) == ([], [])
    for refused in (Nack(token), Wait(token, "k", 1_000)):
        decision = machine.decide(refused)
        assert (decision.jobs, decision.events) == ([], [])
        assert isinstance(decision.answers[0][1], LeaseLost)


def test_the_first_error_and_the_newest_are_kept() -> None:
    """Invariant 27, within bounds."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(attempts_max=40))
    for number in range(40):
        job = leased(machine)
        machine.ask(Nack(job.token, f"{number}", retry_in_ms=0))
    texts = [error.text for error in job.errors]
    assert len(texts) == ERRORS_KEPT
    assert (texts[0], texts[-1]) == ("0", "39")


def test_run_times_are_told_with_the_end() -> None:
    machine = Machine(QUEUE)
    job = leased(machine, JobSpec())
    machine.pass_ms(1_234)
    machine.ask(Ack([job.token]))
    acked = [event for event in machine.events if isinstance(event, events.Acked)]
    assert [event.run_ms for event in acked] == [1_234]
