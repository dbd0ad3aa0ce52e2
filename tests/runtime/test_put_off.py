"""An attempt that is put off before it began: uncounted, and kept over a restart."""

import pytest

from headway.core.commands import Cancel, Lease, Nack
from headway.runtime.views import Handed, LeasedJob
from tests.runtime.desk import Desk

LEASE_MS = 1_000


def lease(desk: Desk) -> list[LeasedJob]:
    handed = desk.ask(Lease(max=1, lease_ms=LEASE_MS))
    assert isinstance(handed, Handed)
    return handed.jobs


def lost_once(attempts: int) -> tuple[Desk, LeasedJob]:
    """A job whose first lease was lost, in its second one."""
    desk = Desk()
    desk.put(1, attempts_max=attempts, payload=b"old")
    assert lease(desk)[0].attempt == 1
    desk.now_ms += LEASE_MS
    (job,) = lease(desk)
    assert job.attempt == 2
    return desk, job


@pytest.mark.parametrize("delay_ms", [None, 0, 5_000])
def test_put_off_uses_no_attempt_and_survives_a_restart(delay_ms: int | None) -> None:
    desk, job = lost_once(attempts=2)
    desk.ask(Nack(job.token, "later", delay_ms, payload=b"new", is_unused=True))
    desk.open()
    if delay_ms:
        assert desk.counts().scheduled == 1
        desk.now_ms += delay_ms - 1
        assert lease(desk) == []
        desk.now_ms += 1
    (again,) = lease(desk)
    assert (again.attempt, again.payload) == (2, b"new")
    assert [(error.reason, error.attempt) for error in again.errors] == [
        ("lease lost", 1),
        ("put off", 1),
    ]
    assert desk.counts().dead == 0


def test_bury_goes_before_put_off() -> None:
    desk, job = lost_once(attempts=5)
    desk.ask(Nack(job.token, "never", None, is_bury=True, is_unused=True))
    assert desk.counts().dead == 1


def test_cancel_goes_before_put_off() -> None:
    desk, job = lost_once(attempts=5)
    desk.ask(Cancel(job.seq))
    desk.ask(Nack(job.token, "later", 5_000, is_unused=True))
    counts = desk.counts()
    assert (counts.scheduled, counts.ready, counts.dead) == (0, 0, 0)
