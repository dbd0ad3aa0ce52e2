"""What operators see: queues, rules, schedules, what runs, and dead letters by page."""

import pytest

from headway.core.bulk import Filter
from headway.core.commands import (
    Configure,
    Hold,
    Lease,
    Nack,
    PutSchedule,
    SetHold,
    SetKind,
    SetTenant,
    Wait,
)
from headway.core.config import Concurrency, QueueConfig, Rate
from headway.core.cron import Schedule
from headway.core.errors import BadValue, UnknownQueue
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.runtime import frames, listing
from headway.runtime.listing import (
    DeadList,
    JobList,
    KindList,
    KindView,
    LimitView,
    ListDead,
    ListKinds,
    ListQueues,
    ListRunning,
    ListSchedules,
    ListTenants,
    QueueList,
    QueueView,
    ScheduleList,
    ShowQueue,
    TenantList,
    TenantView,
)
from headway.runtime.owner import Ask
from headway.runtime.views import Handed, JobView, QueueCounts, Show
from tests.runtime.desk import START_MS, Desk


def test_queues_come_in_pages_by_name() -> None:
    desk = Desk()
    for number in range(25):
        desk.ask(Configure(QueueConfig(name=f"n{number:02}")))
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        page = desk.ask(ListQueues(after, 10))
        assert isinstance(page, QueueList)
        names += [queue.name for queue in page.queues]
        after = page.next
    assert names == [*(f"n{number:02}" for number in range(25)), "q"]
    whole = desk.ask(ListQueues("", 26))
    assert isinstance(whole, QueueList)
    assert whole.next is None


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_queue_is_shown_with_its_lanes_and_limits(is_restarted: bool) -> None:
    desk = Desk()
    limits = (
        Concurrency("slots", 3),
        Concurrency("each", 2, per="region"),
        Rate("pace", 4, 1_000, burst=6),
    )
    config = QueueConfig(name="q", limits=limits, slo_ms=60_000)
    desk.ask(Configure(config))
    desk.put(5, labels={"region": "east"})
    desk.put(4, is_critical=True, slo_ms=5_000)
    desk.put(2, delay_ms=60_000)
    desk.ask(Lease(max=6))
    desk.ask(SetHold("q", Hold.PAUSE, is_on=True))
    if is_restarted:
        desk.open()
    view = desk.ask(ShowQueue("q"))
    assert isinstance(view, QueueView)
    assert view.config == config
    assert view.counts == QueueCounts(3, 2, 6, 0, 0)
    assert (view.is_paused, view.is_blocked) == (True, False)
    ready = {(lane.slo_ms, lane.is_exempt): lane.ready for lane in view.lanes}
    assert ready[60_000, False] == 3
    assert ready[5_000, True] == 0
    assert LimitView("slots", "", 2, 3) in view.limits
    assert LimitView("each", "east", 2, 2) in view.limits
    used = {limit.name: (limit.used, limit.max) for limit in view.limits}
    # What a rate let pass before a restart is unknown: all of its burst, at worst.
    assert used["pace"] == ((6, 6) if is_restarted else (2, 6))
    listed = desk.ask(ListQueues())
    assert isinstance(listed, QueueList)
    assert (listed.queues[0].counts, listed.queues[0].lanes) == (view.counts, [])


def test_a_lane_says_whether_it_is_due() -> None:
    desk = Desk()
    desk.put(1, slo_ms=10_000)

    def lane() -> listing.LaneView:
        view = desk.ask(ShowQueue("q"))
        assert isinstance(view, QueueView)
        return next(lane for lane in view.lanes if lane.slo_ms == 10_000)

    assert (lane().is_due, lane().next_aim_ms) == (False, START_MS + 9_000)
    desk.now_ms += 9_000
    assert (lane().is_due, lane().next_aim_ms) == (True, None)
    desk.lease(1)
    assert (lane().is_due, lane().ready) == (False, 0)


