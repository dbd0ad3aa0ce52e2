"""Decisions as batches: every job that changed goes to where it now stands."""

from collections.abc import Iterable, Sequence
from typing import Final

from headway.core import facts
from headway.core.book import Book
from headway.core.commands import Decision
from headway.core.errors import BadValue
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.queue import Queue
from headway.core.states import CANCELLED, DEAD, DONE, READY, SCHEDULED
from headway.core.turn import name_of
from headway.runtime.forms import Chapter, Counts
from headway.runtime.records import (
    died_ms,
    encode,
    pack_body,
    pack_change,
    pack_name,
    place_of_dead,
)
from headway.runtime.retention import Keeper, Reader, Retention
from headway.store import port
from headway.store.port import HELD, Batch, Entry, Fact, Segment

LANE_FACT: Final = "lane"
"""The kind of the facts that say which number stands for which lane."""
COUNTS_FACT: Final = "counts"
"""The kind of the facts that hold the counts of a queue, as of the last checkpoint."""
CHECKPOINT_FACT: Final = "checkpoint"
"""Up to which event the counts say all."""
MARKS_FACT: Final = "marks"
"""Where history was how large, and when."""
READER_FACT: Final = "reader"
"""How far a reader of history is."""
CHECKPOINT_COMMITS: Final = 256
CHECKPOINT_BYTES: Final = 8 << 20
"""A checkpoint comes after so many commits, or so much history."""
READERS_MAX: Final = 64
"""Readers of history that it is kept for."""

Place = tuple[int, bytes, int, int]


