"""A batch as the values of one call."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from headway.store.errors import Contradiction
from headway.store.port import Batch
from headway.store.postgres.arrays import Packed, bigints, byteas, integers, texts
from headway.store.postgres.names import (
    TURN_MAX,
    encoded,
    key_name,
    pair_name,
    short_turn,
)

Kinds = tuple[Callable[[Any], Packed], ...]
_PUTS: Final[Kinds] = (bigints, integers, byteas, bigints, bigints, byteas, byteas)
_MOVES: Final[Kinds] = (integers, byteas, bigints, bigints, byteas, bigints)
_ENDS: Final[Kinds] = (bigints,)
_FACTS: Final[Kinds] = (texts, byteas, byteas, byteas)
_FORGOTTEN: Final[Kinds] = (texts, byteas)
_KEYS: Final[Kinds] = (byteas, byteas, byteas, bigints, byteas, bigints)
_RESULTS: Final[Kinds] = (bigints, bigints, byteas)
_INBOX: Final[Kinds] = (bigints, bigints, texts)


def values_of(batch: Batch) -> tuple[object, ...]:
    """In the order in which the function takes them."""
    try:
        return _values_of(batch)
    except OverflowError as error:
        raise Contradiction(f"a number is too large for a column: {error}") from error


def _values_of(batch: Batch) -> tuple[object, ...]:
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
        *_with_turns(batch.puts, _PUTS, 2),
        *_with_turns(moves, _MOVES, 1),
        *_columns(batch.ends, _ENDS),
        *_columns(known, _FACTS),
        *_columns(forgotten, _FORGOTTEN),
        *_columns(named, _KEYS),
        batch.keys_before_ms,
        *segment,
        batch.history_before,
        *_columns(batch.results, _RESULTS),
        over_until,
        None if over_most is None else max(over_most, 0),
        *_columns(batch.inbox, _INBOX),
    )


def _named(queue: str, key: str, *rest: Any) -> tuple[Any, ...]:
    whose, which = encoded(queue), encoded(key)
    return (pair_name(whose, which), whose, which, *rest)


def _with_turns(
    rows: Sequence[tuple[Any, ...]], kinds: Kinds, place: int
) -> tuple[Packed, ...]:
    """And with the whole turns, where one is too long for an index."""
    if not rows or max(len(row[place]) for row in rows) <= TURN_MAX:
        return (*_columns(rows, kinds), *_no_rows((byteas,)))
    turns = [row[place] for row in rows]
    columns = list(_columns(rows, kinds))
    columns[place] = byteas([short_turn(turn) for turn in turns])
    return (
        *columns,
        byteas([turn if len(turn) > TURN_MAX else None for turn in turns]),
    )


def _columns(rows: Sequence[tuple[Any, ...]], kinds: Kinds) -> tuple[Packed, ...]:
    if not rows:
        return _no_rows(kinds)
    columns = zip(*rows, strict=True)
    return tuple(pack(column) for pack, column in zip(kinds, columns, strict=True))


@cache
def _no_rows(kinds: Kinds) -> tuple[Packed, ...]:
    return tuple(pack(()) for pack in kinds)
