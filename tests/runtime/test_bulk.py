"""Bulk operations: many jobs, page by page, beside everything else."""

from pathlib import Path

import pytest

from headway.core import bulk as bulk_records
from headway.core import events
from headway.core.bulk import BulkState, BulkVerb, BulkView, Filter
from headway.core.commands import (
    Ack,
    Changed,
    Configure,
    Enqueue,
    Lease,
    Purge,
    Release,
    SetKind,
    StartBulk,
    StopBulk,
    Wait,
)
from headway.core.commands import Reply as Answered
from headway.core.config import Concurrency, Order, QueueConfig
from headway.core.errors import TooManyBulks, UnknownBulk, UnknownQueue
from headway.core.spec import JobSpec
from headway.runtime import verify
from headway.runtime.bulk import BulkList, ListBulks
from headway.runtime.owner import Owner
from headway.runtime.service import ROWS_MAX
from headway.runtime.views import Handed, QueueCounts
from headway.store.sqlite.store import SqliteStore
from tests.runtime.bulking import (
    DISCARD,
    PURGE,
    REDRIVE,
    fill,
    finish,
    now,
    start,
)
from tests.runtime.desk import START_MS, Desk
from tests.runtime.written import FixedClock


def test_a_purge_goes_on_after_a_restart_and_loses_nothing() -> None:
    """Every page is one commit with its cursor; later jobs are not meant."""
    desk = Desk()
    fill(desk)
    view = start(desk, PURGE)
    assert (view.matched_total, view.done) == (1_500, 0)
    assert 0 < now(desk, view.id).done <= bulk_records.PAGE_JOBS
    later = [*desk.put(30, tenant="a"), *desk.put(20, tenant="z", delay_ms=5_000)]
    for _ in range(3):
        desk.open()
        desk.owner.step([], desk.now_ms)
    ended = finish(desk, view.id)
    assert (ended.state, ended.done, ended.failed) == ("finished", 1_500, 0)
    assert desk.counts() == QueueCounts(30, 20, 0, 0, 0)
    assert sorted(desk.disk.jobs) == later
    cancelled = [event.seq for event in desk.events(events.Cancelled)]
    assert sorted(cancelled) == list(range(1, 1_501))
    desk.now_ms += 5_000
    assert sorted(desk.lease(100)) == later


@pytest.mark.parametrize("verb", [PURGE, REDRIVE, DISCARD])
def test_a_restart_in_the_middle_leaves_a_store_that_is_right(
    verb: BulkVerb, tmp_path: Path
) -> None:
    """Invariants 14 and 18, by a recount of the file after every restart."""
    path = tmp_path / "jobs.db"
    desk = Desk()

    def reopen() -> None:
        desk.owner.close()
        assert verify.problems(path) == []
        desk.owner = Owner(SqliteStore(path), desk.bounds)
        desk.owner.take_over(FixedClock(desk.now_ms))

    desk.owner = Owner(SqliteStore(path), desk.bounds)
    desk.owner.take_over(FixedClock(desk.now_ms))
    desk.ask(Configure(QueueConfig(name="q")))
    if verb is PURGE:
        fill(desk)
    else:
        for tenant in ("a", "b"):
            desk.bury(600, tenant=tenant)
    view = start(desk, verb)
    for _ in range(3):
        desk.now_ms += 1
        desk.owner.step([], desk.now_ms)
        reopen()
    total = 1_500 if verb is PURGE else 1_200
    assert finish(desk, view.id).done == total
    reopen()
    ready = total if verb is REDRIVE else 0
    assert desk.counts() == QueueCounts(ready, 0, 0, 0, 0)
    assert now(desk, view.id).state is BulkState.FINISHED
    desk.owner.close()


def test_a_purge_of_one_tenant_leaves_the_others() -> None:
    desk = Desk()
    fill(desk)
    view = start(desk, PURGE, Filter(tenant="b"))
    assert view.matched_total is None
    assert finish(desk, view.id).done == 500
    assert desk.counts() == QueueCounts(880, 120, 0, 0, 0)
    seqs = {event.seq: event.tenant for event in desk.events(events.Enqueued)}
    assert {seqs[seq] for seq in desk.disk.jobs} == {"a", "c"}