def test_no_more_than_a_hundred_limits_are_shown_and_the_most_used_are() -> None:
    desk = Desk()
    limits = (Concurrency("each", 5, per="server"),)
    desk.ask(Configure(QueueConfig(name="q", limits=limits)))
    for number in range(150):
        desk.put(1 + number % 2, labels={"server": f"s{number}"})
    desk.ask(Lease(max=300))
    view = desk.ask(ShowQueue("q"))
    assert isinstance(view, QueueView)
    assert len(view.limits) == listing.LIMITS_SHOWN
    assert [limit.used for limit in view.limits] == [2] * 75 + [1] * 25


@pytest.mark.parametrize("is_restarted", [False, True])
def test_rules_of_tenants_and_kinds_are_listed_where_something_was_said(
    is_restarted: bool,
) -> None:
    desk = Desk()
    desk.put(3, tenant="plain", kind="plain")
    desk.lease(3)
    desk.ask(SetTenant("q", "", cap=4))
    desk.ask(SetTenant("q", "heavy", weight=3.0))
    desk.ask(SetTenant("q", "still", is_paused=True))
    desk.ask(SetKind("q", "dear", cost=9))
    desk.ask(SetKind("q", "still", is_paused=True))
    if is_restarted:
        desk.open()
    first = desk.ask(ListTenants("q", limit=2))
    assert first == TenantList(
        [TenantView("", 1.0, False, 4), TenantView("heavy", 3.0, False, None)], "heavy"
    )
    rest = desk.ask(ListTenants("q", "heavy"))
    assert rest == TenantList([TenantView("still", 1.0, True, None)], None)
    assert desk.ask(ListKinds("q")) == KindList(
        [KindView("dear", 9, False, None), KindView("still", None, True, None)], None
    )


def test_schedules_are_listed_with_their_ticks() -> None:
    desk = Desk()
    desk.ask(Configure(QueueConfig(name="b")))
    for queue, name in (("q", "one"), ("b", "two"), ("q", "two")):
        entry = Schedule(queue=queue, name=name, cron="0 * * * *", spec=JobSpec())
        desk.ask(PutSchedule(entry))
    desk.ask(
        PutSchedule(
            Schedule(
                queue="q", name="off", cron="* * * * *", is_paused=True, spec=JobSpec()
            )
        )
    )
    hour_ms = 3_600_000
    tick_ms = START_MS + hour_ms - START_MS % hour_ms
    desk.now_ms = tick_ms
    page = desk.ask(ListSchedules(limit=3))
    assert isinstance(page, ScheduleList)
    names = [(view.schedule.queue, view.schedule.name) for view in page.schedules]
    assert names == [("b", "two"), ("q", "off"), ("q", "one")]
    assert page.next == ("q", "one")
    assert page.schedules[1].next_ms is None
    last = desk.ask(ListSchedules("q", page.next))
    assert isinstance(last, ScheduleList)
    (view,) = last.schedules
    assert (view.last_ms, view.next_ms) == (tick_ms, tick_ms + hour_ms)


def test_dead_letters_come_in_the_order_of_their_death() -> None:
    """Page by page each is seen once, although others are taken out in between."""
    desk = Desk()
    expected: list[int] = []
    for number in range(6):
        desk.now_ms += 10
        expected += desk.bury(20, f"error {number % 2}", tenant=f"t{number % 3}")
    seen: list[int] = []
    after: str | None = ""
    while after is not None:
        page = desk.ask(ListDead("q", after=after, limit=7))
        assert isinstance(page, DeadList)
        seen += [view.seq for view in page.jobs]
        after = page.next
        desk.open()
    assert seen == expected
    which = Filter(tenant="t1", text="error 1")
    meant = desk.ask(ListDead("q", which))
    assert isinstance(meant, DeadList)
    assert [view.seq for view in meant.jobs] == expected[20:40]
    assert {view.state for view in meant.jobs} == {JobState.DEAD}
    named = desk.ask(ListDead("q", Filter(seqs=(expected[9], 5_000, expected[3]))))
    assert isinstance(named, DeadList)
    assert [view.seq for view in named.jobs] == [expected[3], expected[9]]
    page = desk.ask(ListDead("q", Filter(seqs=tuple(expected)), limit=100))
    assert isinstance(page, DeadList)
    assert page.next is not None
    rest = desk.ask(ListDead("q", Filter(seqs=tuple(expected)), page.next))
    assert isinstance(rest, DeadList)
    assert [view.seq for view in (*page.jobs, *rest.jobs)] == expected


