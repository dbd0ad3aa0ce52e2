"""Rows and batches in short, for tests that say only what matters to them."""

from headway.store.port import (
    Batch,
    Fact,
    Key,
    Move,
    Position,
    Result,
    Row,
    Segment,
    Store,
)


def job(
    seq: int,
    lane: int = 0,
    turn: bytes = b"t",
    first: int = 0,
    second: int = 0,
    body: bytes = b"body",
) -> Row:
    return (seq, lane, turn, first, second, None, body)


def batch(
    *,
    puts: list[Row] | None = None,
    moves: list[Move] | None = None,
    ends: list[int] | None = None,
    facts: list[Fact] | None = None,
    keys: list[Key] | None = None,
    segment: Segment | None = None,
    keys_before_ms: int | None = None,
    history_before: int | None = None,
    results: list[Result] | None = None,
    results_over: tuple[int, int] | None = None,
) -> Batch:
    return Batch(
        puts=puts or [],
        moves=moves or [],
        ends=[(seq,) for seq in ends or []],
        facts=facts or [],
        keys=keys or [],
        segment=segment,
        keys_before_ms=keys_before_ms,
        history_before=history_before,
        results=results or [],
        results_over=results_over,
    )


def segment(first: int, count: int = 1, blob: bytes = b"events") -> Segment:
    return Segment(first, count, first * 10, blob)


def after(row: Row) -> Position:
    return Position(row[3], row[4], row[0])


def seqs(rows: list[Row]) -> list[int]:
    return [row[0] for row in rows]


class Owner:
    """A store together with the epoch that its writes carry."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.epoch = store.take_over()

    def put(self, *rows: Row) -> None:
        self.store.commit(batch(puts=list(rows)), self.epoch)

    def commit(self, what: Batch) -> None:
        self.store.commit(what, self.epoch)