def test_a_purge_finds_one_tenant_where_tenants_have_no_turns_of_their_own() -> None:
    """Also what was written when they had, and what a name with a zero byte hides."""
    desk = Desk()
    for tenant in ("a", "a\0b", ""):
        desk.put(20, tenant=tenant)
    desk.ask(Configure(QueueConfig(name="q", order=Order.TIME)))
    for tenant in ("a", "a\0b", ""):
        desk.put(20, tenant=tenant)
    for left, tenant in ((80, "a"), (40, "a\0b"), (0, "")):
        view = start(desk, PURGE, Filter(tenant=tenant))
        assert finish(desk, view.id).done == 40
        assert desk.counts().ready == left


def test_what_is_running_is_not_purged_but_what_goes_on_after_a_wait_is() -> None:
    desk = Desk()
    desk.put(3)
    handed = desk.ask(Lease(max=2))
    assert isinstance(handed, Handed)
    one, two = handed.jobs
    desk.ask(Wait(one.token, "key", 60_000))
    desk.ask(Answered("q", "key"))
    assert desk.counts() == QueueCounts(2, 0, 1, 0, 0)
    assert finish(desk, start(desk, PURGE).id).done == 2
    assert desk.counts() == QueueCounts(0, 0, 1, 0, 0)
    assert desk.ask(Ack([two.token]))
    assert desk.disk.jobs == {}


def test_jobs_that_move_behind_a_purge_are_met_all_the_same() -> None:
    """Promoted, sorted anew by other rules, leased and released: not one is left."""
    desk = Desk()
    desk.put(700, tenant="a", delay_ms=60_000, kind="mail")
    desk.put(700, tenant="b", kind="mail")
    desk.put(700, tenant="c", kind="sms")
    view = start(desk, PURGE)
    desk.owner.step([], desk.now_ms)
    handed = desk.ask(Lease(max=50))
    assert isinstance(handed, Handed)
    desk.now_ms += 60_000 - 31_000
    limits = (Concurrency("each", 1_000, per="kind"),)
    desk.ask(Configure(QueueConfig(name="q", limits=limits)))
    desk.ask(SetKind("q", "mail", is_paused=True))
    desk.now_ms += 31_000
    desk.ask(Release([job.token for job in handed.jobs]))
    ended = finish(desk, view.id)
    assert (ended.done, ended.failed) == (2_100, 0)
    assert desk.disk.jobs == {}
    assert desk.counts() == QueueCounts(0, 0, 0, 0, 0)


def test_a_purge_ends_although_jobs_keep_coming() -> None:
    desk = Desk()
    desk.put(2_000)
    view = start(desk, PURGE)
    came = 0
    while now(desk, view.id).state is BulkState.RUNNING:
        came += len(desk.put(600))
        assert came < 20_000, "it runs after what comes"
    assert now(desk, view.id).done == 2_000
    assert desk.counts().ready == came


def test_a_purge_gets_to_the_end_of_a_queue_that_grows_as_fast_as_it_may() -> None:
    """As many come with every step as one commit may hold."""
    desk = Desk()
    desk.put(1_500)
    view = start(desk, PURGE)
    for _ in range(12):
        desk.put(ROWS_MAX)
    assert now(desk, view.id).state is BulkState.FINISHED
    assert now(desk, view.id).done == 1_500


def test_others_are_served_between_pages() -> None:
    desk = Desk()
    desk.ask(Configure(QueueConfig(name="other")))
    desk.put(3_000)
    view = start(desk, PURGE)
    for _ in range(4):
        before = now(desk, view.id)
        asks = (Enqueue("other", [JobSpec()]), Lease(queues=("other",)))
        answers = dict(desk.owner.step(asks, desk.now_ms))
        handed = answers[asks[1]]
        assert isinstance(handed, Handed)
        assert len(handed.jobs) == 1
        after = now(desk, view.id)
        assert after.state is BulkState.RUNNING
        assert after.done - before.done == bulk_records.PAGE_JOBS


def test_a_blocking_purge_is_answered_when_all_is_purged() -> None:
    desk = Desk()
    desk.put(2_000)
    ask = Purge("q")
    assert desk.owner.step([ask], desk.now_ms) == []
    assert 0 < desk.counts().ready < 2_000
    answers: dict[object, object] = {}
    while ask not in answers:
        answers = dict(desk.owner.step([], desk.now_ms))
    changed = answers[ask]
    assert isinstance(changed, Changed)
    assert changed.count == 2_000
    assert isinstance(desk.ask(Purge("nowhere")), UnknownQueue)


