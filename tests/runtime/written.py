"""A partition whose every decision is written, and that can be begun anew from that."""

from collections.abc import Sequence
from typing import Any

from headway.core.bounds import Bounds
from headway.core.bulk import BulkState, BulkVerb, Filter
from headway.core.commands import Command, Decision, Nack, StartBulk, StopBulk
from headway.core.job import Job
from headway.core.states import JobState
from headway.runtime.clock import Clock
from headway.runtime.owner import Owner
from headway.runtime.records import pack_change, unpack_job
from headway.store.memory import MemoryDisk, MemoryStore
from headway.store.port import DEAD, HELD, SCHEDULED
from tests.core.fuzz import Fuzz, Step
from tests.core.fuzz_rules import KINDS, QUEUES, TENANTS

ROOMY = Bounds(reads_max=10_000)
TIGHT = Bounds(jobs_max=8, turns_max=3, scheduled_max=4, reads_max=10_000)
"""Memory for hardly anything, so that nearly everything is read from the store."""


class FixedClock(Clock):
    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms


class Recorded:
    """A partition, and what it has decided: a compiled one can't be told to say it."""

    def __init__(self, partition: Any, decisions: list[Decision]) -> None:
        vars(self).update(_partition=partition, _decisions=decisions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._partition, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._partition, name, value)

    def decide(self, commands: Sequence[Command], now_ms: int) -> Decision:
        decision: Decision = self._partition.decide(commands, now_ms)
        self._decisions.append(decision)
        return decision


class Written:
    """Stands in for a partition: what it decides is committed before it is told."""

    def __init__(self, disk: MemoryDisk, bounds: Bounds, now_ms: int) -> None:
        self.disk = disk
        self.store = MemoryStore(disk)
        self.owner = Owner(self.store, bounds)
        self.decisions: list[Decision] = []
        partition: Any = Recorded(self.owner.partition, self.decisions)
        self.owner.partition = partition
        self.owner.take_over(FixedClock(now_ms))
        self.book = self.owner.partition.book

    def decide(self, commands: Sequence[Command], now_ms: int) -> Decision:
        """One step of the owner, with all that it decided as one decision."""
        self.decisions.clear()
        self.owner.step(commands, now_ms)
        told = Decision([], [], [], [])
        jobs: dict[int, Job] = {}
        for decision in self.decisions:
            told.answers += decision.answers
            jobs |= {job.seq: job for job in decision.jobs}
            told.events += decision.events
            told.asks += decision.asks
        told.jobs = list(jobs.values())
        return told

    def next_ms(self) -> int | None:
        return self.owner.next_ms()

    def stored(self) -> dict[int, Job]:
        """Every job as the store has it, and as memory has it where it does."""
        jobs = {}
        for seq, row in self.disk.jobs.items():
            jobs[seq] = self.book.jobs.get(seq) or unpack_job(seq, row[6], row[5])
        return jobs


class WrittenFuzz(Fuzz):
    """The same stories, over a partition that dies now and then."""

    def __init__(self, bounds: Bounds = ROOMY) -> None:
        self.disk = MemoryDisk()
        self.bounds = bounds
        super().__init__()

    def make_partition(self, now_ms: int) -> Written:
        return Written(self.disk, self.bounds, now_ms)

    def all_jobs(self) -> dict[int, Job]:
        written: Written = self.partition
        return written.stored()

    def check_counters(self) -> None:
        """Invariants 14, 15 and 18 by what the store holds."""
        written: Written = self.partition
        rows = written.disk.jobs
        jobs = self.all_jobs()
        for seq, job in self.book.jobs.items():
            assert seq in rows, "invariant 14"
            stored = unpack_job(seq, rows[seq][6], rows[seq][5])
            assert stored.state is job.state, (stored.state, job.state)
        for name, queue in self.book.queues.items():
            counts = dict.fromkeys(JobState, 0)
            for job in jobs.values():
                counts[job.state] += job.queue == name
            assert queue.ready == counts[JobState.READY], "invariant 18"
            assert queue.scheduled == counts[JobState.SCHEDULED], "invariant 18"
            assert queue.leased == counts[JobState.LEASED], "invariant 18"
            assert queue.waiting == counts[JobState.WAITING], "invariant 18"
            assert queue.dead == counts[JobState.DEAD], "invariant 18"
        for seq, row in rows.items():
            state = jobs[seq].state
            assert (row[1] == DEAD) == (state is JobState.DEAD)
            assert (row[1] == SCHEDULED) == (state is JobState.SCHEDULED)
            assert (row[1] == HELD) >= (state in (JobState.LEASED, JobState.WAITING))
            if row[1] == HELD:
                assert seq in self.book.jobs, "what is held is in memory"

    def restart(self) -> None:
        """Callers that waited are gone; everything else is as it was."""
        self.send()
        before = snapshot(self.all_jobs())
        self.partition = self.make_partition(self.now_ms)
        self.book = self.partition.book
        self.history.waiting.clear()
        self.asked.clear()
        self._bases.clear()
        assert snapshot(self.all_jobs()) == before, "invariant 1"
        self.rules.restarted(self.book, self.all_jobs())
        self.send()

    def play(self, story: Sequence[Step]) -> None:
        """Beside the core's own verbs, those that only an owner can carry out."""
        for verb, one, two in story:
            if verb == "bulk":
                self._start_bulk(one, two)
            elif verb == "bury":
                for token in list(self.book.leases)[: 1 + one % 4]:
                    self.send(Nack(token, f"error {two % 3}", is_bury=True))
            elif verb == "stop":
                bulks = sorted(self.book.bulks)
                self.send(StopBulk(bulks[one % len(bulks)] if bulks else 1))
            else:
                super().play([(verb, one, two)])

    def _start_bulk(self, one: int, two: int) -> None:
        verb = list(BulkVerb)[one % 3]
        which = {
            0: Filter(tenant=TENANTS[two % 4]),
            1: Filter(kind=KINDS[two % len(KINDS)], died_after_ms=self.now_ms // 2),
            2: Filter(reason="failed", text=f"error {two % 4}"),
            3: Filter(seqs=tuple(range(1 + two % 50, 40 + two % 99))),
        }.get(one // 3 % 6, Filter())
        if verb is BulkVerb.PURGE:
            which = Filter(tenant=which.tenant)
        rate_per_s = (None, 0.5, 20.0, 1_000.0)[one // 18 % 4]
        self.send(StartBulk(QUEUES[two // 100 % 4], verb, which, rate_per_s))

    def bulks_running(self) -> int:
        bulks = self.book.bulks.values()
        return sum(bulk.state is BulkState.RUNNING for bulk in bulks)

    def play_with_restarts(self, story: Sequence[Step], every: int) -> None:
        for number, step in enumerate(story):
            self.play([step])
            if number % every == every - 1:
                self.restart()


def snapshot(jobs: dict[int, Job]) -> dict[int, bytes]:
    """Everything about the jobs that has to be remembered.

    Held time is told by other clocks after a restart; the models check what it comes to.
    """
    return {seq: _change_of(job) for seq, job in sorted(jobs.items())}


def _change_of(job: Job) -> bytes:
    credit_ms, job.credit_ms = job.credit_ms, 0
    change = pack_change(job)
    job.credit_ms = credit_ms
    return change
