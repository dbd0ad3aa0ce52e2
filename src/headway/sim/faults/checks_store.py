"""Checkers of what a store holds when an owner takes it over: history, rows, counters."""

from collections.abc import Iterator
from typing import Any, Final

from headway.core.states import JobState
from headway.runtime.forms import Chapter
from headway.runtime.journal import LANE_FACT
from headway.runtime.records import unpack_job
from headway.sim.faults.account import Account, Record
from headway.sim.faults.verdict import expect
from headway.store.port import DEAD, HELD, SCHEDULED, Row, Segment, Store

ALL: Final = 1 << 30
ERRORS_KEPT: Final = 20
_PLACES: Final = {
    JobState.LEASED: HELD,
    JobState.WAITING: HELD,
    JobState.SCHEDULED: SCHEDULED,
    JobState.DEAD: DEAD,
}
_COUNTED: Final = (
    JobState.READY,
    JobState.SCHEDULED,
    JobState.LEASED,
    JobState.WAITING,
    JobState.DEAD,
)
Five = tuple[int, ...]


class Epochs:
    """10: every owner's epoch is above all before it."""

    def __init__(self) -> None:
        self.last = 0

    def taken(self, epoch: int) -> None:
        expect(epoch > self.last, "invariant 10: epoch", epoch, self.last)
        self.last = epoch


class Numbers:
    """History has no gaps, and its time never goes back."""

    def __init__(self) -> None:
        self.next = 1
        self._at_ms = 0

    def follow(self, segment: Segment, count: int) -> None:
        expect(segment.first == self.next, "history: a gap", segment[:3], self.next)
        expect(segment.count == count, "history: its count", segment[:3], count)
        expect(segment.at_ms >= self._at_ms, "time went back", segment[:3], self._at_ms)
        self.next += count
        self._at_ms = segment.at_ms


class ChapterCounts:
    """18: the counts of every commit are what a replay of its events comes to."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def follow(self, chapter: Chapter) -> None:
        last_seq = self._account.last_seq
        is_same = chapter.last_seq == last_seq
        expect(is_same, "invariant 18: last seq", chapter.last_seq, last_seq)
        for queue, counts in chapter.counts.items():
            expected = replayed(self._account, queue)
            is_same = five(counts) == expected
            expect(is_same, "invariant 18: counts", queue, counts, expected)
            by_lane = sum(counts.lanes.values())
            # Those that go on after a wait are counted by no lane.
            expect(by_lane <= counts.ready, "invariant 18: lanes", queue, counts)


class Prefix:
    """P1: what was committed once is in history for good, to the last byte."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []

    def check(self, store: Store) -> list[Segment]:
        """Answers what is there beyond all that is known."""
        found = store.history(1, ALL)
        known = len(self.segments)
        is_whole = found[:known] == self.segments
        expect(is_whole, "P1: commits are gone", len(found), known)
        return found[known:]


class Rows:
    """1, 6, 18, 27: the rows are the jobs that history knows, and as it knows them."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.payloads: dict[int, bytes] = {}
        """What is known to have been enqueued."""

    def check(self, store: Store) -> None:
        found: set[int] = set()
        records = self._account.records
        for row in _all_rows(store):
            seq = row[0]
            expect(seq in records, "invariant 2: a row of nobody", seq)
            expect(seq not in found, "invariant 18: two rows", seq)
            found.add(seq)
            self._compare(row, records[seq])
        expected = {
            seq
            for seq, record in records.items()
            if record.state not in (JobState.DONE, JobState.CANCELLED)
        }
        missing = sorted(expected - found)
        expect(not missing, "invariant 1: rows are gone", missing[:10])
        more = sorted(found - expected)
        expect(not more, "invariant 4: ended, and still there", more[:10])

    def _compare(self, row: Row, record: Record) -> None:
        job = unpack_job(row[0], row[6], row[5])
        told = [
            ("state", job.state, record.state),
            ("queue", job.queue, record.queue),
            ("attempt", job.attempt, record.attempt),
            ("generation", job.generation, record.generation),
            ("run_at_ms", job.run_at_ms, record.run_at_ms),
            ("token", job.token, record.token),
            ("errors", len(job.errors), min(record.errors, ERRORS_KEPT)),
            ("cancel", job.is_cancel_requested, record.is_cancel_requested),
        ]
        if record.state is JobState.LEASED:
            told.append(("lease", job.lease_until_ms, record.lease_until_ms))
        if record.state is JobState.WAITING:
            told.append(("key", job.reply_key, record.reply_key))
            told.append(("until", job.wait_until_ms, record.wait_until_ms))
        lane = _PLACES.get(record.state)
        if lane is not None:
            told.append(("lane", row[1], lane))
        elif not (record.is_continuing and row[1] == HELD):
            # Only what goes on after a wait may hold units while it is ready.
            expect(row[1] > 0, "invariant 14: not in a lane", row[:5])
        for name, stored, expected in told:
            is_same = stored == expected
            expect(is_same, f"rows: {name} of job {row[0]}", stored, expected)
        payload = self.payloads.get(row[0])
        if payload is not None:
            expect(job.spec.payload == payload, "invariant 6: payload", row[0])


def replayed(account: Account, queue: str) -> Five:
    """How many jobs of a queue are in which state, as history tells it."""
    return tuple(account.counts[queue, state] for state in _COUNTED)


def five(counts: Any) -> Five:
    """The same of whatever counts a queue's jobs."""
    return tuple(getattr(counts, state.value) for state in _COUNTED)


def _all_rows(store: Store) -> Iterator[Row]:
    lanes = [int.from_bytes(key, "big") for key, _ in store.facts(LANE_FACT)]
    for lane in (HELD, SCHEDULED, DEAD, *lanes):
        yield from store.turns(lane, None, ALL, ALL)
