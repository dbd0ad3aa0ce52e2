"""An owner over a store that holds more than memory does."""

import pytest

from headway.core.bounds import Bounds
from headway.core.commands import (
    Cancel,
    Changed,
    Purge,
    Redrive,
)
from headway.core.errors import HistoryDropped, UnknownJob
from headway.runtime import journal
from headway.runtime.retention import Retention
from headway.runtime.views import (
    Follow,
    HistoryPage,
    JobView,
    QueueCounts,
    ReadHistory,
    Show,
)
from tests.runtime.desk import SMALL, Desk


def test_a_backlog_costs_disk_and_not_memory() -> None:
    """Invariant 17, and the order of a turn is that of its keys all the same."""
    desk = Desk()
    seqs = [seq for _ in range(10) for seq in desk.put(100)]
    assert len(desk.owner.partition.book.jobs) <= 2 * SMALL.jobs_max
    assert desk.counts().ready == 1_000
    assert [seq for _ in range(20) for seq in desk.lease(50)] == seqs
    assert desk.counts().ready == 0


def test_many_tenants_are_served_in_turn_from_the_store() -> None:
    """Invariant 23: nobody gets a second job before everybody got one."""
    desk = Desk()
    for _ in range(3):
        for tenant in range(50):
            desk.put(1, tenant=f"t{tenant:02}")
    desk.open()
    assert len(desk.owner.partition.book.jobs) <= 60
    tenants = {seq: (seq - 1) % 50 for seq in range(1, 151)}
    served = [tenants[seq] for _ in range(15) for seq in desk.lease(10)]
    assert sorted(served) == sorted([*range(50)] * 3)
    for start in (0, 50, 100):
        assert sorted(served[start : start + 50]) == list(range(50))


def test_a_job_written_to_a_turn_in_memory_starts_without_a_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    desk.lease(1)

    def refuse(*_: object) -> list[object]:
        raise AssertionError("the store was read")

    for method in ("rows", "turns", "jobs"):
        monkeypatch.setattr(desk.store, method, refuse)
    (seq,) = desk.put(1, tenant="a")
    assert desk.lease(1) == [seq]


def test_scheduled_jobs_are_in_memory_only_when_they_are_near() -> None:
    desk = Desk()
    late = desk.put(30, delay_ms=3_600_000)
    soon = desk.put(30, delay_ms=1_000)
    assert len(desk.owner.partition.book.jobs) <= SMALL.scheduled_max
    assert desk.counts().scheduled == 60
    desk.now_ms += 1_000
    assert sorted(desk.lease(60)) == soon
    desk.open()
    desk.now_ms += 3_600_000
    assert sorted(desk.lease(60)) == late


def test_a_purge_takes_what_memory_does_not_hold() -> None:
    desk = Desk()
    desk.put(300, tenant="a")
    desk.put(200, tenant="b")
    desk.put(50, tenant="a", delay_ms=60_000)
    changed = desk.ask(Purge("q", "a"))
    assert isinstance(changed, Changed)
    assert changed.count == 350
    assert desk.counts() == QueueCounts(200, 0, 0, 0, 0)
    changed = desk.ask(Purge("q"))
    assert isinstance(changed, Changed)
    assert changed.count == 200
    assert len(desk.disk.jobs) == 0


def test_jobs_that_are_only_in_the_store_are_found_by_name() -> None:
    desk = Desk()
    seqs = desk.put(200)
    shown = desk.ask(Show(seqs[150]))
    assert isinstance(shown, JobView)
    assert shown.seq == seqs[150]
    desk.ask(Cancel(seqs[150]))
    assert isinstance(desk.ask(Show(seqs[150])), UnknownJob)
    assert desk.counts().ready == 199
    assert isinstance(desk.ask(Redrive(10_000)), UnknownJob)


def test_idempotency_keys_are_forgotten_when_their_window_is_over() -> None:
    """The table does not grow for ever; a checkpoint sweeps it."""
    desk = Desk()
    desk.put(1, idempotency_key="old")
    desk.now_ms += 2 * 3_600_000
    for _ in range(journal.CHECKPOINT_COMMITS):
        desk.put(1)
    assert desk.disk.keys == {}


def test_history_can_be_read_from_any_event_on() -> None:
    desk = Desk()
    desk.put(10)
    desk.lease(4)
    page = desk.ask(ReadHistory())
    assert isinstance(page, HistoryPage)
    names = [type(event).__name__ for event in page.events]
    assert names == ["RuleChanged", *["Enqueued"] * 10, *["Leased"] * 4, *["Acked"] * 4]
    later = desk.ask(ReadHistory(first=14))
    assert isinstance(later, HistoryPage)
    assert later.events == page.events[13:]
    assert later.next == page.next == 20
    after = desk.ask(ReadHistory(first=20))
    assert isinstance(after, HistoryPage)
    assert after.events == []


def test_old_history_is_dropped_but_not_past_a_reader() -> None:
    """Across restarts, too; a reader that is asked for what is gone is told so."""
    desk = Desk(retention=Retention(age_ms=1_000))
    desk.ask(Follow("spark", 5))
    for _ in range(journal.CHECKPOINT_COMMITS):
        desk.put(1)
    desk.open()
    desk.now_ms += 10_000
    for _ in range(journal.CHECKPOINT_COMMITS):
        desk.put(1)
    page = desk.ask(ReadHistory(first=5))
    assert isinstance(page, HistoryPage)
    assert isinstance(desk.ask(ReadHistory(first=3)), HistoryDropped)
    assert page.events
    desk.ask(Follow("spark", None))
    desk.now_ms += 10_000
    for _ in range(journal.CHECKPOINT_COMMITS):
        desk.put(1)
    assert isinstance(desk.ask(ReadHistory(first=5)), HistoryDropped)
    assert desk.counts().ready == 3 * journal.CHECKPOINT_COMMITS
    desk.open()
    assert desk.counts().ready == 3 * journal.CHECKPOINT_COMMITS


def test_tenants_that_only_enqueue_do_not_fill_memory() -> None:
    """What nobody asks for is not read, however many turns the store holds."""
    desk = Desk()
    for tenant in range(300):
        desk.put(1, tenant=f"t{tenant}")
    assert len(desk.owner.partition.book.jobs) <= 2 * SMALL.jobs_max
    assert sum(len(desk.lease(50)) for _ in range(6)) == 300


def test_keys_that_memory_has_no_room_for_are_looked_up() -> None:
    desk = Desk(Bounds(keys_max=2))
    seqs = [desk.put(1, idempotency_key=f"k{n}")[0] for n in range(10)]
    assert [desk.put(1, idempotency_key=f"k{n}")[0] for n in range(10)] == seqs
    keys = desk.owner.partition.book.queues["q"].keys
    assert sum(keys.holds(f"k{n}") for n in range(10)) <= 2
