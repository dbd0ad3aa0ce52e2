"""What must have happened, told from commands and events alone."""

from collections import Counter
from typing import Any

from headway.core import events
from headway.core.commands import (
    Accepted,
    Command,
    Decision,
    Enqueue,
    Granted,
    Lease,
    Wait,
)
from headway.core.job import Job
from headway.core.states import LIVE, JobState, is_allowed

STAYS = (events.CancelRequested, events.Extended)
TARGETS: dict[type, JobState] = {
    events.Promoted: JobState.READY,
    events.Rescheduled: JobState.SCHEDULED,
    events.Leased: JobState.LEASED,
    events.Acked: JobState.DONE,
    events.Retried: JobState.SCHEDULED,
    events.Released: JobState.READY,
    events.Lost: JobState.READY,
    events.Waited: JobState.WAITING,
    events.Cancelled: JobState.CANCELLED,
    events.Expired: JobState.DEAD,
    events.Buried: JobState.DEAD,
    events.Redriven: JobState.READY,
    events.Discarded: JobState.CANCELLED,
}


class Record:
    """One job as its history tells it."""

    def __init__(self, event: events.Enqueued) -> None:
        self.queue = event.queue
        self.state = JobState.READY
        self.run_at_ms = event.run_at_ms
        self.attempt = 0
        self.generation = 0
        self.token = 0
        self.is_continuing = False
        self.is_done_on_reply = False
        self.leases = 0
        self.held_ms = 0
        """Time since `run_at_ms` that it was ready and held, or ran to no end."""
        self.started_ms = 0
        self.is_lazy = False
        """The core may have noticed late that it was held."""


class HistoryModel:
    """Follows the events, and refuses those that may not happen."""

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.tokens: set[int] = set()
        self.ticks: Counter[tuple[str, str, int]] = Counter()
        self.last_seq = 0
        self.waiting: dict[Lease, None] = {}
        self._commands: dict[int, bool] = {}

    def expect(self, commands: list[Command]) -> None:
        """Commands that are about to be decided."""
        self._commands = {
            command.token: command.is_done_on_reply
            for command in commands
            if isinstance(command, Wait)
        }
        self.waiting.update((c, None) for c in commands if isinstance(c, Lease))

    def follow(self, decision: Decision, now_ms: int) -> None:
        for event in decision.events:
            if isinstance(event, events.Event):
                assert event.at_ms == now_ms
                self._move(event)
            elif isinstance(event, events.Ticked):
                tick = (event.queue, event.schedule, event.tick_ms)
                self.ticks[tick] += 1
                assert self.ticks[tick] == 1, "invariant 21"
                assert event.tick_ms <= now_ms, "invariant 20"
        touched = {e.seq for e in decision.events if isinstance(e, events.Event)}
        assert sorted(job.seq for job in decision.jobs) == sorted(touched)
        for job in decision.jobs:
            self._compare(job, self.records[job.seq])
        self._hear(decision, now_ms)

    def count(self, queue: str, state: JobState) -> int:
        return sum(
            record.queue == queue and record.state is state
            for record in self.records.values()
        )

    def open_jobs(self) -> list[int]:
        return [seq for seq, rec in self.records.items() if rec.state in LIVE]

    def _move(self, event: events.Event) -> None:
        record = self.records.get(event.seq)
        source = None if record is None else record.state
        if isinstance(event, events.Enqueued):
            assert record is None, "invariant 5"
            assert event.seq > self.last_seq, "invariant 5"
            self.last_seq = event.seq
            record = self.records[event.seq] = Record(event)
            is_ready = event.run_at_ms <= event.at_ms
            target = JobState.READY if is_ready else JobState.SCHEDULED
        else:
            assert record is not None, "invariant 2"
            target = self._target(event, record)
        if isinstance(event, STAYS):
            assert record.state is JobState.LEASED, "invariant 4"
            return
        verb = str(type(event).__struct_config__.tag)
        assert is_allowed(verb, source, target), ("invariant 4", verb, source, target)
        record.state = target
        self._note(event, record)

    def _target(self, event: events.Event, record: Record) -> JobState:
        if isinstance(event, events.Replied):
            assert event.is_done == record.is_done_on_reply
            return JobState.DONE if event.is_done else JobState.READY
        return TARGETS.get(type(event), record.state)

    def _note(self, event: Any, record: Record) -> None:
        match event:
            case events.Leased():
                self._note_lease(event, record)
            case events.Waited():
                record.is_continuing = True
                record.is_done_on_reply = self._commands[record.token]
            case events.Retried() | events.Rescheduled():
                record.run_at_ms = event.run_at_ms
                record.held_ms = 0
            case events.Replied():
                if not event.is_done:
                    record.run_at_ms = event.at_ms
                    record.held_ms = 0
            case events.Released() | events.Lost():
                record.attempt -= isinstance(event, events.Released)
            case events.Redriven():
                assert event.generation == record.generation + 1, "invariant 4"
                record.generation += 1
                record.attempt = 0
                record.run_at_ms = event.at_ms
                record.held_ms = 0
            case _:
                pass
        if record.state is not JobState.LEASED:
            record.token = 0
        if not isinstance(
            event, events.Waited | events.Replied | events.Leased | events.Rescheduled
        ) and not isinstance(event, events.Promoted):
            record.is_continuing = False

    def _note_lease(self, event: events.Leased, record: Record) -> None:
        assert event.token not in self.tokens, "invariant 8"
        self.tokens.add(event.token)
        record.token = event.token
        record.leases += 1
        record.started_ms = event.at_ms
        if not record.is_continuing:
            record.attempt += 1
        assert event.attempt == record.attempt, "invariant 7"
        assert event.at_ms >= record.run_at_ms, "invariant 20"
        assert event.wait_ms >= 0
        assert event.held_ms >= 0
        passed_ms = event.at_ms - record.run_at_ms
        assert event.held_ms + event.wait_ms == passed_ms, "held time counts once"
        if not record.is_lazy:
            assert event.held_ms == record.held_ms, "held time"

    def _compare(self, job: Job, record: Record) -> None:
        assert job.state is record.state, "invariant 4"
        assert job.attempt == record.attempt, "invariant 7"
        assert job.attempt <= job.attempts_max, "invariant 7"
        assert job.token == record.token, "invariant 8"
        assert job.run_at_ms == record.run_at_ms

    def _hear(self, decision: Decision, now_ms: int) -> None:
        for command, answer in decision.answers:
            if isinstance(command, Lease):
                assert self.waiting.pop(command, 1) is None, "answered twice"
                if isinstance(answer, Granted):
                    assert len(answer.jobs) <= command.max
            if isinstance(command, Enqueue) and isinstance(answer, Accepted):
                assert all(seq in self.records for seq in answer.seqs), "invariant 1"
        assert all(c.wait_until_ms > now_ms for c in self.waiting), "a wait that ends"
