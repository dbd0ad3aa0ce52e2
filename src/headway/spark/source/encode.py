"""Rows to jobs: columns of an Arrow batch become JSON, a row at a time at the end only.

A payload that is text is JSON by itself, and is checked to be one value: put into the
body as it is, it could otherwise say more than itself.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from headway.core.errors import BadValue
from headway.spark.columns_source import WRITTEN

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_JSON: Final = ("payload", "windows", "retry")
"""Text in these columns is JSON."""


def check_columns(schema: StructType, queue: str | None) -> None:
    """Refuses what is no column of a job, or not of its type, by its name."""
    fields: dict[str, str] = {}
    for field in schema.fields:
        known = WRITTEN.get(field.name)
        if known is None:
            rule = f"no column of a job; known are {', '.join(WRITTEN)}"
            raise BadValue("column", field.name, rule)
        name, types = known
        given = field.dataType.typeName()
        if not given.startswith(types):
            rule = f"is of type {given}; it may be {', '.join(types)}"
            raise BadValue("column", field.name, rule)
        if name in fields:
            rule = f"says the same as column {fields[name]}"
            raise BadValue("column", field.name, rule)
        fields[name] = field.name
    if queue is None and "" not in fields:
        rule = 'missing: option("queue", …) or a column queue'
        raise BadValue("queue", "", rule)


def jobs(batch: pa.RecordBatch, queue: str | None) -> Iterator[tuple[str, bytes]]:
    """The queue and the JSON of every row."""
    names: list[str] = []
    columns: list[Sequence[Any]] = []
    queues: Sequence[str | None] = [queue] * batch.num_rows
    for column, values in zip(batch.schema.names, batch.columns, strict=True):
        if column == "queue":
            queues = [queue if one is None else one for one in values.to_pylist()]
            continue
        name, cells = _cells(column, values)
        names.append(name)
        columns.append(cells)
    # Without columns there are no rows to take apart: every job is the plainest.
    rows = zip(*columns, strict=True) if columns else [()] * batch.num_rows
    for wanted, row in zip(queues, rows, strict=True):
        if wanted is None:
            raise BadValue("queue", None, 'null, and there is no option("queue", …)')
        said = {
            name: cell
            for name, cell in zip(names, row, strict=True)
            if cell is not None
        }
        yield wanted, _encode(said)


def _cells(column: str, values: pa.Array) -> tuple[str, Sequence[Any]]:
    """What the column is called in a job, and its values as JSON takes them."""
    name, _ = WRITTEN[column]
    kind = values.type
    if pa.types.is_timestamp(kind):
        moments = pc.cast(values, pa.timestamp("ms", kind.tz), safe=False)
        return name, pc.cast(moments, pa.int64()).to_pylist()
    if pa.types.is_duration(kind):
        spans = pc.cast(values, pa.duration("ms"), safe=False)
        return name, pc.cast(spans, pa.int64()).to_pylist()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "payload_base64", _each(values.to_pylist(), _base64)
    cells = values.to_pylist(maps_as_pydicts="strict")
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if column in _JSON and is_text:
        return name, [
            None if cell is None else _raw(column, cell, row)
            for row, cell in enumerate(cells)
        ]
    return name, cells


def _raw(column: str, text: str, row: int) -> msgspec.Raw:
    try:
        _decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise BadValue(column, text, f"is no JSON: {error}") from error
    return msgspec.Raw(text.encode())


def _each(cells: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    return [None if cell is None else change(cell) for cell in cells]


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
