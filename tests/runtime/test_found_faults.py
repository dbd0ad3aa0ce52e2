"""Bugs that the fault simulation has found, each in as few words as it takes."""

from random import Random

import pytest

from headway.core.bounds import Bounds
from headway.core.commands import (
    Ack,
    Configure,
    Enqueue,
    Hold,
    Lease,
    Redrive,
    Reply,
    SetHold,
    SetKind,
    Tick,
    Wait,
)
from headway.core.config import Concurrency, Limit, Order, QueueConfig, Rate
from headway.core.spec import JobSpec
from headway.runtime.clock import Clock
from headway.runtime.owner import Ask, Owner
from headway.runtime.reading import TURNS_AT_ONCE
from headway.runtime.views import Handed, LeasedJob
from headway.sim.disk import NO_SPACE, Fault
from headway.store.errors import StoreFull
from headway.store.memory import MemoryDisk, MemoryStore
from tests.store.rows import Owner as Writer
from tests.store.rows import job as row
from tests.store.simulated import SimulatedPlace

START_MS = 1_700_000_000_000


class Stopped(Clock):
    """Moves only when it is told to."""

    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        return self.at_ms


class Story:
    """One owner after another over the same store."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._disk = MemoryDisk()
        self._bounds = bounds
        self.clock = Stopped()
        self.restart()

    def restart(self) -> None:
        self.owner = Owner(MemoryStore(self._disk), self._bounds)
        self.owner.take_over(self.clock)

    def say(self, *asks: Ask) -> list[LeasedJob]:
        """Answers the jobs that were handed out."""
        answers = self.owner.step(asks, self.clock.at_ms)
        handed = [reply for _, reply in answers if isinstance(reply, Handed)]
        return [job for reply in handed for job in reply.jobs]

    def configure(self, *limits: Limit, order: Order = Order.FAIR) -> None:
        self.say(Configure(QueueConfig(name="q", limits=limits, order=order)))

    def put(self, *specs: JobSpec) -> None:
        self.say(Enqueue("q", list(specs)))

    def lease_all(self) -> list[int]:
        """What several long polls of one worker come to."""
        found: list[int] = []
        for _ in range(4):
            self.clock.at_ms += 9_000
            found += [job.seq for job in self.say(Lease(max=10, lease_ms=600_000))]
        return sorted(found)


def test_a_turn_too_many_leaves_memory_with_all_of_its_jobs() -> None:
    """It went while its rows were being counted, and every second one was left."""
    story = Story(Bounds(jobs_max=4, turns_max=1, scheduled_max=4))
    story.configure()
    story.put(JobSpec(tenant="b", delay_ms=1_000), JobSpec(tenant="b", delay_ms=1_000))
    story.put(JobSpec(tenant="a"))
    story.clock.at_ms += 2_000
    story.say(Tick())
    assert story.lease_all() == [1, 2, 3]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Rate("pace", 5, 1_000), Rate("pace", 5, 1_000)),
        (Concurrency("slots", 5), None),
    ],
)
def test_what_goes_on_after_a_reply_goes_on_after_a_restart_without_units(
    before: Limit, after: Limit | None
) -> None:
    """It stood in no lane of the store, and left memory as if it stood in one."""
    story = Story()
    story.configure(before)
    story.put(JobSpec())
    (job,) = story.say(Lease())
    story.say(Wait(job.token, "key", 600_000))
    story.say(Reply("q", "key"))
    story.put(JobSpec())
    story.configure(*([] if after is None else [after]))
    story.restart()
    assert story.lease_all() == [1, 2]


def test_a_job_whose_lifetime_ended_in_the_store_is_not_handed_out() -> None:
    """It was read, leased, and only then found to be over."""
    story = Story()
    story.configure()
    story.put(JobSpec(lifetime_ms=500))
    story.clock.at_ms += 1_000
    story.restart()
    assert story.say(Lease(wait_ms=60_000)) == []


@pytest.mark.parametrize("has_restart", [False, True])
@pytest.mark.parametrize("bounds", [None, Bounds(4, 20, 4)])
def test_a_new_limit_reaches_a_backlog_that_memory_does_not_hold(
    bounds: Bounds | None, has_restart: bool
) -> None:
    """What was in the store only was forgotten when its turn was sorted anew."""
    count = 1_500 if bounds is None else 20
    story = Story(bounds)
    story.configure()
    story.put(*[JobSpec() for _ in range(count)])
    if has_restart:
        story.restart()
    story.say(Tick())
    story.configure(Concurrency("slots", 50))
    done = 0
    for _ in range(count):
        story.clock.at_ms += 1_000
        jobs = story.say(Lease(max=50))
        story.say(Ack([job.token for job in jobs]))
        done += len(jobs)
    assert done == count


def test_a_job_that_expires_and_is_redriven_at_once_leaves_memory_once() -> None:
    """It stood twice in its turn, and the owner stopped over the second time."""
    story = Story(Bounds(4, 20, 4))
    story.configure()
    story.put(JobSpec(), JobSpec(lifetime_ms=500, priority=200))
    story.clock.at_ms += 1_000
    story.say(Redrive(2), Enqueue("q", [JobSpec() for _ in range(70)]))
    handed: list[int] = []
    for _ in range(72):
        handed += [job.seq for job in story.say(Lease(wait_ms=100))]
    assert sorted(handed) == list(range(1, 73))


@pytest.mark.parametrize("after", [Order.FAIR, Order.TIME])
@pytest.mark.parametrize("bounds", [None, Bounds(4, 20, 4)])
def test_a_new_order_reaches_the_whole_backlog(
    bounds: Bounds | None, after: Order
) -> None:
    """Jobs that memory held, and jobs that it did not, were left behind."""
    story = Story(bounds)
    story.configure(order=Order.PRIORITY)
    priorities = [50, 100, 200, 50, 100, 200, 50, 100, 200]
    story.put(*[JobSpec(tenant=f"t{p % 3}", priority=p) for p in priorities])
    story.configure(order=after)
    handed: list[int] = []
    for _ in range(20):
        story.clock.at_ms += 1_000
        handed += [job.seq for job in story.say(Lease(lease_ms=600_000))]
    assert sorted(handed) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("is_paused", [False, True])
def test_what_goes_on_without_units_is_found_under_new_rules(is_paused: bool) -> None:
    """It held nothing, was sorted anew, and stood nowhere after that."""
    story = Story()
    story.configure()
    story.put(JobSpec(tenant="a"), JobSpec(tenant="b"))
    (job,) = story.say(Lease())
    story.say(Wait(job.token, "key", 600_000))
    story.say(Reply("q", "key"))
    story.say(SetKind("q", "mail", is_paused=is_paused))
    assert story.lease_all() == [1, 2]


class _Cuts(Random):
    """Every write that fails has written so many bytes, if it has as many."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return min(17, start - 1)


