"""What an operator looks at first: queues in trouble, tenants at work, busy workers."""

import pytest

from headway.core.bounds import Bounds
from headway.core.capacity import LaneFigures, QueueFigures
from headway.core.commands import (
    Configure,
    Enqueue,
    Hold,
    Lease,
    Redrive,
    SetHold,
    SetTenant,
    Wait,
)
from headway.core.config import Concurrency, QueueConfig
from headway.core.errors import BadValue, UnknownQueue
from headway.core.spec import JobSpec
from headway.runtime import frames
from headway.runtime.folding import LANES_MAX, folded
from headway.runtime.listing import JobList, ListRunning
from headway.runtime.owner import Reply
from headway.runtime.ranking import (
    BusyTenantList,
    ListBusyTenants,
    ListWorkers,
    Order,
    QueueRanking,
    RankQueues,
    WorkerList,
)
from headway.runtime.views import Autoscale, Handed, Measure, Show
from tests.runtime.desk import Desk
from tests.runtime.metered import MeteredDesk


def busy() -> Desk:
    """Queues with one job, two jobs, and so on; the last is held."""
    desk = Desk()
    for number in range(1, 5):
        desk.ask(Configure(QueueConfig(name=f"q{number}", slo_ms=60_000)))
        desk.ask(Enqueue(f"q{number}", [JobSpec() for _ in range(number)]))
    desk.ask(SetHold("q4", Hold.PAUSE, is_on=True))
    return desk


def ranked(reply: Reply) -> list[str]:
    assert isinstance(reply, QueueRanking)
    return [queue.name for queue in reply.queues]


def test_queues_are_ranked_by_what_is_asked_for() -> None:
    desk = busy()
    assert ranked(desk.ask(RankQueues(Order.NAME))) == ["q", "q1", "q2", "q3", "q4"]
    assert ranked(desk.ask(RankQueues(Order.READY, limit=2))) == ["q4", "q3"]
    assert ranked(desk.ask(RankQueues(Order.READY, limit=2, skip=2))) == ["q2", "q1"]
    assert ranked(desk.ask(RankQueues(Order.DEAD))) == ["q", "q1", "q2", "q3", "q4"]


def test_what_is_due_comes_first_and_a_held_backlog_next() -> None:
    desk = busy()
    desk.ask(Configure(QueueConfig(name="hasty", slo_ms=10)))
    desk.ask(Enqueue("hasty", [JobSpec()]))
    desk.now_ms += 50
    found = desk.ask(RankQueues())
    assert ranked(found) == ["hasty", "q4", "q3", "q2", "q1", "q"]
    assert isinstance(found, QueueRanking)
    assert found.total == 6
    first, second = found.queues[:2]
    assert (first.due, first.slos_ms, first.counts.ready) == (1, [10], 1)
    assert (second.due, second.is_paused, second.is_blocked) == (0, True, False)


def test_a_ranking_is_of_those_that_are_meant() -> None:
    desk = busy()
    assert ranked(desk.ask(RankQueues(contains="Q2"))) == ["q2"]
    assert ranked(desk.ask(RankQueues(is_held=True))) == ["q4"]
    assert ranked(desk.ask(RankQueues(patterns=("q1", "q3*")))) == ["q3", "q1"]
    assert ranked(desk.ask(RankQueues(patterns=()))) == []
    assert isinstance(desk.ask(RankQueues(skip=-1)), BadValue)
    assert isinstance(desk.ask(RankQueues(limit=0)), BadValue)


def test_tenants_are_told_with_their_share_and_wait() -> None:
    desk = Desk()
    desk.put(3, tenant="acme")
    desk.put(1, tenant="globex")
    desk.ask(SetTenant("q", "acme", weight=2.0, is_paused=None, cap=5))
    handed = desk.ask(Lease(max=1))
    assert isinstance(handed, Handed)
    desk.now_ms += 400
    found = desk.ask(ListBusyTenants("q"))
    assert isinstance(found, BusyTenantList)
    told = {one.tenant: one for one in found.tenants}
    assert found.total == 2
    assert (told["acme"].weight, told["acme"].cap) == (2.0, 5)
    assert sum(one.leased for one in found.tenants) == 1
    assert sum(one.ready for one in found.tenants) == 3
    assert found.tenants[0].leased == 1
    assert told["acme"].oldest_ms == 400
    assert isinstance(desk.ask(ListBusyTenants("none")), UnknownQueue)


def test_workers_are_told_with_what_they_have() -> None:
    desk = Desk()
    seqs = desk.put(3)
    desk.ask(Lease(worker="b", max=1))
    desk.now_ms += 100
    desk.ask(Lease(worker="a", max=2))
    found = desk.ask(ListWorkers())
    assert isinstance(found, WorkerList)
    assert [(one.worker, one.jobs) for one in found.workers] == [("a", 2), ("b", 1)]
    assert found.workers[1].oldest == seqs[0]
    assert found.workers[1].oldest_ms == desk.now_ms - 100
    page = desk.ask(ListWorkers(limit=1))
    assert isinstance(page, WorkerList)
    assert (page.next, page.total) == ("a", 2)
    page = desk.ask(ListWorkers(after="a"))
    assert isinstance(page, WorkerList)
    assert [one.worker for one in page.workers] == ["b"]