def test_a_look_through_dead_letters_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listing, "SCANNED_MAX", 30)
    desk = Desk()
    desk.bury(70, tenant="a")
    (seq,) = desk.bury(1, tenant="b")
    pages = 0
    found: list[int] = []
    after: str | None = ""
    while after is not None:
        page = desk.ask(ListDead("q", Filter(tenant="b"), after))
        assert isinstance(page, DeadList)
        found += [view.seq for view in page.jobs]
        after = page.next
        pages += 1
    assert (pages, found) == (3, [seq])


@pytest.mark.parametrize("is_restarted", [False, True])
def test_running_jobs_are_listed_with_what_a_reader_wants(is_restarted: bool) -> None:
    desk = Desk()
    desk.ask(Configure(QueueConfig(name="other")))
    desk.put(5, cost=3, priority=4, timeout_ms=50_000)
    handed = desk.ask(Lease(max=4, worker="w"))
    assert isinstance(handed, Handed)
    first, second, *_ = handed.jobs
    desk.ask(Wait(first.token, "key", 10_000))
    desk.ask(Nack(second.token, "later", 60_000, payload=b"other"))
    if is_restarted:
        desk.open()
    page = desk.ask(ListRunning(limit=2))
    assert isinstance(page, JobList)
    waiting, leased = page.jobs
    assert (waiting.seq, waiting.state) == (first.seq, JobState.WAITING)
    assert waiting.wait_until_ms == START_MS + 10_000
    assert (leased.worker, leased.cost, leased.priority) == ("w", 3, 4)
    assert (leased.started_ms, leased.timeout_at_ms) == (START_MS, START_MS + 50_000)
    assert page.next == leased.seq
    rest = desk.ask(ListRunning("q", leased.seq))
    assert isinstance(rest, JobList)
    assert [view.seq for view in rest.jobs] == [4]
    assert desk.ask(ListRunning("other")) == JobList([], None)
    retried = desk.ask(Show(second.seq))
    assert isinstance(retried, JobView)
    assert retried.payload == b"other"


@pytest.mark.parametrize(
    "ask",
    [
        ListQueues(limit=0),
        ListQueues(limit=1_001),
        ListTenants("q", limit=0),
        ListKinds("q", limit=-1),
        ListSchedules(limit=5_000),
        ListRunning(limit=0),
        ListDead("q", limit=1_001),
        ListDead("q", after="x"),
        ListDead("q", after="1-"),
        ListDead("q", after="1-99999999999999999999"),
        ListDead("q", Filter(seqs=())),
        ListDead("q", Filter(died_before_ms=-5)),
    ],
)
def test_what_can_not_be_listed_is_refused(ask: Ask) -> None:
    assert isinstance(Desk().ask(ask), BadValue)


@pytest.mark.parametrize(
    "ask",
    [
        ShowQueue("x"),
        ListTenants("x"),
        ListKinds("x"),
        ListSchedules("x"),
        ListDead("x"),
        ListRunning("x"),
    ],
)
def test_an_unknown_queue_has_no_lists(ask: Ask) -> None:
    assert isinstance(Desk().ask(ask), UnknownQueue)


def test_asks_and_answers_cross_to_another_process() -> None:
    desk = Desk()
    desk.bury(2, tenant="a")
    entry = Schedule(queue="q", name="s", cron="0 * * * *", spec=JobSpec(kind="k"))
    desk.ask(PutSchedule(entry))
    desk.ask(SetTenant("q", "a", weight=2.0))
    desk.ask(SetKind("q", "k", cost=2))
    desk.put(1)
    desk.ask(Lease())
    asks: list[Ask] = [
        ListQueues(),
        ShowQueue("q"),
        ListTenants("q"),
        ListKinds("q"),
        ListSchedules(after=("a", "b")),
        ListDead("q", Filter(seqs=(1, 2), text="bro")),
        ListRunning(),
    ]
    for ask in asks:
        _, heard = frames.unpack(frames.pack(1, ask)[frames.HEAD.size :])
        answer = desk.ask(heard)
        assert frames.unpack(frames.pack(2, answer)[frames.HEAD.size :]) == (2, answer)
        assert answer == desk.ask(ask)
