"""A batch as the values of one call."""

from collections.abc import Sequence
from typing import Any, Final

from headway.store.errors import Contradiction
from headway.store.port import Batch
from headway.store.postgres.names import (
    TURN_MAX,
    encoded,
    key_name,
    pair_name,
    short_turn,
)

_NO_ROWS: Final[dict[int, tuple[list[Any], ...]]] = {
    width: tuple([] for _ in range(width)) for width in range(1, 8)
}


def values_of(batch: Batch) -> tuple[object, ...]:
    """In the order in which the function takes them."""
    # One statement changes a row once: of several moves of a job the last counts.
    moves = batch.moves
    if len(moves) > 1:
        moves = list({move[5]: move for move in moves}.values())
    if len(batch.ends) > 1 and len(set(batch.ends)) < len(batch.ends):
        raise Contradiction("a job is ended twice")
    facts = {(kind, key): value for kind, key, value in batch.facts}
    known = [
        (kind, key_name(key), key, value)
        for (kind, key), value in facts.items()
        if value is not None
    ]
    forgotten = [
        (kind, key_name(key)) for (kind, key), value in facts.items() if value is None
    ]
    keys = {(queue, key): rest for queue, key, *rest in batch.keys}
    named = [_named(queue, key, *rest) for (queue, key), rest in keys.items()]
    segment = batch.segment or (None, None, None, None)
    over_until, over_most = batch.results_over or (None, None)
    return (
        *_with_turns(_columns(batch.puts, 7), 2),
        *_with_turns(_columns(moves, 6), 1),
        *_columns(batch.ends, 1),
        *_columns(known, 4),
        *_columns(forgotten, 2),
        *_columns(named, 6),
        batch.keys_before_ms,
        *segment,
        batch.history_before,
        *_columns(batch.results, 3),
        over_until,
        None if over_most is None else max(over_most, 0),
        *_columns(batch.inbox, 3),
    )


def _named(queue: str, key: str, *rest: Any) -> tuple[Any, ...]:
    whose, which = encoded(queue), encoded(key)
    return (pair_name(whose, which), whose, which, *rest)


def _with_turns(
    columns: tuple[list[Any], ...], place: int
) -> tuple[Sequence[Any], ...]:
    """And with the whole turns, where one is too long for an index."""
    turns = columns[place]
    if not turns or max(map(len, turns)) <= TURN_MAX:
        return (*columns, [])
    short = [short_turn(turn) for turn in turns]
    whole = [turn if len(turn) > TURN_MAX else None for turn in turns]
    return (*columns[:place], short, *columns[place + 1 :], whole)


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> tuple[list[Any], ...]:
    if not rows:
        return _NO_ROWS[width]
    return tuple(map(list, zip(*rows, strict=True)))
