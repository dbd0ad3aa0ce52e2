"""Pause and block over a store: nothing starts, and all of it comes back once."""

import itertools

import pytest

from headway.core.commands import (
    Changed,
    Enqueue,
    Hold,
    Lease,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.spec import JobSpec
from headway.runtime.owner import Ask
from headway.runtime.views import Handed
from tests.runtime.desk import Desk


def hold(desk: Desk, which: Hold, *, is_on: bool) -> int:
    changed = desk.ask(SetHold("q", which, is_on))
    assert isinstance(changed, Changed)
    return changed.count


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(Hold)))
@pytest.mark.parametrize("is_fifo", [False, True])
def test_a_block_beats_a_resume_and_a_pause_an_unblock(
    first: Hold, second: Hold, is_fifo: bool, is_restarted: bool
) -> None:
    """Invariant 26, in all four orders, with a new owner after every step."""
    desk = Desk()

    def again() -> None:
        if is_restarted:
            desk.open()

    seqs = desk.put(3)
    for which in (first, second):
        hold(desk, which, is_on=True)
        again()
        assert desk.lease(5) == []
    lifted = (first, second) if is_fifo else (second, first)
    hold(desk, lifted[0], is_on=False)
    again()
    assert desk.lease(5) == []
    hold(desk, lifted[1], is_on=False)
    again()
    assert desk.lease(5) == seqs
    assert desk.lease(5) == []


@pytest.mark.parametrize("is_restarted", [False, True])
def test_nine_resumes_run_a_job_once(is_restarted: bool) -> None:
    """Invariants 3 and 26; a worker that waits is served by the first of them."""
    desk = Desk()
    hold(desk, Hold.PAUSE, is_on=True)
    (seq,) = desk.put(1)
    if is_restarted:
        desk.open()
    lease = Lease(max=5, wait_until_ms=desk.now_ms + 60_000)
    assert desk.owner.step([lease], desk.now_ms) == []
    resumes = [SetHold("q", Hold.PAUSE, is_on=False) for _ in range(9)]
    answers = dict(desk.owner.step(resumes[:5], desk.now_ms))
    answers |= dict(desk.owner.step(resumes[5:], desk.now_ms))
    handed = answers[lease]
    assert isinstance(handed, Handed)
    assert [job.seq for job in handed.jobs] == [seq]
    counts = [answers[resume] for resume in resumes]
    assert [told.count for told in counts if isinstance(told, Changed)] == [1, *[0] * 8]
    assert desk.lease(5) == []


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("of", ["queue", "blocked", "tenant", "kind"])
def test_thousands_of_held_jobs_all_come_back(of: str, is_restarted: bool) -> None:
    """More than memory holds, before and after: each of them starts exactly once."""
    desk = Desk()

    def set_hold(*, is_on: bool) -> None:
        match of:
            case "tenant":
                desk.ask(SetTenant("q", "a", is_paused=is_on))
            case "kind":
                desk.ask(SetKind("q", "mail", is_paused=is_on))
            case _:
                which = Hold.PAUSE if of == "queue" else Hold.BLOCK
                hold(desk, which, is_on=is_on)

    before = desk.put(1_100, tenant="a", kind="mail")
    set_hold(is_on=True)
    after = desk.put(1_100, tenant="a", kind="mail")
    assert desk.lease(100) == []
    if is_restarted:
        desk.open()
        assert desk.lease(100) == []
    set_hold(is_on=False)
    if is_restarted:
        desk.open()
    seen: list[int] = []
    while seqs := desk.lease(500):
        seen += seqs
    assert seen == [*before, *after]


def test_a_paused_queue_takes_jobs_and_a_resume_serves_who_waits_in_order() -> None:
    desk = Desk()
    hold(desk, Hold.PAUSE, is_on=True)
    leases = [Lease(wait_until_ms=desk.now_ms + 60_000) for _ in range(3)]
    asks: list[Ask] = [*leases, Enqueue("q", [JobSpec()] * 2)]
    answers = dict(desk.owner.step(asks, desk.now_ms))
    assert not set(leases) & set(answers)
    resume = SetHold("q", Hold.PAUSE, is_on=False)
    answers = dict(desk.owner.step([resume], desk.now_ms))
    handed = [answers[lease] for lease in leases[:2]]
    assert [told.jobs[0].seq for told in handed if isinstance(told, Handed)] == [1, 2]
    assert leases[2] not in answers
