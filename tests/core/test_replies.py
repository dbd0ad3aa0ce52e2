"""Waiting for replies: a request resolves exactly once (P9, invariant 25)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import events
from headway.core.commands import (
    Ack,
    Cancel,
    Command,
    Lease,
    Reply,
    ReplyFate,
    Wait,
)
from headway.core.config import QueueConfig
from headway.core.errors import BadValue, RepliesFull, WrongState
from headway.core.job import Job
from headway.core.retry import GiveUp
from headway.core.spec import JobSpec
from headway.core.states import JobState
from tests.core.machine import Machine

QUEUE = QueueConfig(name="q", retry=GiveUp(), lease_ms=600_000)
KEYS = ("k1", "k2")


def waiting(machine: Machine, key: str = "k1", *, is_done: bool = False) -> Job:
    machine.put("q", JobSpec())
    (job,) = machine.lease()
    machine.ask(Wait(job.token, key, 10_000, is_done))
    return job


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "wait", "reply", "cancel", "time", "ack"]),
        st.integers(0, 3),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(steps=STEPS, is_done=st.booleans())
def test_every_wait_resolves_exactly_once(
    steps: list[tuple[str, int]], is_done: bool
) -> None:
    """Invariant 25 for any interleaving of wait, reply, timeout and cancel."""
    machine = Machine(QUEUE)
    book = machine.partition.book
    for verb, number in steps:
        key = KEYS[number % 2]
        leased = list(book.leases.values())
        command: Command | None = None
        match verb:
            case "put":
                machine.put("q", JobSpec())
                command = Lease()
            case "wait" if leased:
                job = leased[number % len(leased)]
                command = Wait(job.token, key, 5_000, is_done)
            case "reply":
                command = Reply("q", key, b"answer")
            case "cancel" if book.jobs:
                command = Cancel(list(book.jobs)[number % len(book.jobs)])
            case "ack" if leased:
                command = Ack([leased[0].token])
            case _:
                machine.pass_ms(2_000 * number)
        if command is not None:
            machine.ask(command)
    check_resolutions(machine)


def check_resolutions(machine: Machine) -> None:
    """A wait ends by one reply, timeout, cancel or end of life, and by nothing else."""
    machine.pass_ms(20_000)
    open_waits: dict[int, events.Waited] = {}
    for event in machine.events:
        if isinstance(event, events.Waited):
            assert event.seq not in open_waits
            assert event.reply_key not in {w.reply_key for w in open_waits.values()}
            open_waits[event.seq] = event
        elif isinstance(event, events.Replied):
            waited = open_waits.pop(event.seq)
            assert waited.reply_key == event.reply_key
        elif isinstance(
            event, events.Buried | events.Retried | events.Cancelled | events.Expired
        ):
            open_waits.pop(event.seq, None)
        elif isinstance(event, events.Leased):
            assert event.seq not in open_waits
    assert open_waits == {}


def test_a_reply_lets_the_job_go_on_in_the_same_attempt() -> None:
    machine = Machine(QUEUE)
    job = waiting(machine)
    assert machine.ask(Reply("q", "k1", b"answer")) is ReplyFate.RESOLVED
    (again,) = machine.lease()
    assert (again.seq, again.reply, again.attempt) == (job.seq, b"answer", 1)


def test_a_reply_may_end_the_job() -> None:
    machine = Machine(QUEUE)
    job = waiting(machine, is_done=True)
    assert machine.ask(Reply("q", "k1")) is ReplyFate.RESOLVED
    assert job.state is JobState.DONE
    assert not machine.partition.book.jobs


def test_an_early_reply_is_kept_for_its_job_and_resolves_it_once() -> None:
    """The first one stands; the second was only a repetition."""
    machine = Machine(QUEUE)
    assert machine.ask(Reply("q", "k1", b"first")) is ReplyFate.EARLY
    assert machine.ask(Reply("q", "k1", b"second")) is ReplyFate.REPEATED
    job = waiting(machine)
    assert job.state is JobState.READY
    assert job.reply == b"first"
    assert machine.ask(Reply("q", "k1", b"third")) is not ReplyFate.RESOLVED
    assert job.reply == b"first"


def test_an_early_reply_is_kept_for_its_time_only() -> None:
    config = QueueConfig(name="q", early_reply_ms=1_000, early_replies_max=1)
    machine = Machine(config)
    machine.ask(Reply("q", "k1"))
    assert isinstance(machine.ask(Reply("q", "k2")), RepliesFull)
    machine.pass_ms(1_000)
    assert machine.ask(Reply("q", "k2")) is ReplyFate.EARLY
    assert waiting(machine).state is JobState.WAITING


@pytest.mark.parametrize("end", ["reply", "timeout", "cancel"])
def test_a_late_reply_changes_nothing(end: str) -> None:
    """Invariant 25."""
    machine = Machine(QUEUE)
    job = waiting(machine)
    match end:
        case "reply":
            machine.ask(Reply("q", "k1"))
        case "timeout":
            machine.pass_ms(10_000)
        case _:
            machine.ask(Cancel(job.seq))
    state = job.state
    decision = machine.decide(Reply("q", "k1", b"late"))
    assert decision.jobs == []
    assert all(isinstance(event, events.ReplyKept) for event in decision.events)
    assert decision.answers[0][1] in (ReplyFate.LATE, ReplyFate.REPEATED)
    assert job.state is state


def test_a_wait_without_a_reply_follows_the_retry_strategy() -> None:
    machine = Machine(QUEUE)
    job = waiting(machine)
    machine.pass_ms(10_000)
    assert job.state is JobState.DEAD
    assert [error.reason for error in job.errors] == ["no reply"]


def test_two_jobs_cannot_wait_for_one_key() -> None:
    """Invariant 25: a reply could only be for one of them."""
    machine = Machine(QUEUE)
    waiting(machine)
    machine.put("q", JobSpec())
    (job,) = machine.lease()
    assert isinstance(machine.ask(Wait(job.token, "k1", 1_000)), WrongState)
    assert job.state is JobState.LEASED


def test_queues_have_reply_keys_of_their_own() -> None:
    machine = Machine(QUEUE, QueueConfig(name="other"))
    waiting(machine)
    assert machine.ask(Reply("other", "k1")) is ReplyFate.EARLY


@pytest.mark.parametrize("key", ["", "x" * 1_025])
def test_a_reply_key_has_a_length(key: str) -> None:
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    (job,) = machine.lease()
    assert isinstance(machine.ask(Wait(job.token, key, 1_000)), BadValue)
    assert isinstance(machine.ask(Reply("q", key)), BadValue)
    assert job.state is JobState.LEASED
