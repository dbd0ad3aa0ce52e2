"""Pause and block: nothing starts, nothing is lost, and held time is no waiting."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.commands import (
    Changed,
    Command,
    Hold,
    Lease,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

QUEUE = QueueConfig(name="q", lease_ms=600 * MINUTE_MS)


def pause(*, is_on: bool) -> SetHold:
    return SetHold("q", Hold.PAUSE, is_on)


def block(*, is_on: bool) -> SetHold:
    return SetHold("q", Hold.BLOCK, is_on)


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(Hold)))
@pytest.mark.parametrize("is_fifo", [False, True])
def test_pause_and_block_must_both_be_lifted(
    first: Hold, second: Hold, is_fifo: bool
) -> None:
    """Invariant 26, in all four orders of setting and lifting."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    for hold in (first, second):
        machine.ask(SetHold("q", hold, is_on=True))
        assert machine.starts() == []
    lifted = (first, second) if is_fifo else (second, first)
    machine.ask(SetHold("q", lifted[0], is_on=False))
    assert machine.starts() == []
    machine.ask(SetHold("q", lifted[1], is_on=False))
    assert machine.starts() == [1]


def test_nine_resumes_run_a_job_once() -> None:
    """Invariants 3 and 26."""
    machine = Machine(QUEUE)
    machine.ask(pause(is_on=True))
    machine.put("q", JobSpec())
    for number in range(9):
        answer = machine.ask(pause(is_on=False))
        assert isinstance(answer, Changed)
        assert answer.count == (number == 0)
    assert machine.starts() == [1]


def test_a_waiting_worker_gets_its_job_when_the_queue_resumes() -> None:
    """Invariant 29."""
    machine = Machine(QUEUE)
    machine.ask(block(is_on=True))
    machine.put("q", JobSpec())
    assert machine.ask(Lease(wait_until_ms=machine.now_ms + MINUTE_MS)) is None
    machine.ask(block(is_on=False))
    assert [event.seq for event in machine.leased()] == [1]


@pytest.mark.parametrize("of", ["queue", "tenant", "kind"])
def test_thousands_of_paused_jobs_all_come_back(of: str) -> None:
    """Invariants 1 and 29: more than any list of a thousand."""
    on: dict[str, Command] = {
        "queue": pause(is_on=True),
        "tenant": SetTenant("q", "a", is_paused=True),
        "kind": SetKind("q", "k", is_paused=True),
    }
    off: dict[str, Command] = {
        "queue": pause(is_on=False),
        "tenant": SetTenant("q", "a", is_paused=False),
        "kind": SetKind("q", "k", is_paused=False),
    }
    machine = Machine(QUEUE)
    machine.put("q", *specs(1_500, tenant="a", kind="k"))
    machine.ask(on[of])
    assert machine.starts() == []
    machine.put("q", *specs(1_500, tenant="a", kind="k"))
    machine.ask(off[of])
    assert sorted(machine.starts()) == list(range(1, 3_001))


def test_what_runs_goes_on_while_its_queue_is_held() -> None:
    """Invariant 26: a pause stops starts, not leases."""
    machine = Machine(QUEUE)
    machine.put("q", *specs(2))
    (job,) = machine.lease()
    machine.ask(pause(is_on=True))
    machine.pass_ms(MINUTE_MS)
    assert job.token in machine.partition.book.leases


def test_scheduled_jobs_become_ready_but_do_not_start_while_held() -> None:
    """Invariants 20 and 26."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(run_at_ms=machine.now_ms + 1_000))
    machine.ask(pause(is_on=True))
    machine.pass_ms(5_000)
    assert machine.starts() == []
    machine.ask(pause(is_on=False))
    machine.pass_ms(300)
    machine.lease()
    assert [(e.held_ms, e.wait_ms) for e in machine.leased()] == [(4_000, 300)]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["pause", "block", "tenant"]),
            st.booleans(),
            st.integers(0, 5_000),
        ),
        max_size=25,
    )
)
def test_held_time_is_told_apart_from_waiting(
    steps: list[tuple[str, bool, int]],
) -> None:
    """Nested holds count once: `held_ms` is the time for which any hold was on."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(tenant="a"))
    held: set[str] = set()
    held_ms = waited_ms = 0
    for what, is_on, after_ms in [*steps, ("end", False, 100)]:
        match what:
            case "pause":
                machine.ask(pause(is_on=is_on))
            case "block":
                machine.ask(block(is_on=is_on))
            case "tenant":
                machine.ask(SetTenant("q", "a", is_paused=is_on))
            case _:
                machine.ask(pause(is_on=False))
                machine.ask(block(is_on=False))
                machine.ask(SetTenant("q", "a", is_paused=False))
                held.clear()
        if is_on:
            held.add(what)
        else:
            held.discard(what)
        machine.pass_ms(after_ms)
        if held:
            held_ms += after_ms
        else:
            waited_ms += after_ms
    machine.lease()
    assert [(e.held_ms, e.wait_ms) for e in machine.leased()] == [(held_ms, waited_ms)]


def test_a_held_job_is_not_due_by_the_time_it_was_held() -> None:
    """After a long pause a fresh strict lane goes before one that was held."""
    machine = Machine(
        QueueConfig(name="q", slo_ms=10_000), QueueConfig(name="r", slo_ms=9_000)
    )
    machine.put("q", JobSpec())
    machine.ask(pause(is_on=True))
    machine.pass_ms(10 * MINUTE_MS)
    machine.ask(pause(is_on=False))
    machine.put("r", JobSpec())
    assert machine.starts() == [2, 1]


def test_a_closed_window_is_held_time() -> None:
    """Window open nine minutes of a day; the job was ready for four of them."""
    windows = WindowSet((Window(1, 10),))
    machine = Machine(QueueConfig(name="q", windows=windows))
    machine.pass_ms(6 * MINUTE_MS)
    machine.put("q", JobSpec())
    machine.pass_ms(4 * MINUTE_MS)
    assert machine.starts() == []
    machine.pass_ms(24 * 60 * MINUTE_MS - 9 * MINUTE_MS)
    assert machine.starts() == [1]
    (start,) = machine.leased()
    assert start.wait_ms == 4 * MINUTE_MS


def test_a_tenant_and_a_kind_resume_independently() -> None:
    """Invariant 26: both of a job's holds must be lifted."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec(tenant="a", kind="k"))
    machine.ask(SetTenant("q", "a", is_paused=True))
    machine.ask(SetKind("q", "k", is_paused=True))
    machine.ask(SetTenant("q", "a", is_paused=False))
    assert machine.starts() == []
    machine.ask(SetKind("q", "k", is_paused=False))
    assert machine.starts() == [1]
