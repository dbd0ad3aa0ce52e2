"""A partition as its store remembers it.

Rules and what is under way come back whole; ready and scheduled jobs are read when they
are next. So it takes no longer for ten million jobs than for ten.
"""

from typing import Final

import msgspec

from headway.core import facts, restore
from headway.core.book import Book
from headway.core.lane import Lane, read_anew
from headway.core.partition import Partition
from headway.core.states import READY
from headway.runtime.forms import Counts
from headway.runtime.journal import (
    CHECKPOINT_FACT,
    COUNTS_FACT,
    LANE_FACT,
    MARKS_FACT,
    READER_FACT,
    Journal,
)
from headway.runtime.records import unpack_heading, unpack_job, unpack_name
from headway.runtime.retention import Retention, decode_marks, decode_reader
from headway.store.port import HELD, START, Position, Store

TOKENS_PER_EPOCH: Final = 1 << 32
"""Tokens begin anew with every owner, above all that were ever given."""
PAGE: Final = 2_000
"""Rows read at one go."""
HISTORY_BYTES: Final = 4 << 20

_decode_lane: Final = msgspec.msgpack.Decoder(tuple[str, int, bool]).decode
_decode_counts: Final = msgspec.msgpack.Decoder(Counts).decode
_decode_number: Final = msgspec.msgpack.Decoder(int).decode


def recover(
    partition: Partition,
    store: Store,
    epoch: int,
    now_ms: int,
    retention: Retention | None = None,
) -> Journal:
    """Fills an empty partition from its store; answers the journal that goes on."""
    book = partition.book
    book.shared.is_bounded = True
    partition.now_ms = now_ms
    book.last_token = epoch * TOKENS_PER_EPOCH
    last = store.last_segment()
    next_event = 1
    if last is not None:
        restore.begin(book, now_ms)
        book.last_seq = unpack_heading(last.blob).last_seq
        next_event = last.first + last.count
    for kind in facts.IN_ORDER:
        for key, blob in store.facts(kind):
            facts.unpack(book, (kind, *unpack_name(key)), blob, now_ms)
    for queue in book.queues.values():
        queue.replies.order()
    journal = Journal(book, book.last_seq, next_event, retention)
    _recover_keeper(store, journal)
    lanes = _recover_counts(book, store, journal, next_event)
    _recover_held(book, store, now_ms)
    for lane in lanes.values():
        if lane.ready > lane.going:
            read_anew(lane)
    book.near.cut = (-(2**63), 0, 0)
    book.shared.reads[book.near] = None
    return journal


def _recover_counts(
    book: Book, store: Store, journal: Journal, next_event: int
) -> dict[int, Lane]:
    """Counts as of the last checkpoint, and what was counted after it.

    Answers all lanes by their numbers.
    """
    counts = {
        unpack_name(key)[0]: _decode_counts(blob)
        for key, blob in store.facts(COUNTS_FACT)
    }
    first = 1
    for _, blob in store.facts(CHECKPOINT_FACT):
        first = _decode_number(blob)
    while first < next_event:
        for segment in store.history(first, HISTORY_BYTES):
            newer = unpack_heading(segment.blob).counts
            counts.update(newer)
            journal.counted(newer)
            journal.keeper.bytes_written += len(segment.blob)
            first = segment.first + segment.count
    for name, found in counts.items():
        queue = book.queues[name]
        queue.ready = found.ready
        queue.scheduled = found.scheduled
        queue.leased = found.leased
        queue.waiting = found.waiting
        queue.dead = found.dead
    lanes: dict[int, Lane] = {}
    for key, blob in store.facts(LANE_FACT):
        number = int.from_bytes(key, "big")
        name, slo_ms, is_exempt = _decode_lane(blob)
        lane = book.queues[name].lane(slo_ms, is_exempt=is_exempt)
        journal.know_lane(lane, number)
        if name in counts:
            lane.ready = counts[name].lanes.get(number, 0)
        lanes[number] = lane
    return lanes


def _recover_keeper(store: Store, journal: Journal) -> None:
    """What is known of the size of history, and of its readers."""
    keeper = journal.keeper
    for _, blob in store.facts(MARKS_FACT):
        keeper.bytes_written, keeper.marks = decode_marks(blob)
    for key, blob in store.facts(READER_FACT):
        keeper.readers[unpack_name(key)[1]] = decode_reader(blob)


def _recover_held(book: Book, store: Store, now_ms: int) -> None:
    """Jobs that are leased, that wait, or that go on after a wait."""
    after = START
    while True:
        rows = store.rows(HELD, b"", after, PAGE)
        for row in rows:
            job = unpack_job(row[0], row[6], row[5])
            if job.state is READY:
                # No lane has counted it: by the rules of now it may stand in another.
                book.queues[job.queue].ready -= 1
            restore.restore_job(book, job, now_ms)
        if len(rows) < PAGE:
            return
        after = Position(rows[-1][3], rows[-1][4], rows[-1][0])