class Journal:
    """Writes what a partition decides. It knows what is stored already."""

    def __init__(
        self,
        book: Book,
        stored_seq: int = 0,
        next_event: int = 1,
        retention: Retention | None = None,
    ) -> None:
        self.keeper = Keeper(retention or Retention())
        self._said: list[Fact] = []
        self._book = book
        self._stored_seq = stored_seq
        self._next_event = next_event
        self._lanes: dict[tuple[str, int, bool], int] = {}
        self._new_lanes: list[Fact] = []
        self._commits = 0
        self._bytes = 0
        self._counted: set[str] = set()
        """Queues whose counts have changed since the last checkpoint."""

    def know_lane(self, lane: Lane, number: int) -> None:
        """A lane that has its number from before."""
        self._lanes[_lane_key(lane)] = number
        lane.place = number

    def counted(self, names: Iterable[str]) -> None:
        """Counts of these queues are in history only: the next checkpoint has them."""
        self._counted.update(names)
        self._commits += 1

    def follow(self, name: str, position: int | None) -> bool:
        """A reader of history is so far, or gone. False if it was cut off before."""
        readers = self.keeper.readers
        if position is not None and name not in readers and len(readers) >= READERS_MAX:
            raise BadValue("reader", name, f"there are {READERS_MAX} already")
        known = readers.pop(name, None)
        blob = None
        if position is not None:
            reader = readers[name] = Reader(position)
            blob = encode(reader)
        self._said.append((READER_FACT, pack_name("", name), blob))
        return known is None or not known.is_cut_off

    def number_of(self, lane: Lane) -> int:
        return lane.place or self._number(lane)

    def write(
        self,
        decision: Decision,
        now_ms: int,
        results_over: tuple[int, int] | None = None,
        inbox: Sequence[Entry] = (),
    ) -> Batch | None:
        """The batch that makes the decision durable; None if nothing has changed.

        `results_over` says which results go with it, and how many at most.
        """
        has_news = decision.events or decision.facts or decision.moved or inbox
        if not has_news and not self._said and results_over is None:
            return None
        batch = Batch([], [], [], self._said, decision.keys)
        self._said = []
        batch.results = decision.results
        batch.results_over = results_over
        batch.inbox = list(inbox)
        self._write_jobs(decision, batch, now_ms)
        for fact in decision.facts:
            kind, queue, name = fact
            blob = facts.pack(self._book, fact)
            batch.facts.append((kind, pack_name(queue, name), blob))
        if decision.events:
            batch.segment = self._segment(decision, now_ms)
        self._checkpoint(batch, now_ms)
        # Last: the counts may be the first to name a lane.
        batch.facts += self._new_lanes
        self._new_lanes = []
        self._stored_seq = self._book.last_seq
        return batch

    def _write_jobs(self, decision: Decision, batch: Batch, now_ms: int) -> None:
        stored_seq = self._stored_seq
        puts, moves, ends = batch.puts, batch.moves, batch.ends
        for job in decision.jobs:
            seq, state = job.seq, job.state
            if state is DONE or state is CANCELLED:
                if seq <= stored_seq:
                    ends.append((seq,))
                continue
            lane, turn, first, second = self._place(job)
            shift_ms = job.shift_ms and _lasting_shift_ms(job, now_ms)
            if seq > stored_seq:
                is_plain = not (job.attempt or shift_ms or job.errors)
                change = None if is_plain else pack_change(job, shift_ms)
                body = pack_body(job)
                puts.append((seq, lane, turn, first, second, change, body))
            else:
                change = pack_change(job, shift_ms)
                moves.append((lane, turn, first, second, change, seq))
        if not decision.moved:
            return
        changed = {job.seq for job in decision.jobs}
        for seq, job in decision.moved.items():
            if seq not in changed and job.state is READY:
                shift_ms = job.shift_ms and _lasting_shift_ms(job, now_ms)
                moves.append((*self._place(job), pack_change(job, shift_ms), seq))

    def _place(self, job: Job) -> Place:
        state = job.state
        if state is READY:
            turn = job.turn
            assert turn is not None
            if job.timeout_left_ms:
                # It goes on after a wait, with all that it holds.
                return HELD, b"", 0, 0
            lane = turn.strand.lane
            first, second = lane.queue.rules.key_of(job)
            number = lane.place or self._number(lane)
            return number, turn.place or name_of(turn), first, second
        if state is SCHEDULED:
            return port.SCHEDULED, b"", job.run_at_ms, 0
        if state is DEAD:
            return port.DEAD, place_of_dead(job.queue), died_ms(job), 0
        return HELD, b"", 0, 0

    def _number(self, lane: Lane) -> int:
        """The number of a lane that is written to for the first time."""
        key = _lane_key(lane)
        number = self._lanes.get(key)
        if number is None:
            number = self._lanes[key] = len(self._lanes) + 1
            self._new_lanes.append((LANE_FACT, number.to_bytes(8, "big"), encode(key)))
        lane.place = number
        return number

    def _segment(self, decision: Decision, now_ms: int) -> Segment:
        names = {job.queue for job in decision.jobs}
        self._counted |= names
        queues = self._book.queues
        counts = {name: self._counts(queues[name]) for name in sorted(names)}
        chapter = Chapter(self._book.last_seq, counts, decision.events)  # type: ignore[arg-type]
        count = len(decision.events)
        segment = Segment(self._next_event, count, now_ms, encode(chapter))
        self._next_event += count
        self._commits += 1
        self._bytes += len(segment.blob)
        self.keeper.bytes_written += len(segment.blob)
        return segment

    def _checkpoint(self, batch: Batch, now_ms: int) -> None:
        """Now and then the counts are written down, so that few have to be replayed."""
        if self._commits < CHECKPOINT_COMMITS and self._bytes < CHECKPOINT_BYTES:
            return
        self._commits = self._bytes = 0
        for name in sorted(self._counted):
            counts = self._counts(self._book.queues[name])
            batch.facts.append((COUNTS_FACT, pack_name(name, ""), encode(counts)))
        self._counted.clear()
        batch.facts.append((CHECKPOINT_FACT, b"", encode(self._next_event)))
        configs = [queue.rules.config for queue in self._book.queues.values()]
        longest_ms = max(config.idempotency_window_ms for config in configs)
        batch.keys_before_ms = now_ms - longest_ms
        self._retain(batch, now_ms)

    def _retain(self, batch: Batch, now_ms: int) -> None:
        """Drops history that is old or too much, as far as its readers are."""
        keeper = self.keeper
        keeper.mark(self._next_event, now_ms)
        batch.history_before = keeper.droppable(now_ms)
        marks = encode((keeper.bytes_written, keeper.marks))
        batch.facts.append((MARKS_FACT, b"", marks))
        for name, reader in keeper.readers.items():
            if reader.is_cut_off:
                batch.facts.append((READER_FACT, pack_name("", name), encode(reader)))

    def _counts(self, queue: Queue) -> Counts:
        return Counts(
            queue.ready,
            queue.scheduled,
            queue.leased,
            queue.waiting,
            queue.dead,
            {
                self.number_of(lane): lane.ready - lane.going
                for lane in queue.all_lanes()
            },
        )


def _lane_key(lane: Lane) -> tuple[str, int, bool]:
    return lane.queue.name, lane.slo_ms, lane.is_exempt


def _lasting_shift_ms(job: Job, now_ms: int) -> int:
    """What its strand was held is forgotten with the strand, and so not counted."""
    if job.turn is None:
        return 0
    strand = job.turn.strand
    queue_ms = strand.lane.queue.gate.time(now_ms)
    return job.shift_ms - queue_ms + strand.time(queue_ms)
