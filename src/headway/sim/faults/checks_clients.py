"""Checkers of what clients were told: no answer says more than history."""

from collections import Counter
from typing import Any

from headway.core import events
from headway.core.commands import (
    Accepted,
    Ack,
    Cancel,
    Changed,
    Enqueue,
    Extend,
    Lease,
    Nack,
    Release,
    Settled,
    Wait,
)
from headway.core.errors import IdempotencyConflict
from headway.core.spec import JobSpec
from headway.core.states import JobState
from headway.runtime.owner import Ask
from headway.runtime.views import Handed, LeasedJob
from headway.sim.faults.account import Account
from headway.sim.faults.checks_store import Rows
from headway.sim.faults.verdict import expect


class Truth:
    """P1, P5: whatever is answered has been committed, and nothing else."""

    def __init__(self, account: Account, rows: Rows) -> None:
        self._account = account
        self._rows = rows

    def answered(self, ask: Ask, reply: Any) -> None:
        match ask, reply:
            case Enqueue(), Accepted():
                self._accepted(ask, reply)
            case Lease(), Handed():
                for job in reply.jobs:
                    self._handed(job)
            case ((Ack() | Release() | Extend()), Settled()):
                self._settled(ask, reply)
            case Nack(token=token), Changed():
                ends = (events.Retried, events.Buried, events.Cancelled)
                self._ended(token, ends, ask)
            case Wait(token=token), Changed():
                self._ended(token, (events.Waited, events.Cancelled), ask)
            case Cancel(seq=seq), Changed(count=1):
                state = self._account.records[seq].state
                expect(state is JobState.CANCELLED, "P1: not cancelled", seq, state)

    def _accepted(self, ask: Enqueue, reply: Accepted) -> None:
        for seq, spec in zip(reply.seqs, ask.specs, strict=True):
            record = self._account.records.get(seq)
            expect(record is not None, "P1: accepted, and not in history", seq)
            assert record is not None
            is_same = (record.queue, record.tenant) == (ask.queue, spec.tenant)
            expect(is_same, "P1: accepted as another", seq, ask)
            self._rows.payloads.setdefault(seq, spec.payload)

    def _handed(self, job: LeasedJob) -> None:
        record = self._account.held.get(job.token)
        expect(record is not None, "P1: handed out, and not in history", job.seq)
        assert record is not None
        told = (job.seq, job.attempt, job.lease_until_ms)
        known = (record.seq, record.attempt, record.lease_until_ms)
        expect(told == known, "P1: handed out as another", told, known)

    def _settled(self, ask: Ack | Release | Extend, reply: Settled) -> None:
        for token in ask.tokens:
            is_held = token in self._account.held
            if token in reply.stale:
                expect(not is_held, "P5: refused, and still held", token)
            elif isinstance(ask, Ack):
                self._ended(token, (events.Acked,), ask)
            elif isinstance(ask, Release):
                self._ended(token, (events.Released, events.Cancelled), ask)

    def _ended(self, token: int, ends: tuple[type, ...], ask: Ask) -> None:
        found = self._account.ended.get(token)
        expect(found in ends, "P1: answered, and not in history", found, ask)


class Idempotency:
    """19: within its window a key has one identity, and one body."""

    def __init__(self, account: Account, windows_ms: dict[str, int]) -> None:
        self._account = account
        self._windows_ms = windows_ms
        self._known: dict[tuple[str, str], tuple[int, bytes]] = {}

    def answered(self, ask: Ask, reply: Any, now_ms: int) -> None:
        if not isinstance(ask, Enqueue):
            return
        if isinstance(reply, Accepted):
            for seq, spec in zip(reply.seqs, ask.specs, strict=True):
                if spec.idempotency_key is not None:
                    self._accepted(ask.queue, spec.idempotency_key, spec, seq)
        elif isinstance(reply, IdempotencyConflict):
            is_known = any(self._differs(ask.queue, spec) for spec in ask.specs)
            expect(is_known, "invariant 19: a conflict with nothing", ask, now_ms)

    def delivered(self, job: LeasedJob) -> None:
        """A worker has it: its producer may never have heard of it."""
        key = job.spec.idempotency_key
        if key is not None:
            self._accepted(job.queue, key, job.spec, job.seq)

    def _accepted(self, queue: str, key: str, spec: JobSpec, seq: int) -> None:
        known = self._known.get((queue, key))
        if known is not None and known[0] != seq:
            records = self._account.records
            apart_ms = records[seq].enqueued_ms - records[known[0]].enqueued_ms
            is_past = abs(apart_ms) >= self._windows_ms[queue]
            expect(is_past, "invariant 19: two identities", key, known[0], seq)
        elif known is not None:
            expect(known[1] == spec.payload, "invariant 19: two bodies", key, seq)
        if known is None or seq > known[0]:
            self._known[queue, key] = (seq, spec.payload)

    def _differs(self, queue: str, spec: JobSpec) -> bool:
        """Whether another body may be known; one of a lost answer is not known here."""
        known = self._known.get((queue, spec.idempotency_key or ""))
        return known is None or known[1] != spec.payload


class TotalQueue:
    """1, 2, 6 and P2 as clients see it: multisets of payloads that went in and came out."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._attempted: Counter[bytes] = Counter()
        self._accepted: set[int] = set()
        self._seqs: dict[bytes, set[int]] = {}
        self._changed: dict[int, set[bytes]] = {}
        self._acked: dict[int, int] = {}
        self._ticking: set[bytes] = set()
        self.duplicated = 0
        self.recovered = 0
        self._delivered: Counter[int] = Counter()

    def arrived(self, specs: list[JobSpec]) -> None:
        """An enqueue that has come to the owner, once more."""
        self._attempted.update(spec.payload for spec in specs)

    def ticks(self, payload: bytes) -> None:
        """Jobs of a schedule: nobody sends them."""
        self._ticking.add(payload)

    def accepted(self, seqs: list[int]) -> None:
        """The producer was told."""
        self._accepted.update(seqs)

    def changes(self, seq: int, payload: bytes) -> None:
        """A worker asks for another payload for the next attempt."""
        self._changed.setdefault(seq, set()).add(payload)

    def acked(self, seq: int, token: int) -> None:
        """The worker was told that its job is done."""
        self._acked[seq] = token

    def delivered(self, job: LeasedJob) -> None:
        payload = job.spec.payload
        is_known = payload in self._ticking or self._attempted[payload] > 0
        expect(is_known, "invariant 2: unexpected", job.seq, payload)
        is_whole = job.payload == payload or job.payload in self._changed.get(
            job.seq, ()
        )
        expect(is_whole, "invariant 6: another payload", job.seq, job.payload)
        token = self._acked.get(job.seq)
        is_right = token is None or job.token < token
        expect(is_right, "P2: acked, and delivered again", job.seq, job.token)
        if payload not in self._ticking:
            seqs = self._seqs.setdefault(payload, set())
            seqs.add(job.seq)
            most = self._attempted[payload]
            expect(len(seqs) <= most, "invariant 2: duplicated", payload, seqs, most)
        self._delivered[job.seq] += 1
        self.duplicated += self._delivered[job.seq] == 2

    def drained(self) -> None:
        """Everything is over: what was accepted has an outcome."""
        records = self._account.records
        lost = sorted(self._accepted - records.keys())
        expect(not lost, "invariant 1: lost", lost[:10])
        done = [seq for seq in self._accepted if records[seq].state is JobState.DONE]
        for seq in done:
            expect(records[seq].leases > 0, "invariant 1: done by nobody", seq)
        self.recovered = len(self._delivered.keys() - self._accepted)
