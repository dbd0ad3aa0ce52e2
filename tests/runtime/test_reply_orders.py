"""P9: whatever the order of waits, replies, timeouts, lost leases and restarts.

A plain model says what each reply and each lease must be told; the runtime, on a disk in
memory and in virtual time, has to agree, over any number of restarts of its owner.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from headway.core import events
from headway.core.commands import Ack, Configure, Lease, Nack, Reply, ReplyFate, Wait
from headway.core.config import QueueConfig
from headway.core.errors import WrongState
from headway.core.retry import Fixed
from headway.runtime.views import Handed, LeasedJob
from tests.runtime.desk import Desk

LEASE_MS = 10_000
EARLY_MS = 60_000
JOBS = 4
KEYS = st.sampled_from(["a", "b"])


@dataclass
class Modelled:
    """A job as it has to be."""

    state: str = "ready"
    token: int = 0
    until_ms: int = 0
    """The end of its lease, or of its wait."""
    key: str = ""
    reply: bytes | None = None
    is_done_on_reply: bool = False


@dataclass
class Key:
    """A reply key as it has to be."""

    waiting: int | None = None
    early: tuple[bytes, int] | None = None
    was_answered: bool | None = None


@dataclass
class Model:
    jobs: dict[int, Modelled]
    keys: dict[str, Key] = field(default_factory=lambda: {"a": Key(), "b": Key()})

    def pass_time(self, now_ms: int) -> None:
        """Leases and waits end; a job that waited in vain forgets its last reply."""
        for job in self.jobs.values():
            if job.until_ms > now_ms or job.state not in ("leased", "waiting"):
                continue
            if job.state == "waiting":
                self.keys[job.key].waiting = None
                self.keys[job.key].was_answered = False
                job.reply = None
            job.state, job.token = "ready", 0

    def resolve(self, key: str, payload: bytes) -> None:
        found = self.keys[key]
        assert found.waiting is not None
        job = self.jobs[found.waiting]
        job.state = "done" if job.is_done_on_reply else "ready"
        job.reply = payload
        found.waiting, found.was_answered = None, True

    def reply(self, key: str, payload: bytes, now_ms: int) -> ReplyFate:
        found = self.keys[key]
        if found.waiting is not None:
            self.resolve(key, payload)
            return ReplyFate.RESOLVED
        if found.early is not None and found.early[1] > now_ms:
            return ReplyFate.REPEATED
        if found.was_answered is not None:
            return ReplyFate.REPEATED if found.was_answered else ReplyFate.LATE
        found.early = payload, now_ms + EARLY_MS
        return ReplyFate.EARLY

    def wait(self, seq: int, key: str, until_ms: int, now_ms: int) -> None:
        job, found = self.jobs[seq], self.keys[key]
        job.state, job.key, job.until_ms = "waiting", key, until_ms
        found.waiting, found.was_answered = seq, None
        early, found.early = found.early, None
        if early is not None and early[1] > now_ms:
            self.resolve(key, early[0])


class ReplyOrders(RuleBasedStateMachine):
    """Any order of what workers, partners, time and crashes can do."""

    @initialize()
    def open(self) -> None:
        self.desk = Desk()
        config = QueueConfig(
            name="q", lease_ms=LEASE_MS, retry=Fixed(0), early_reply_ms=EARLY_MS
        )
        self.desk.ask(Configure(config))
        seqs = self.desk.put(JOBS, attempts_max=1_000)
        self.model = Model({seq: Modelled() for seq in seqs})
        self.told: list[ReplyFate] = []

    def leased(self) -> list[int]:
        return [seq for seq, job in self.model.jobs.items() if job.state == "leased"]

    @rule()
    def lease(self) -> None:
        handed = self.desk.ask(Lease(max=1))
        assert isinstance(handed, Handed)
        ready = {seq for seq, job in self.model.jobs.items() if job.state == "ready"}
        assert bool(handed.jobs) == bool(ready)
        for job in handed.jobs:
            self._taken(job)

    def _taken(self, job: LeasedJob) -> None:
        expected = self.model.jobs[job.seq]
        assert expected.state == "ready"
        assert job.reply == expected.reply
        expected.state, expected.token = "leased", job.token
        expected.until_ms = self.desk.now_ms + LEASE_MS

    @precondition(lambda self: self.leased())
    @rule(
        data=st.data(),
        key=KEYS,
        timeout_ms=st.integers(1, 30_000),
        is_done=st.booleans(),
    )
    def wait(self, data: Any, key: str, timeout_ms: int, is_done: bool) -> None:
        seq = data.draw(st.sampled_from(self.leased()))
        job = self.model.jobs[seq]
        got: Any = self.desk.ask(Wait(job.token, key, timeout_ms, is_done))
        if self.model.keys[key].waiting is not None:
            assert isinstance(got, WrongState)
            return
        job.is_done_on_reply = is_done
        now_ms = self.desk.now_ms
        self.model.wait(seq, key, now_ms + timeout_ms, now_ms)

    @rule(key=KEYS, payload=st.binary(max_size=3), times=st.integers(1, 3))
    def reply(self, key: str, payload: bytes, times: int) -> None:
        for _ in range(times):
            fate = self.desk.ask(Reply("q", key, payload))
            assert fate is self.model.reply(key, payload, self.desk.now_ms)
            self.told.append(fate)

    @precondition(lambda self: self.leased())
    @rule(data=st.data(), is_acked=st.booleans())
    def settle(self, data: Any, is_acked: bool) -> None:
        seq = data.draw(st.sampled_from(self.leased()))
        job = self.model.jobs[seq]
        self.desk.ask(Ack([job.token]) if is_acked else Nack(job.token))
        job.state = "done" if is_acked else "ready"
        job.reply = None

    @rule(passed_ms=st.sampled_from([1, 500, LEASE_MS, 30_000, EARLY_MS]))
    def pass_time(self, passed_ms: int) -> None:
        """Leases that nobody extends are lost, and waits end."""
        self.desk.now_ms += passed_ms
        self.desk.owner.step([], self.desk.now_ms)
        self.model.pass_time(self.desk.now_ms)

    @rule()
    def restart(self) -> None:
        """The owner is gone, and another takes its place."""
        self.desk.open()

    @invariant()
    def states_agree(self) -> None:
        states = [job.state for job in self.model.jobs.values()]
        counts = self.desk.counts()
        assert counts.ready + counts.scheduled == states.count("ready")
        assert counts.leased == states.count("leased")
        assert counts.waiting == states.count("waiting")
        assert counts.dead == 0

    def teardown(self) -> None:
        """Each wait was resolved once at most, and each reply is in history once."""
        kept = self.desk.events(events.ReplyKept)
        replied = self.desk.events(events.Replied)
        answered = sum(not event.is_early for event in replied)
        assert answered == self.told.count(ReplyFate.RESOLVED)
        assert [event.fate for event in kept] == [
            fate.value for fate in self.told if fate is not ReplyFate.RESOLVED
        ]
        waits = [job.state for job in self.model.jobs.values()].count("waiting")
        ends = [
            event
            for event in self.desk.events(events.Retried)
            if event.reason == "no reply"
        ]
        waited = len(self.desk.events(events.Waited))
        assert waited == len(replied) + len(ends) + waits


ReplyOrders.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestReplyOrders = ReplyOrders.TestCase
