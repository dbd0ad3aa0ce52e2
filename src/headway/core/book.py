"""All that a partition knows, and the decision it is about to give."""

import msgspec

from headway.core.bulk import Bulk
from headway.core.commands import Decision, FactKind
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.dispatch import Dispatch
from headway.core.entitlement import Ledger
from headway.core.errors import LeaseLost, UnknownJob, UnknownQueue
from headway.core.job import Job
from headway.core.parking import Timer
from headway.core.queue import Queue, Shared
from headway.core.register import LeaseRegister, Register
from headway.core.states import LEASED, READY, SCHEDULED, WAITING
from headway.core.timers import TimeBuckets
from headway.core.write import Write


class Cron:
    """A schedule at work. Identity, not value: it is a key among the timers."""

    __slots__ = ("last_ms", "next_ms", "schedule", "timer_place")

    def __init__(self, schedule: Schedule, last_ms: int) -> None:
        self.schedule = schedule
        self.last_ms = last_ms
        """The newest tick that was dealt with."""
        self.next_ms: int | None = None
        self.timer_place = 0


class Near:
    """Scheduled jobs that are in memory: those whose time comes first."""

    __slots__ = ("cut", "jobs")

    def __init__(self) -> None:
        self.jobs: dict[int, Job] = {}
        """Kept up to date only where a store holds the rest."""
        self.cut: tuple[int, int, int] | None = None
        """Those above this may be missing."""


class Book:
    """Jobs, leases, queues and timers of one partition."""

    def __init__(self, ledger: Ledger, *, has_fairness: bool = True) -> None:
        self.shared = Shared(ledger, has_fairness=has_fairness)
        self.timers: TimeBuckets[Timer] = TimeBuckets()
        self.dispatch = Dispatch(self.shared, self.timers)
        self.queues: dict[str, Queue] = {}
        self.crons: dict[tuple[str, str], Cron] = {}
        self.jobs = Register()
        """Open and dead jobs by seq."""
        self.leases = LeaseRegister()
        """Leased jobs by token."""
        self.bulks: dict[int, Bulk] = {}
        """Bulk operations that run, and the newest that have ended."""
        self.writes: dict[str, Write] = {}
        """Writes that are being taken in, and those that were and are remembered."""
        self.series: dict[str, Write] = {}
        """Of each series the write with the highest number."""
        self.near = Near()
        self.visited: list[int] = []
        """Jobs that were read from the store because somebody asked for them."""
        self.last_seq = 0
        self.last_token = 0
        self.decision = Decision([], [], [], [])
        self._decisions = 0
        # Two of its fields: compiled code looks those of a record up by name.
        self._changed = self.decision.jobs
        self._events = self.decision.events

    def open_decision(self) -> None:
        self.decision = Decision([], [], [], [])
        self._decisions += 1
        self._changed = self.decision.jobs
        self._events = self.decision.events
        self.dispatch.parking.asks = self.decision.asks
        self.shared.facts = self.decision.facts
        self.shared.moved = self.decision.moved
        self.shared.uses.events = self.decision.events
        self.dispatch.may_lend = True

    def write(self, job: Job, event: msgspec.Struct) -> None:
        """The job changed, and this is how."""
        if job.changed_in != self._decisions:
            job.changed_in = self._decisions
            self._changed.append(job)
        self._events.append(event)

    def know(self, kind: FactKind, queue: str, name: str = "") -> None:
        """Something else than a job changed, and has to be remembered."""
        self.decision.facts[kind, queue, name] = None

    def queue(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            raise UnknownQueue(f"there is no queue {name!r}")
        return queue

    def add_queue(self, config: QueueConfig) -> Queue:
        queue = self.queues[config.name] = Queue(config, self.shared)
        return queue

    def job(self, seq: int) -> Job:
        job = self.jobs.get(seq)
        if job is None:
            raise UnknownJob(f"there is no open or dead job {seq}")
        return job

    def leased(self, token: int) -> Job:
        job = self.leases.get(token)
        if job is None:
            raise LeaseLost(f"lease {token} is over")
        return job

    def look_ahead(self, now_ms: int) -> None:
        """What comes after the scheduled jobs in memory may be due, too."""
        cut = self.near.cut
        if cut is not None and cut[0] <= now_ms:
            self.shared.reads[self.near] = None

    def disarm(self, job: Job) -> None:
        """The job leaves memory: its timer goes with it."""
        if job.timer_ms:
            self.timers.remove(job, job.timer_ms, job.timer_place)
            job.timer_ms = 0

    def arm(self, job: Job) -> None:
        """Sets the job's one timer to the next moment that matters in its state."""
        at_ms = job.expires_ms
        state = job.state
        if state is LEASED:
            if job.lease_until_ms < at_ms:
                at_ms = job.lease_until_ms
            if job.timeout_at_ms < at_ms:
                at_ms = job.timeout_at_ms
        elif state is SCHEDULED:
            at_ms = min(at_ms, job.run_at_ms)
        elif state is WAITING:
            at_ms = min(at_ms, job.wait_until_ms, job.timeout_at_ms)
        elif state is not READY:
            at_ms = 0
        old_ms = job.timer_ms
        if at_ms != old_ms:
            if old_ms:
                self.timers.remove(job, old_ms, job.timer_place)
            job.timer_ms = at_ms
            if at_ms:
                job.timer_place = self.timers.add(job, at_ms)
