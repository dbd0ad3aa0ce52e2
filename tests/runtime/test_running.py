"""What a throttler is told of what runs, against a count of everything."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headway.core.bounds import Bounds
from headway.core.commands import (
    Ack,
    Cancel,
    Configure,
    Enqueue,
    Judge,
    Lease,
    Nack,
    Release,
    Reply,
    Verdict,
    Wait,
)
from headway.core.config import Concurrency, QueueConfig
from headway.core.job import Job
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.runtime.owner import Ask, Owner
from headway.runtime.running import Tally, keys_of
from headway.runtime.views import Show
from headway.store.memory import MemoryDisk, MemoryStore
from headway.throttling.messages import Key
from tests.runtime.desk import START_MS, Desk
from tests.runtime.written import FixedClock

QUEUE = QueueConfig(name="q", has_throttler=True)
VERBS = "put lease ack nack release wait reply cancel start later failed anew other"
STORIES = st.lists(
    st.tuples(st.sampled_from(VERBS.split()), st.integers(0, 20)), max_size=60
)


class Story:
    """An owner with a throttled queue beside a plain one; all its counts are mirrored."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.now_ms = START_MS
        self.open()
        self.ask(Configure(QueueConfig(name="q", lease_ms=5_000)))
        self.ask(Configure(QueueConfig(name="plain")))

    def open(self) -> None:
        throttled = frozenset({"q"})
        self.owner = Owner(MemoryStore(self.disk), throttled=throttled)
        self.owner.take_over(FixedClock(self.now_ms))
        self.mirror: dict[Key, int] = {}

    def ask(self, *asks: Ask) -> None:
        self.now_ms += 100
        self.owner.step(asks, self.now_ms)
        self.mirror |= dict(self.owner.tally_of("q").take())

    def token(self, number: int) -> int:
        tokens = list(self.owner.partition.book.leases)
        return tokens[number % len(tokens)] if tokens else 99_999

    def told(self) -> dict[Key, int]:
        return {key: count for key, count in self.mirror.items() if count}

    def do(self, verb: str, number: int) -> None:
        spec = JobSpec(
            kind=f"k{number % 2}",
            tenant=f"t{number % 3}",
            labels={"region": f"r{number % 2}"},
            is_critical=number == 7,
        )
        match verb:
            case "put":
                self.ask(Enqueue("q", [spec]))
            case "other":
                self.ask(Enqueue("plain", [spec]), Lease(queues=("plain",)))
            case "lease":
                self.ask(Lease(max=1 + number % 3, wait_ms=1))
            case "ack":
                self.ask(Ack([self.token(number)]))
            case "nack":
                self.ask(Nack(self.token(number), retry_in_ms=number * 100))
            case "release":
                self.ask(Release([self.token(number)]))
            case "wait":
                self.ask(Wait(self.token(number), f"r{number % 2}", 60_000))
            case "reply":
                self.ask(Reply("q", f"r{number % 2}"))
            case "cancel":
                self.ask(Cancel(1 + number))
            case "anew":
                self.open()
                self.ask()
            case _:
                self.judge(Verdict(verb), number)

    def judge(self, verdict: Verdict, number: int) -> None:
        """As the one does who asks throttlers: what was decided is looked at."""
        jobs = list(self.owner.asks.values())
        if jobs:
            job = jobs[number % len(jobs)]
            del self.owner.asks[job.seq]
            tally = self.owner.tally_of("q")
            tally.ask(job)
            self.owner.step([Judge(job.seq, verdict, self.now_ms + 500)], self.now_ms)
            tally.look(job)
        self.ask()

    def counted(self) -> Counter[Key]:
        book = self.owner.partition.book
        found: Counter[Key] = Counter()
        for job in book.jobs.values():
            if job.queue == "q":
                found.update(keys_of(job) if _counts(job) else ())
        plain = book.queues["plain"]
        found[0, "plain", ""] = plain.leased + plain.waiting
        return +found


def _counts(job: Job) -> bool:
    is_going_on = job.state is JobState.READY and bool(
        job.cleared_ms or job.timeout_left_ms
    )
    is_running = job.state in (JobState.LEASED, JobState.WAITING)
    return not job.is_critical and (is_running or is_going_on)


@given(STORIES)
def test_counts_that_follow_decisions_are_those_of_a_recount(
    story: list[tuple[str, int]],
) -> None:
    told = Story()
    for verb, number in story:
        told.do(verb, number)
        assert told.told() == told.counted()


def test_a_throttler_is_told_only_what_has_changed() -> None:
    story = Story()
    for number in range(3):
        story.do("put", number)
    story.do("lease", 2)
    for _ in range(3):
        story.do("start", 0)
    tally: Tally = story.owner.tally_of("q")
    assert tally.take() == []
    story.do("put", 9)
    story.owner.step([Lease(queues=("plain",))], story.now_ms)
    assert tally.take() == []


def test_a_turn_does_not_wait_for_a_job_that_was_overtaken_and_left_memory() -> None:
    """Invariant 29: the verdict would find another object than the turn waits for."""
    desk = Desk(Bounds(jobs_max=8, turns_max=4, scheduled_max=4))
    desk.ask(Configure(QUEUE))
    desk.put(1)
    desk.owner.step([Lease(wait_ms=3_600_000, max=200)], desk.now_ms)
    assert list(desk.owner.asks) == [1]
    desk.put(100, priority=1)
    assert 1 not in desk.owner.partition.book.jobs
    started: set[int] = set()
    while len(started) < 101:
        judges = [Judge(seq, Verdict.START) for seq in desk.owner.asks]
        assert judges, "nobody is asked about any more"
        desk.owner.asks.clear()
        desk.owner.step(judges, desk.now_ms)
        started |= {job.seq for job in desk.owner.partition.book.leases.values()}
        # Its next head is asked about when somebody wants it.
        desk.owner.step([Lease(max=200, wait_ms=1_000)], desk.now_ms)
        desk.owner.step([], desk.now_ms)


def test_a_job_is_asked_about_again_under_new_rules() -> None:
    desk = Desk()
    desk.ask(Configure(QUEUE))
    desk.put(1)
    lease = Lease(wait_ms=3_600_000)
    desk.owner.step([lease], desk.now_ms)
    old = desk.owner.asks.pop(1)
    turn = old.turn
    assert turn is not None
    limits = (Concurrency("kinds", 5, "kind"),)
    new = QueueConfig(name="q", has_throttler=True, limits=limits)
    desk.ask(Configure(new))
    desk.ask(Show(1))
    assert desk.owner.asks[1] is not old
    assert turn.parked_on is None
    answers = dict(desk.owner.step([Judge(1, Verdict.START)], desk.now_ms))
    assert lease in answers
