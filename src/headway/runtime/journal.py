"""Decisions as batches: every job that changed goes to where it now stands."""

from headway.core import facts
from headway.core.book import Book
from headway.core.commands import Decision
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.states import JobState
from headway.core.turn import Turn
from headway.runtime.records import (
    Chapter,
    Counts,
    encode,
    pack_body,
    pack_change,
    pack_name,
    pack_turn,
)
from headway.store.port import DEAD, HELD, SCHEDULED, Batch, Segment

LANE_FACT = "lane"
"""The kind of the facts that say which number stands for which lane."""

Place = tuple[int, bytes, int, int]


class Journal:
    """Writes what a partition decides. It knows what is stored already."""

    def __init__(self, book: Book, stored_seq: int = 0, next_event: int = 1) -> None:
        self._book = book
        self._stored_seq = stored_seq
        self._next_event = next_event
        self._lanes: dict[tuple[str, int, bool], int] = {}
        self._new_lanes: list[tuple[str, bytes, bytes | None]] = []

    def know_lane(
        self, number: int, queue: str, slo_ms: int, *, is_exempt: bool
    ) -> None:
        """A lane that has its number from before."""
        self._lanes[queue, slo_ms, is_exempt] = number

    def write(self, decision: Decision, now_ms: int) -> Batch | None:
        """The batch that makes the decision durable; None if nothing has changed."""
        if not decision.events and not decision.facts:
            return None
        batch = Batch([], [], [], [], decision.keys)
        queues = self._write_jobs(decision, batch, now_ms)
        for fact in decision.facts:
            kind, queue, name = fact
            blob = facts.pack(self._book, fact)
            batch.facts.append((kind, pack_name(queue, name), blob))
        if self._new_lanes:
            batch.facts += self._new_lanes
            self._new_lanes = []
        if decision.events:
            batch.segment = self._segment(decision, queues, now_ms)
        self._stored_seq = self._book.last_seq
        return batch

    def _write_jobs(self, decision: Decision, batch: Batch, now_ms: int) -> set[str]:
        stored_seq = self._stored_seq
        puts, moves, ends = batch.puts, batch.moves, batch.ends
        queues: set[str] = set()
        for seq, job in decision.jobs.items():
            queues.add(job.queue)
            state = job.state
            if state is JobState.DONE or state is JobState.CANCELLED:
                if seq <= stored_seq:
                    ends.append((seq,))
                continue
            place = self._place(job)
            shift_ms = job.shift_ms and _lasting_shift_ms(job, now_ms)
            if seq > stored_seq:
                is_plain = not (job.attempt or shift_ms or job.errors)
                change = None if is_plain else pack_change(job, shift_ms)
                puts.append((seq, *place, change, pack_body(job)))
            else:
                moves.append((*place, pack_change(job, shift_ms), seq))
        return queues

    def _place(self, job: Job) -> Place:
        match job.state:
            case JobState.READY:
                turn = job.turn
                assert turn is not None
                lane = turn.strand.lane
                return (
                    lane.place or self._number(lane),
                    turn.place or _name(turn),
                    *lane.queue.rules.key_of(job),
                )
            case JobState.SCHEDULED:
                return SCHEDULED, b"", job.run_at_ms, 0
            case JobState.DEAD:
                died_ms = job.errors[-1].at_ms if job.errors else 0
                return DEAD, job.queue.encode("utf-8", "surrogatepass"), died_ms, 0
            case _:
                return HELD, b"", 0, 0

    def _number(self, lane: Lane) -> int:
        """The number of a lane that is written to for the first time."""
        key = (lane.queue.name, lane.slo_ms, lane.is_exempt)
        number = self._lanes.get(key)
        if number is None:
            number = self._lanes[key] = len(self._lanes) + 1
            fact = (LANE_FACT, number.to_bytes(8, "big"), encode(key))
            self._new_lanes.append(fact)
        lane.place = number
        return number

    def _segment(self, decision: Decision, queues: set[str], now_ms: int) -> Segment:
        counts = {}
        for name in sorted(queues):
            queue = self._book.queues[name]
            counts[name] = Counts(
                queue.ready,
                queue.scheduled,
                queue.leased,
                queue.waiting,
                queue.dead,
            )
        chapter = Chapter(self._book.last_seq, counts, decision.events)  # type: ignore[arg-type]
        count = len(decision.events)
        segment = Segment(self._next_event, count, now_ms, encode(chapter))
        self._next_event += count
        return segment


def _name(turn: Turn) -> bytes:
    turn.place = pack_turn(turn.tenancy.name, turn.strand.key)
    return turn.place


def _lasting_shift_ms(job: Job, now_ms: int) -> int:
    """What its strand was held is forgotten with the strand, and so not counted."""
    if job.turn is None:
        return 0
    strand = job.turn.strand
    queue_ms = strand.lane.queue.gate.time(now_ms)
    return job.shift_ms - queue_ms + strand.time(queue_ms)