def test_running_jobs_are_those_of_a_worker_of_a_state_or_of_a_limit() -> None:
    desk = Desk()
    limit = Concurrency("partner", 2, per="region")
    desk.ask(Configure(QueueConfig(name="q", limits=(limit,))))
    north = desk.put(1, labels={"region": "north"})
    south = desk.put(1, labels={"region": "south"})
    desk.ask(Lease(worker="a", max=1))
    handed = desk.ask(Lease(worker="b", max=1))
    assert isinstance(handed, Handed)
    desk.ask(Wait(handed.jobs[0].token, "key", 1_000))

    def seqs(**which: object) -> list[int]:
        found = desk.ask(ListRunning("q", **which))  # type: ignore[arg-type]
        assert isinstance(found, JobList)
        return [job.seq for job in found.jobs]

    assert seqs() == north + south
    assert seqs(worker="a") == north
    assert seqs(is_waiting=True) == south
    assert seqs(is_waiting=False) == north
    assert seqs(holding=("partner", "north")) == north
    assert seqs(holding=("partner", "east")) == []


@pytest.mark.parametrize("ask", [RankQueues(), ListBusyTenants("q"), ListWorkers()])
def test_rankings_travel_between_processes(
    ask: RankQueues | ListBusyTenants | ListWorkers,
) -> None:
    desk = busy()
    desk.put(2, tenant="acme")
    desk.ask(Lease(worker="a", queues=("q",), max=1))
    told = desk.ask(ask)
    for value in (ask, told):
        packed = frames.pack(7, value)
        assert frames.unpack(packed[frames.HEAD.size :])[0] == 7


def test_a_redrive_may_have_another_payload_that_outlives_a_restart() -> None:
    desk = Desk()
    (seq,) = desk.bury(1, payload=b"old")
    desk.ask(Redrive(seq, b"new"))
    desk.open()
    view = desk.ask(Show(seq))
    assert getattr(view, "payload", None) == b"new"
    handed = desk.ask(Lease(max=1))
    assert isinstance(handed, Handed)
    assert handed.jobs[0].payload == b"new"


def test_advice_for_very_many_queues_looks_at_the_largest_and_folds_the_others() -> (
    None
):
    few = MeteredDesk(*[QueueConfig(name=f"q{n}", slo_ms=1_000) for n in range(20)])
    many = MeteredDesk(*[QueueConfig(name=f"q{n}", slo_ms=1_000) for n in range(400)])
    for desk in (few, many):
        desk.put(500, "q0")
        for number in range(1, 20):
            desk.put(1, f"q{number}")
        desk.later(500)
    exact, rough = few.ask(Autoscale()), many.ask(Autoscale())
    assert rough.slots == exact.slots
    assert len(rough.by_lane) <= LANES_MAX + 1
    told = {lane.queue: lane for lane in rough.by_lane}
    assert told["q0"] == {lane.queue: lane for lane in exact.by_lane}["q0"]
    assert "other" in told


def test_folded_lanes_keep_their_sums_and_the_strictest_promise() -> None:
    queues = [
        QueueFigures(name=f"q{n}", leased=1, slots_max=2.0, is_held=n >= 290)
        for n in range(300)
    ]
    lanes = [
        LaneFigures(
            queue=f"q{n}",
            slo_ms=1_000 + n,
            per_s=2.0,
            run_ms=100.0 + n % 2,
            run_sq_ms=10_000.0,
            ready=3,
            oldest_ms=n,
            mean_ms=10,
            leased=1,
        )
        for n in range(300)
    ]
    few, owners = folded(lanes, queues)
    going = [
        lane for lane in few if lane.queue not in {f"q{n}" for n in range(290, 300)}
    ]
    assert sum(lane.ready for lane in going) == 3 * 290
    assert sum(lane.per_s for lane in going) == 2.0 * 290
    (other,) = [queue for queue in owners if queue.name == "other"]
    rest = [lane for lane in few if lane.queue == "other"]
    assert other.leased == 190
    assert other.slots_max == 380.0
    assert min(lane.slo_ms for lane in rest) >= 1_000
    assert max(lane.oldest_ms for lane in few) == 299
    assert all(100.0 <= lane.run_ms <= 101.0 for lane in rest)


def test_a_brief_look_reads_nothing_from_the_store() -> None:
    desk = MeteredDesk(bounds=Bounds(jobs_max=20, turns_max=4, scheduled_max=10))
    desk.put(200, tenant="acme")
    desk.open()
    desk.later(1_000)
    brief = desk.ask(Measure(is_brief=True)).lanes[0].waiting
    assert (brief.ready, brief.is_sure) == (200, False)
    assert brief.oldest_ms <= desk.lane().waiting.oldest_ms == 1_000
    assert desk.ask(Autoscale(is_brief=True)).slots >= 0