def _fill(writer: Writer) -> None:
    for seq in range(100):
        writer.put(row(seq))


@pytest.mark.parametrize("after", range(50, 74))
def test_a_log_whose_new_header_was_torn_is_not_taken_for_damaged(after: int) -> None:
    """Frames of the old log passed for lost commits, and the store never opened again."""
    place = SimulatedPlace(wal_bytes=40 * 1024)
    place.disk.chance = _Cuts()
    place.disk.faults = [Fault("write", NO_SPACE, after=after)]
    writer = Writer(place.open())
    with pytest.raises(StoreFull):
        _fill(writer)
    place.disk.crash()
    Writer(place.open()).put(row(1_000))
    place.disk.crash()
    assert len(Writer(place.open()).store.jobs([1_000])) == 1
    place.close()


def test_a_job_that_comes_from_the_store_again_stands_once_in_its_turn() -> None:
    """A row of its life before was left in the heap, and the two were compared."""
    story = Story()
    story.configure()
    story.say(SetKind("q", "mail", is_paused=False))
    story.put(JobSpec())
    (job,) = story.say(Lease(lease_ms=600_000))
    story.restart()
    story.say(Wait(job.token, "key", 600_000))
    story.say(Reply("q", "key"))
    story.put(JobSpec())
    story.say(SetKind("q", "mail", is_paused=False))
    assert story.lease_all() == [1, 2]


def test_a_paused_backlog_stays_in_the_store() -> None:
    """Invariant 17: what may not start need not be read, and comes when it may."""
    story = Story(Bounds(jobs_max=8, turns_max=3, scheduled_max=4))
    story.configure()
    story.put(*(JobSpec(tenant=f"t{number % 600}") for number in range(1_800)))
    story.restart()
    story.say(SetHold("q", Hold.PAUSE, is_on=True))
    for _ in range(50):
        story.say(Tick())
    # Two each of the first turns were asked for before a word of a pause.
    assert len(story.owner.partition.book.jobs) <= 2 * TURNS_AT_ONCE < 1_200
    assert story.say(Lease(max=10)) == []
    story.say(SetHold("q", Hold.PAUSE, is_on=False))
    found: list[LeasedJob] = []
    for _ in range(1_800):
        found += story.say(Lease(max=10, lease_ms=600_000))
    assert len(found) == 1_800
