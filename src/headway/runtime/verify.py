"""Looks through a store for what no owner can have written; it changes nothing there.

Above the store's own check: jobs, rules and history are read, and have to agree.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from headway.core import facts
from headway.core.commands import FactKind
from headway.core.errors import RuleBroken
from headway.core.partition import Partition
from headway.core.results import decode_outcome
from headway.core.states import JobState
from headway.runtime.forms import Counts
from headway.runtime.journal import (
    CHECKPOINT_FACT,
    COUNTS_FACT,
    LANE_FACT,
    MARKS_FACT,
    READER_FACT,
)
from headway.runtime.records import unpack_chapter, unpack_name
from headway.runtime.replay import Replay
from headway.runtime.retention import decode_marks, decode_reader
from headway.runtime.verify_rows import Lanes, RowCheck
from headway.store.errors import StoreError
from headway.store.port import Segment
from headway.store.sqlite import verify as store_check
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.snapshot import Snapshot

Progress = Callable[[str, int, int], object]
"""Told what is looked at, how much of it was, and how much there is."""

TOLD_EVERY: Final = 5_000
FINGERPRINT_BYTES: Final = 16
UNREADABLE: Final = (
    msgspec.MsgspecError,
    RuleBroken,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
)
"""What reading a record raises that is not what it should be."""

_decode_lane: Final = msgspec.msgpack.Decoder(tuple[str, int, bool]).decode
_decode_counts: Final = msgspec.msgpack.Decoder(Counts).decode
_decode_number: Final = msgspec.msgpack.Decoder(int).decode


class Verification:
    """One look through a file. Memory grows with rules and leases, not with jobs.

    But for a byte a job that history tells of.
    """

    def __init__(
        self,
        path: Path,
        options: SqliteOptions | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.path = path
        self.queues = 0
        self.jobs = 0
        self.events = 0
        self._options = options
        self._progress = progress or _ignore
        self._book = Partition().book
        self._lanes: Lanes = {}
        self._counts: dict[str, Counts] = {}
        """As last written down: by a checkpoint first, and by history after it."""
        self._replay = Replay()
        self._last_seq = 0

    def problems(self) -> Iterator[str]:
        """What is wrong, in plain words, as it is found."""
        self._progress("file", 0, 1)
        of_store = store_check.problems(self.path, self._options)
        self._progress("file", 1, 1)
        if of_store:
            yield from of_store  # what comes after would read the same damage
            return
        try:
            with Snapshot(self.path, self._options) as snapshot:
                yield from self._facts(snapshot)
                yield from self._history(snapshot)
                yield from self._rows(snapshot)
                yield from self._keys(snapshot)
                yield from self._results(snapshot)
        except StoreError as error:
            if not store_check.is_unborn(self.path, self._options, error):
                yield f"{type(error).__name__}: {error}"

    def _facts(self, snapshot: Snapshot) -> Iterator[str]:
        """Queues before what belongs to them, as an owner reads them."""
        kept = (MARKS_FACT, READER_FACT)
        known = (*map(str, facts.IN_ORDER), *kept, LANE_FACT, COUNTS_FACT)
        known = (*known, CHECKPOINT_FACT)
        for kind in known:
            for key, blob in snapshot.facts(kind):
                try:
                    self._fact(kind, key, blob)
                except UNREADABLE as error:
                    yield f"fact {kind} {key!r} can't be right: {error}"
        for kind in sorted(set(snapshot.fact_kinds()) - set(known)):
            yield f"facts of kind {kind!r} are not known"
        self.queues = len(self._book.queues)

    def _fact(self, kind: str, key: bytes, blob: bytes) -> None:
        if kind == LANE_FACT:
            lane = _decode_lane(blob)
            self._lanes[int.from_bytes(key, "big")] = lane
            self._check_queue(lane[0])
        elif kind == CHECKPOINT_FACT:
            _decode_number(blob)
        elif kind == MARKS_FACT:
            decode_marks(blob)
        elif kind == READER_FACT:
            decode_reader(blob)
        else:
            queue, name = unpack_name(key)
            if kind not in (FactKind.QUEUE, FactKind.WRITE):
                self._check_queue(queue)
            if kind == COUNTS_FACT:
                self._counts[queue] = _decode_counts(blob)
            else:
                facts.unpack(self._book, (FactKind(kind), queue, name), blob, 0)

    def _check_queue(self, name: str) -> None:
        if name not in self._book.queues:
            raise ValueError(f"its queue {name!r} is not known")

    def _history(self, snapshot: Snapshot) -> Iterator[str]:
        total = snapshot.events_count()
        for segment in snapshot.segments():
            yield from self._segment(segment)
            self.events += segment.count
            self._tell("history", self.events, total)
        self._progress("history", total, total)

    def _segment(self, segment: Segment) -> Iterator[str]:
        try:
            chapter = unpack_chapter(segment.blob)
        except UNREADABLE as error:
            yield f"history {segment.first} can't be read: {error}"
            return
        if len(chapter.events) != segment.count:
            told = len(chapter.events)
            yield f"history {segment.first} has {told} events, not {segment.count}"
        if chapter.last_seq < self._last_seq:
            yield f"history {segment.first}: the last job was {self._last_seq} before"
        self._last_seq = chapter.last_seq
        self._counts.update(chapter.counts)
        for event in chapter.events:
            problem = self._replay.play(event)
            if problem is not None:
                yield f"history {segment.first}: {problem}"

    def _rows(self, snapshot: Snapshot) -> Iterator[str]:
        total = snapshot.jobs_count()
        check = RowCheck(self._book, self._lanes, snapshot.epoch)
        last_seq = 0
        for row in snapshot.rows():
            last_seq = row[0]
            state, found = check.look(row)
            yield from found
            if state is not None:
                problem = self._replay.meet(last_seq, state)
                if problem is not None:
                    yield problem
            self.jobs += 1
            self._tell("jobs", self.jobs, total)
        self._progress("jobs", total, total)
        if last_seq > self._last_seq:
            yield f"job {last_seq} is there; history ends with job {self._last_seq}"
        yield from self._replay.missed()
        for name in sorted(self._book.queues.keys() | check.counts.keys()):
            written = self._counts.get(name, Counts(0, 0, 0, 0, 0, {}))
            yield from check.recount(name, written)

    def _keys(self, snapshot: Snapshot) -> Iterator[str]:
        for queue, key, seq, fingerprint, _ in snapshot.idempotency_keys():
            if queue not in self._book.queues:
                yield f"key {key!r}: its queue {queue!r} is not known"
            if not 0 < seq <= self._last_seq:
                yield f"key {key!r} is of job {seq}, which never was"
            if len(fingerprint) != FINGERPRINT_BYTES:
                yield f"key {key!r} has no fingerprint"

    def _results(self, snapshot: Snapshot) -> Iterator[str]:
        """Of a job that is over, and in a queue that is known."""
        for (seq,) in snapshot.early_results():
            yield f"job {seq} has left a result, and is still there"
        for seq, until_ms, blob in snapshot.results():
            try:
                outcome = decode_outcome(blob)
            except UNREADABLE as error:
                yield f"result {seq} can't be read: {error}"
                continue
            if outcome.state not in (JobState.DONE, JobState.CANCELLED):
                yield f"result {seq} is of a job that is {outcome.state}"
            if outcome.queue not in self._book.queues:
                yield f"result {seq}: its queue {outcome.queue!r} is not known"
            if not 0 < seq <= self._last_seq:
                yield f"result {seq} is of a job that never was"
            if until_ms <= outcome.ended_ms:
                yield f"result {seq} was over before its job was"
            problem = self._replay.left(seq, outcome.state)
            if problem is not None:
                yield problem

    def _tell(self, what: str, done: int, total: int) -> None:
        if done % TOLD_EVERY == 0:
            self._progress(what, done, total)


def problems(path: Path, options: SqliteOptions | None = None) -> list[str]:
    """What is wrong with a store, for callers who do not expect much."""
    return list(Verification(path, options).problems())


def _ignore(_what: str, _done: int, _total: int) -> None:
    """Nobody watches."""