@pytest.mark.parametrize("rate_per_s", [0.5, 3.0, 250.0, 4_000.0, 50_000.0])
def test_a_rate_is_kept(rate_per_s: float) -> None:
    """At every moment no more was done than the rate allows, and not much less."""
    desk = Desk()
    count = 2 if rate_per_s < 1 else 2_000 if rate_per_s > 100 else 30
    desk.put(count)
    view = desk.ask(StartBulk("q", PURGE, rate_per_s=rate_per_s))
    assert isinstance(view, BulkView)
    first = bulk_records.Bulk(
        1, "q", PURGE, Filter(), rate_per_s, 0, 0, None
    ).page_jobs()
    is_restarted = False
    while (at := now(desk, view.id)).state is BulkState.RUNNING:
        passed_s = (desk.now_ms - START_MS) / 1_000
        assert at.done <= rate_per_s * passed_s + first
        next_ms = desk.owner.next_ms()
        assert next_ms is not None
        assert next_ms <= desk.now_ms + 1_000 * max(1, first / rate_per_s) + 1
        desk.now_ms = max(desk.now_ms, next_ms)
        if at.done * 2 > count and not is_restarted:
            desk.open()
            is_restarted = True
        desk.owner.step([], desk.now_ms)
    assert at.done == count
    took_s = (desk.now_ms - START_MS) / 1_000
    assert took_s >= (count - first) / rate_per_s - 0.002
    assert took_s <= 1.2 * count / rate_per_s + 0.01


def test_two_at_once_take_turns() -> None:
    desk = Desk()
    desk.bury(1_600)
    desk.put(1_600)
    first, second = start(desk, DISCARD), start(desk, PURGE)
    for _ in range(4):
        desk.now_ms += 1
        desk.owner.step([], desk.now_ms)
    assert now(desk, first.id).done > 0
    assert now(desk, second.id).done > 0
    assert finish(desk, first.id).done == finish(desk, second.id).done == 1_600


def test_one_that_is_stopped_leaves_the_rest() -> None:
    desk = Desk()
    desk.put(2_000)
    view = start(desk, PURGE)
    stopped = desk.ask(StopBulk(view.id))
    assert isinstance(stopped, BulkView)
    assert (stopped.state, stopped.ended_ms) == (BulkState.STOPPED, desk.now_ms)
    assert 0 < stopped.done < 2_000
    desk.now_ms += 60_000
    desk.open()
    assert desk.counts().ready == 2_000 - stopped.done
    assert desk.ask(StopBulk(view.id)) == stopped
    assert isinstance(desk.ask(StopBulk(77)), UnknownBulk)


def test_the_newest_that_have_ended_are_kept() -> None:
    """And no number is given twice, over restarts as well."""
    desk = Desk()
    slow = desk.ask(StartBulk("q", REDRIVE, rate_per_s=0.001))
    assert isinstance(slow, BulkView)
    for number in range(2, 108):
        assert start(desk, PURGE).id == number
    desk.now_ms += 1
    desk.ask(StopBulk(slow.id))
    desk.open()
    listed = desk.ask(ListBulks())
    assert isinstance(listed, BulkList)
    assert [view.id for view in listed.bulks] == [*range(107, 8, -1), slow.id]
    assert start(desk, PURGE).id == 108


def test_no_more_than_so_many_run_at_once() -> None:
    desk = Desk()
    for _ in range(bulk_records.RUNNING_MAX):
        start(desk, DISCARD)
    assert isinstance(desk.ask(StartBulk("q", DISCARD)), TooManyBulks)
    desk.now_ms += 1
    desk.owner.step([], desk.now_ms)
    assert isinstance(desk.ask(StartBulk("q", DISCARD)), BulkView)


def test_whoever_waits_for_a_purge_that_is_stopped_is_told_what_it_took() -> None:
    desk = Desk()
    desk.put(1_000)
    purge, stop = Purge("q"), StopBulk(1)
    assert desk.owner.step([purge], desk.now_ms) == []
    answers = dict(desk.owner.step([stop], desk.now_ms))
    changed = answers[purge]
    assert isinstance(changed, Changed)
    assert 0 < changed.count < 1_000
    assert answers[stop] == now(desk, 1)
    assert desk.counts().ready == 1_000 - changed.count
