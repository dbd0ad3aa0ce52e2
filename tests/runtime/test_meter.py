"""An owner counts what happened, and says it in numbers."""

from pathlib import Path

import msgspec
import pytest

import headway
from headway.core import events
from headway.core.bounds import Bounds
from headway.core.commands import (
    Cancel,
    Decision,
    Hold,
    Nack,
    PutSchedule,
    Release,
    Reply,
    SetHold,
)
from headway.core.config import Concurrency, QueueConfig, Shares
from headway.core.cron import Schedule
from headway.core.errors import RuleBroken
from headway.core.job import Job
from headway.core.retry import Fixed
from headway.core.spec import JobSpec
from headway.runtime import meter as meters
from headway.runtime.frames import pack, unpack
from headway.runtime.measures import DURATIONS_MS
from headway.runtime.meter import PLACES, Meter, bucket_of
from headway.runtime.views import Autoscale, Measure
from tests.runtime.metered import SLO_MS, START_MS, MeteredDesk

TIGHT = Bounds(jobs_max=8, turns_max=3, scheduled_max=4)


def test_starts_are_in_time_up_to_their_slo() -> None:
    desk = MeteredDesk()
    desk.put(3)
    desk.later(SLO_MS)
    desk.lease()
    desk.later(1)
    desk.lease()
    lane = desk.lane()
    assert (lane.enqueued, lane.started, lane.in_time, lane.late) == (3, 2, 1, 1)
    assert lane.attained == 0.5
    assert lane.wait.total == 2 * SLO_MS + 1
    assert sum(lane.wait.counts) == 2


def test_every_end_of_an_attempt_is_counted_where_it_belongs() -> None:
    config = QueueConfig(
        name="q", slo_ms=SLO_MS, lease_ms=1_000, retry=Fixed(10), attempts_max=2
    )
    desk = MeteredDesk(config)
    desk.put(6)
    acked, failed, released, lost, _ = desk.lease(5)
    desk.later(100)
    desk.ack(acked)
    desk.ask(Nack(failed.token, "no"))
    desk.ask(Release([released.token]))
    desk.ask(Cancel(6))
    desk.later(1_000)
    lane = desk.lane()
    assert (lane.acked, lane.retried, lane.released) == (1, 1, 1)
    assert (lane.lost, lane.cancelled, lane.buried) == (2, 1, 0)
    assert lane.run.total == 300
    assert sum(lane.run.counts) == 3
    (again,) = [job for job in desk.lease(9) if job.seq == failed.seq]
    desk.ask(Nack(again.token, "no"))
    assert desk.lane().buried == 1
    assert lost.attempt == 1


def test_a_job_is_an_arrival_when_it_is_ready_and_not_before() -> None:
    desk = MeteredDesk()
    desk.put(60, delay_ms=10_000)
    desk.later(1_000)
    assert desk.lane().per_s == 0.0
    desk.later(9_000)
    desk.later(20_000)
    assert desk.lane().per_s > 0.0
    assert desk.lane().enqueued == 60


def test_averages_follow_what_arrives_and_forget_it() -> None:
    desk = MeteredDesk()
    for _ in range(300):
        desk.put(10)
        for job in desk.lease(10):
            desk.ack(job)
        desk.later(1_000)
    assert desk.lane().per_s == pytest.approx(10, rel=0.05)
    desk.later(300_000)
    assert desk.lane().per_s < 0.01


def test_moments_of_run_times_stay_known_when_nothing_runs() -> None:
    desk = MeteredDesk()
    desk.put(2)
    short, long = desk.lease(2)
    desk.later(1_000)
    desk.ack(short)
    desk.later(2_000)
    desk.ack(long)
    desk.later(1_000)
    # The later run counts a little more.
    assert 2_000 < desk.lane().run_ms < 2_100
    for _ in range(5):
        desk.later(3_600_000)
        lane = desk.lane()
    assert 1_000 <= lane.run_ms <= 3_000
    assert lane.run_ms**2 <= lane.run_sq_ms <= 9_000_000


def test_the_oldest_wait_is_that_of_any_priority_and_leaves_out_held_time() -> None:
    desk = MeteredDesk()
    desk.put(1, priority=200)
    desk.later(4_000)
    desk.put(1, priority=1)
    waiting = desk.lane().waiting
    assert (waiting.ready, waiting.oldest_ms, waiting.late) == (2, 4_000, 0)
    desk.ask(SetHold("q", Hold.PAUSE, is_on=True))
    desk.later(60_000)
    assert desk.lane().waiting.oldest_ms == 4_000
    desk.ask(SetHold("q", Hold.PAUSE, is_on=False))
    desk.later(2_000)
    waiting = desk.lane().waiting
    assert (waiting.oldest_ms, waiting.late, waiting.is_sure) == (6_000, 1, True)


