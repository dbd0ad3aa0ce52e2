"""Packed history to Arrow: what every executor does with the commits that it fetched.

Events are taken apart by kind, a column at a time: a row at a time would cost ten times
more, and this is the only Python on the way of an event to its tables.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, get_args

import msgspec
import pyarrow as pa

from headway.core import events
from headway.spark.columns import EVENTS, arrow_schema
from headway.wire.history import Commit

ROWS: Final = 50_000
"""Events that are taken apart at one go."""
COUNT: Final = "count"
"""The type of rows that are no events, but what a partition counted."""
_STATES: Final = ("ready", "scheduled", "leased", "waiting", "dead")
_decode: Final = msgspec.msgpack.Decoder().decode
_SCHEMA: Final = arrow_schema(EVENTS)
_RENAMED: Final = {
    "seq": "job",
    "limit": "limit_name",
    "value": "limit_value",
    "parts": "limit_parts",
}
"""What columns call otherwise than events do."""
_TICK: Final = str(events.Ticked.__struct_config__.tag)
_ENQUEUE: Final = str(events.Enqueued.__struct_config__.tag)
_PART: Final = ("tenant", "used_ms", "stops", "blocked_ms")
_SEQ: Final = 2
"""Where an event says which job it is about: after its tag and its time."""


class UnknownEvents(ValueError):
    """History tells of something that this version does not know."""


class _Form(NamedTuple):
    """Where the fields of a kind of event go."""

    columns: tuple[str | None, ...]
    """For each field the column that it goes to."""
    defaults: tuple[Any, ...]
    """For fields that older histories do not have yet."""


def _form(kind: Any) -> tuple[str, _Form]:
    names = kind.__struct_fields__
    missing = len(names) - len(kind.__struct_defaults__)
    renamed = [_RENAMED.get(name, name) for name in names]
    columns = tuple(name if name in EVENTS else None for name in renamed)
    form = _Form(columns, (None,) * missing + kind.__struct_defaults__)
    return str(kind.__struct_config__.tag), form


_FORMS: Final = dict(map(_form, get_args(events.AnyEvent)))


def piles(
    partition: str, commits: Iterable[Commit], first: int, before: int
) -> Iterator[list[pa.RecordBatch]]:
    """The events from `first` to before `before`, some commits at a time.

    Each pile is of batches of one kind each. At the end come the counts of the queues,
    as of their last commit that ends here.
    """
    pile = _Pile(partition)
    for commit in commits:
        _, counts, told = _decode(commit.blob)
        number = commit.first
        for index, event in enumerate(told):
            if event[0] == _TICK:
                # Its enqueue may be before a task's end, and it itself after it.
                pile.ticked(told, index, number)
            if first <= number < before:
                event.append(number)
                pile.rows[event[0]].append(event)
                pile.count += 1
            number += 1
        if first < number <= before:
            for queue, found in counts.items():
                pile.counts[queue] = [number - 1, commit.at_ms, queue, *found[:5]]
        if pile.count >= ROWS:
            yield list(pile.taken())
    yield [*pile.taken(), *pile.counted()]


class _Pile:
    """Events that were fetched and not taken apart yet."""

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self.rows: defaultdict[str, list[list[Any]]] = defaultdict(list)
        self.count = 0
        self.counts: dict[str, list[Any]] = {}
        self._ticks: dict[int, tuple[str, int]] = {}
        """By the number of the enqueue that a tick led to."""

    def ticked(self, told: list[list[Any]], index: int, number: int) -> None:
        """The job of a tick is enqueued in the same commit, just before."""
        _, _, _, schedule, tick_ms, seq = told[index][:6]
        if not seq:
            return
        for back in range(index - 1, -1, -1):
            if told[back][0] == _ENQUEUE and told[back][_SEQ] == seq:
                self._ticks[number - index + back] = schedule, tick_ms
                return

    def taken(self) -> Iterator[pa.RecordBatch]:
        for tag, rows in self.rows.items():
            form = _FORMS.get(tag)
            if form is None:
                number = rows[0][-1]
                raise UnknownEvents(
                    f"event {number} of partition {self.partition} is a {tag!r}, "
                    "which this version of Headway does not know"
                )
            values = _values(form, rows)
            if tag == _ENQUEUE and self._ticks:
                ticks = [self._ticks.get(row[-1], (None, None)) for row in rows]
                schedules, times_ms = zip(*ticks, strict=True)
                values["schedule"] = _array("schedule", schedules)
                values["tick_ms"] = _array("tick_ms", times_ms)
            yield self._batch(tag, len(rows), values)
        self.rows.clear()
        self._ticks.clear()
        self.count = 0

    def counted(self) -> Iterator[pa.RecordBatch]:
        if not self.counts:
            return
        fields = zip(*self.counts.values(), strict=True)
        names = ("event", "at_ms", "queue", *_STATES)
        values = {
            name: _array(name, field) for name, field in zip(names, fields, strict=True)
        }
        yield self._batch(COUNT, len(self.counts), values)

    def _batch(
        self, tag: str, count: int, values: dict[str, pa.Array]
    ) -> pa.RecordBatch:
        values["partition"] = pa.repeat(self.partition, count)
        values["type"] = pa.repeat(tag, count)
        arrays = [
            values[field.name] if field.name in values else pa.nulls(count, field.type)
            for field in _SCHEMA
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _values(form: _Form, rows: Sequence[list[Any]]) -> dict[str, pa.Array]:
    wanted = len(form.columns) + 2
    if any(len(row) != wanted for row in rows):
        rows[:] = [_fitted(row, form, wanted) for row in rows]  # type: ignore[index]
    fields = list(zip(*rows, strict=True))
    values = {"event": _array("event", fields[-1])}
    for name, field in zip(form.columns, fields[1:-1], strict=True):
        if name is not None:
            values[name] = _array(name, field)
    return values


def _array(name: str, field: Sequence[Any]) -> pa.Array:
    kind = _SCHEMA.field(name).type
    if name == "labels":
        field = [None if one is None else list(one.items()) for one in field]
    elif name == "rule":
        field = [_shown(one) for one in field]
    elif name == "limit_parts":
        field = [_shown_parts(one) for one in field]
    return pa.array(field, kind)


def _shown(rule: bytes) -> str | None:
    """A rule is packed; in a table it is JSON."""
    return msgspec.json.encode(_decode(rule)).decode() if rule else None


def _shown_parts(parts: list[list[Any]]) -> str:
    named = [dict(zip(_PART, part, strict=False)) for part in parts]
    return msgspec.json.encode(named).decode()


def _fitted(row: list[Any], form: _Form, wanted: int) -> list[Any]:
    """Fields that came later have their defaults; those of later versions are dropped."""
    told = row[: min(len(row), wanted) - 1]
    return [*told, *form.defaults[len(told) - 1 :], row[-1]]
