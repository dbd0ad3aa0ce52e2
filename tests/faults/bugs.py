"""Bugs to be planted one at a time: each breaks the product in one known way."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headway.core import events, leases, life, memory, partition, restore
from headway.core.book import Book
from headway.core.commands import Ack, FactKind, Settled
from headway.core.job import Job
from headway.core.limits import RateGauge
from headway.core.partition import Partition
from headway.core.states import JobState
from headway.core.turn import Turn
from headway.runtime import owner, records, recovery, scanning
from headway.runtime.alike import Alike
from headway.runtime.forms import Heading
from headway.runtime.journal import Journal
from headway.runtime.records import encode, unpack_chapter, unpack_heading, unpack_job
from headway.sim.faults.clock import StoreClock
from headway.store.memory import MemoryDisk, MemoryStore
from headway.store.port import HELD, Batch, Segment
from headway.store.sqlite.store import SqliteStore

Plant = Callable[[pytest.MonkeyPatch], None]


def _rewrite(
    patch: pytest.MonkeyPatch, change: Callable[[Batch], Batch | None]
) -> None:
    """Both stores get another batch than the owner gave them; None drops it."""
    for kind in (MemoryStore, SqliteStore):
        real = kind.commit

        def commit(
            self: Any, batch: Batch, epoch: int, real: Callable[..., None] = real
        ) -> None:
            changed = change(batch)
            if changed is not None:
                real(self, changed, epoch)

        patch.setattr(kind, "commit", commit)


def _replace(batch: Batch, **fields: Any) -> Batch:
    return msgspec.structs.replace(batch, **fields)


def answers_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    """Every commit waits for the next one to be written; the last dies with its owner."""
    for kind in (MemoryStore, SqliteStore):
        real = kind.commit

        def commit(
            self: Any, batch: Batch, epoch: int, real: Callable[..., None] = real
        ) -> None:
            waiting = self.__dict__.get("_waiting")
            if waiting is not None:
                real(self, *waiting)
            self._waiting = (batch, epoch)

        patch.setattr(kind, "commit", commit)


def drops_some_commits(patch: pytest.MonkeyPatch) -> None:
    """Small commits without new jobs are taken for not worth a write."""
    _rewrite(patch, lambda b: b if b.puts or b.facts or len(b.moves) > 1 else None)


def writes_after_being_replaced(patch: pytest.MonkeyPatch) -> None:
    def commit(self: Any, batch: Batch, epoch: int) -> None:
        disk = self._opened()
        last = disk.history[-1] if disk.history else Segment(0, 1, 0, b"")
        if batch.segment is not None:
            first = last.first + last.count
            batch = _replace(batch, segment=batch.segment._replace(first=first))
        batch = _replace(
            batch,
            puts=[row for row in batch.puts if row[0] not in disk.jobs],
            moves=[move for move in batch.moves if move[5] in disk.jobs],
            ends=[end for end in batch.ends if end[0] in disk.jobs],
        )
        disk.check(batch)
        disk.write(batch)

    patch.setattr(MemoryStore, "commit", commit)


def forgets_leases(patch: pytest.MonkeyPatch) -> None:
    def without_held(batch: Batch) -> Batch:
        return _replace(batch, moves=[m for m in batch.moves if m[0] != HELD])

    _rewrite(patch, without_held)


def forgets_acks(patch: pytest.MonkeyPatch) -> None:
    _rewrite(patch, lambda batch: _replace(batch, ends=[]))


def forgets_keys(patch: pytest.MonkeyPatch) -> None:
    _rewrite(patch, lambda batch: _replace(batch, keys=[]))


def _without(patch: pytest.MonkeyPatch, kind: str) -> None:
    """Facts of a kind are not written, but for those of the first commit."""

    def without(batch: Batch) -> Batch:
        if batch.segment is not None and batch.segment.first == 1:
            return batch
        return _replace(batch, facts=[f for f in batch.facts if f[0] != kind])

    _rewrite(patch, without)


def forgets_pauses(patch: pytest.MonkeyPatch) -> None:
    _without(patch, FactKind.QUEUE)


def forgets_paused_tenants(patch: pytest.MonkeyPatch) -> None:
    _without(patch, FactKind.TENANT)


def forgets_early_replies(patch: pytest.MonkeyPatch) -> None:
    _without(patch, FactKind.REPLY)


def forgets_ticks(patch: pytest.MonkeyPatch) -> None:
    """What a schedule was told stays; which tick it has had does not."""

    def only_rules(batch: Batch) -> Batch:
        if batch.segment is not None:
            told = unpack_chapter(batch.segment.blob).events
            if any(isinstance(event, events.RuleChanged) for event in told):
                return batch
        facts = [fact for fact in batch.facts if fact[0] != FactKind.SCHEDULE]
        return _replace(batch, facts=facts)

    _rewrite(patch, only_rules)


def leaves_gaps_in_history(patch: pytest.MonkeyPatch) -> None:
    """Every numbering starts ten higher than it should, and nobody minds."""

    def later(batch: Batch) -> Batch:
        segment = batch.segment
        if segment is None or segment.first == 1:
            return batch
        return _replace(batch, segment=segment._replace(first=segment.first + 10))

    def check(self: MemoryDisk, batch: Batch) -> None:
        return None

    _rewrite(patch, later)
    patch.setattr(MemoryDisk, "check", check)


def miscounts_in_history(patch: pytest.MonkeyPatch) -> None:
    """Jobs that die are counted twice."""

    def off(batch: Batch) -> Batch:
        if batch.segment is None:
            return batch
        chapter = unpack_chapter(batch.segment.blob)
        if any(isinstance(event, events.Buried) for event in chapter.events):
            for counts in chapter.counts.values():
                counts.dead += 1
        return _replace(batch, segment=batch.segment._replace(blob=encode(chapter)))

    _rewrite(patch, off)


def _restored(patch: pytest.MonkeyPatch, change: Callable[[Book, Job], None]) -> None:
    """Something more is done to every job that is restored."""
    real = restore.restore_job

    def restore_job(book: Book, job: Job, now_ms: int) -> None:
        real(book, job, now_ms)
        change(book, job)

    patch.setattr(restore, "restore_job", restore_job)


def _recovered(patch: pytest.MonkeyPatch, change: Callable[[Book], None]) -> None:
    """Something more is done to every partition that is recovered."""
    real = recovery.recover

    def recover(partition: Partition, *rest: Any) -> Journal:
        journal = real(partition, *rest)
        change(partition.book)
        return journal

    patch.setattr(owner, "recover", recover)


def counts_dead_jobs_twice(patch: pytest.MonkeyPatch) -> None:
    def drift(book: Book) -> None:
        for queue in book.queues.values():
            queue.dead *= 2

    _recovered(patch, drift)


def forgets_when_leases_end(patch: pytest.MonkeyPatch) -> None:
    def disarm(book: Book, job: Job) -> None:
        if job.state is JobState.LEASED and job.timer_ms:
            book.timers.remove(job, job.timer_ms, job.timer_place)

    _restored(patch, disarm)


def forgets_delays(patch: pytest.MonkeyPatch) -> None:
    def forget(book: Book) -> None:
        book.shared.reads.pop(book.near, None)
        book.near.cut = None

    _recovered(patch, forget)


def forgets_what_it_left_in_the_store(patch: pytest.MonkeyPatch) -> None:
    """A turn that memory holds in part is taken to be whole."""
    real = memory._cut

    def cut(book: Book, turn: Turn, most: int, now_ms: int) -> None:
        real(book, turn, most, now_ms)
        turn.cut = None

    patch.setattr(memory, "_cut", cut)


def ends_leases_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    def shorten(book: Book, job: Job) -> None:
        if job.state is JobState.LEASED:
            job.lease_until_ms = 1
            book.arm(job)

    _restored(patch, shorten)


def frees_units_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    def free(book: Book, job: Job) -> None:
        for hold in job.holds:
            hold.gauge.used -= hold.amount
        job.holds = ()

    _restored(patch, free)


def forgets_attempts(patch: pytest.MonkeyPatch) -> None:

    def read(*row: Any) -> Job:
        job = unpack_job(*row)
        job.attempt = 0
        return job

    for module in (records, recovery, scanning):
        patch.setattr(module, "unpack_job", read)


def reuses_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "TOKENS_PER_EPOCH", 0)


def reuses_identities(patch: pytest.MonkeyPatch) -> None:

    def read(blob: bytes) -> Heading:
        heading = unpack_heading(blob)
        heading.last_seq = max(0, heading.last_seq - 3)
        return heading

    patch.setattr(recovery, "unpack_heading", read)


def turns_the_clock_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoreClock, "least_ms", lambda self, last_ms: 0)


def bursts_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    real = RateGauge.__init__

    def begin(self: RateGauge, limit: Any, value: str, since_ms: int = 0) -> None:
        real(self, limit, value)

    patch.setattr(RateGauge, "__init__", begin)


def takes_stale_tokens(patch: pytest.MonkeyPatch) -> None:
    """An ack finds its job by any token that the job ever had."""
    owners: dict[int, Job] = {}
    real_lease, real_ack = life.lease, leases.ack

    def lease(book: Book, job: Job, until_ms: int, worker: str, now_ms: int) -> None:
        real_lease(book, job, until_ms, worker, now_ms)
        owners[job.token] = job

    def ack(book: Book, command: Ack, now_ms: int) -> Settled:
        newest = {token: _token_now(owners, token) for token in command.tokens}
        real_ack(book, Ack([token for token in newest.values() if token]), now_ms)
        return Settled([token for token in newest if not newest[token]], [])

    patch.setattr(life, "lease", lease)
    patch.setitem(partition._HANDLERS, Ack, ack)


def _token_now(owners: dict[int, Job], token: int) -> int:
    return owners[token].token if token in owners else 0


def mixes_payloads_up(patch: pytest.MonkeyPatch) -> None:
    """Rows are read back with the payload of another job."""

    def read(seq: int, body: bytes, change: bytes | None) -> Job:
        job = unpack_job(seq, body, change)
        if job.spec.payload and seq % 3 == 0:
            job.spec = msgspec.structs.replace(job.spec, payload=b"?")
        return job

    def alike(self: Alike, seq: int, body: bytes) -> Job:
        return read(seq, body, None)

    for module in (records, recovery, scanning):
        patch.setattr(module, "unpack_job", read)
    patch.setattr(Alike, "job", alike)