@pytest.mark.parametrize("tenants", [1, 600])
def test_what_is_in_the_store_only_is_not_taken_for_young(tenants: int) -> None:
    """Invariant 17: memory holds a part of the backlog, and says so."""
    desk = MeteredDesk(bounds=TIGHT)
    for tenant in range(tenants):
        desk.put(1_200 // tenants, tenant=f"t{tenant}")
    desk.later(7_000)
    desk.open()
    waiting = desk.lane().waiting
    assert (waiting.ready, waiting.oldest_ms) == (1_200, 7_000)
    assert waiting.late >= 1
    assert not waiting.is_sure


def test_bytes_are_counted_for_jobs_that_were_accepted() -> None:
    desk = MeteredDesk(QueueConfig(name="q", slo_ms=SLO_MS), QueueConfig(name="r"))
    desk.put(2, payload=b"12345", idempotency_key="once")
    desk.put(1, payload=b"123")
    desk.put(1, "r", payload=b"1")
    assert desk.queue().enqueued_bytes == 8
    assert desk.queue("r").enqueued_bytes == 1


def test_queues_and_limits_are_told_as_they_stand() -> None:
    limits = (
        Concurrency("line", 3),
        Concurrency("each", 2, per="tenant"),
        Shares("regions", 4, "region", {"east": 50}),
    )
    desk = MeteredDesk(QueueConfig(name="q", slo_ms=SLO_MS, limits=limits))
    for tenant in ("a", "b"):
        desk.put(2, tenant=tenant, labels={"region": "east"})
    desk.put(1, delay_ms=1_000)
    assert len(desk.lease(9)) == 2
    queue = desk.queue()
    assert (queue.ready, queue.leased, queue.scheduled) == (2, 2, 1)
    uses = {x.limit: (x.used, x.max) for x in desk.measures().limits}
    assert uses == {"line": (2, 3), "each": (2, None), "regions": (2, 4)}


def test_commits_batches_ticks_and_replies_are_counted() -> None:
    desk = MeteredDesk()
    before = desk.measures().commits
    assert before.commits == 1
    desk.put(3)
    desk.ask(Reply("q", "nobody", b"early"))
    desk.ask(
        PutSchedule(Schedule(name="s", queue="q", cron="* * * * *", spec=JobSpec()))
    )
    desk.now_ms = START_MS // 60_000 * 60_000 + 62_500
    desk.owner.step([], desk.now_ms)
    told = desk.measures()
    assert told.commits.commits == 5
    assert told.commits.rows > before.rows
    assert sum(told.commits.time_us.counts) == 5
    assert told.commits.batch.total == 4
    assert told.tick_late.total == 2_500
    assert told.ticks_skipped == 0
    assert told.replies == {"early": 1}
    assert desk.queue().replies_kept == 1
    assert told.jobs_in_memory == 4


@pytest.mark.interpreted
def test_lanes_beyond_the_bound_share_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "LANES_MAX", 3)
    meter = Meter()
    jobs = [Job(1, JobSpec(), "q", 0)]
    happened = [
        events.Enqueued(0, 1, 0, f"q{n % 5}", 1_000, "", "", 0, 0, 1) for n in range(10)
    ]
    for _ in range(2):
        meter.decided(Decision([], jobs, list(happened), []), 0)
    counts = {key: row[meters.ENQUEUED] for key, row in meter.rows.items()}
    assert counts == {("q0", 1_000): 4, ("q1", 1_000): 4, meters.OTHER: 12}


@pytest.mark.parametrize("value", [0, 1, 2, 3, 4, 5, 1_023, 1_024, 1_025])
def test_a_bucket_holds_what_is_within_its_bound(value: int) -> None:
    bucket = bucket_of(value)
    assert value <= DURATIONS_MS[bucket]
    assert bucket == 0 or value > DURATIONS_MS[bucket - 1]


def test_measures_and_advice_pass_between_processes() -> None:
    desk = MeteredDesk()
    desk.put(5, tenant="a")
    for told in (desk.measures(), desk.wanted()):
        assert unpack(pack(7, told)[4:]) == (7, told)
    for query in (Measure(), Autoscale(("q",), 1)):
        _, again = unpack(pack(1, query)[4:])
        assert msgspec.structs.asdict(again) == msgspec.structs.asdict(query)


def test_advice_counts_what_arrives_and_what_waits() -> None:
    desk = MeteredDesk()
    assert desk.wanted().slots == 0
    for _ in range(60):
        desk.put(4)
        jobs = desk.lease(4)
        desk.later(1_000)
        desk.ack(*jobs)
    advice = desk.wanted("q")
    assert advice.load == pytest.approx(4.0, rel=0.2)
    assert 5 <= advice.slots <= 7
    desk.put(2_000)
    more = desk.wanted("q", start_ms=10_000)
    assert more.slots > 50
    assert "2,000 jobs wait" in more.reason


def test_an_application_can_ask_its_own_queue(tmp_path: Path) -> None:
    with headway.open(tmp_path / "jobs.db") as queue:
        queue.configure(QueueConfig(name="q", slo_ms=SLO_MS))
        queue.enqueue("q", b"12345")
        told = queue.measure()
        assert [lane.enqueued for lane in told.lanes] == [1]
        assert told.store_bytes + told.log_bytes > 0
        assert queue.autoscale(["q"], start="10s").slots == 1
        with pytest.raises(RuleBroken):
            queue.autoscale(["nowhere"])


def test_runs_that_have_not_ended_are_counted_by_how_long_they_have_lasted() -> None:
    """Long jobs that hold slots are not taken for jobs of a second."""
    config = QueueConfig(name="long", slo_ms=600_000, lease_ms=3_600_000)
    desk = MeteredDesk(QueueConfig(name="q", slo_ms=SLO_MS), config)
    desk.put(20, "long")
    assert len(desk.lease(20)) == 20
    for _ in range(60):
        desk.put(2)
        jobs = desk.lease(2)
        desk.later(1_000)
        desk.ack(*jobs)
    assert desk.wanted("q").slots <= 4
    both = desk.wanted()
    assert both.slots >= 22
    assert "20 are held" in both.reason


def test_advice_for_queues_that_are_not_there_is_refused() -> None:
    desk = MeteredDesk()
    for query in (Autoscale(("nowhere",)), Autoscale(None, -1)):
        assert isinstance(desk.ask(query), RuleBroken)


def test_fields_of_events_lie_where_the_meter_looks_for_them() -> None:
    for kind, places in PLACES.items():
        names = kind.__struct_fields__
        assert places == {name: names.index(name) for name in places}
