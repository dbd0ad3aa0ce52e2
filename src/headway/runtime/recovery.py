"""A partition as its store remembers it."""

from collections.abc import Iterator

import msgspec

from headway.core import facts, restore
from headway.core.partition import Partition
from headway.runtime.journal import LANE_FACT, Journal
from headway.runtime.records import unpack_chapter, unpack_job, unpack_name
from headway.store.port import DEAD, HELD, SCHEDULED, Position, Row, Store

TOKENS_PER_EPOCH = 1 << 32
"""Tokens begin anew with every owner, above all that were ever given."""
PAGE = 2_000
"""Rows read at one go."""

_decode_lane = msgspec.msgpack.Decoder(tuple[str, int, bool]).decode


def recover(partition: Partition, store: Store, epoch: int, now_ms: int) -> Journal:
    """Fills an empty partition from its store; answers the journal that goes on."""
    book = partition.book
    partition.now_ms = now_ms
    book.last_token = epoch * TOKENS_PER_EPOCH
    last = store.last_segment()
    next_event = 1
    if last is not None:
        restore.begin(book, now_ms)
        book.last_seq = unpack_chapter(last.blob).last_seq
        next_event = last.first + last.count
    for kind in facts.IN_ORDER:
        for key, blob in store.facts(kind):
            facts.unpack(book, (kind, *unpack_name(key)), blob, now_ms)
    for queue in book.queues.values():
        queue.replies.order()
    journal = Journal(book, book.last_seq, next_event)
    lanes = [HELD, SCHEDULED, DEAD]
    for key, blob in store.facts(LANE_FACT):
        number = int.from_bytes(key, "big")
        name, slo_ms, is_exempt = _decode_lane(blob)
        journal.know_lane(number, name, slo_ms, is_exempt=is_exempt)
        lanes.append(number)
    for lane in lanes:
        for row in _rows(store, lane):
            job = unpack_job(row[0], row[6], row[5])
            restore.restore_job(book, job, now_ms)
    return journal


def _rows(store: Store, lane: int) -> Iterator[Row]:
    """All rows of a lane, turn by turn."""
    after: bytes | None = None
    while True:
        heads = store.turns(lane, after, PAGE, 1)
        for head in heads:
            yield head
            yield from _rest(store, head)
        if len(heads) < PAGE:
            return
        after = heads[-1][2]


def _rest(store: Store, head: Row) -> Iterator[Row]:
    seq, lane, turn, first, second, _, _ = head
    position = Position(first, second, seq)
    while True:
        rows = store.rows(lane, turn, position, PAGE)
        yield from rows
        if len(rows) < PAGE:
            return
        position = Position(rows[-1][3], rows[-1][4], rows[-1][0])
