"""Columns of values as the database reads them: packed at once, not value by value.

The driver asks of every value what it is, sends numbers as the smallest kind that holds
them, and lets the database make the right one of each. Here the kind is known.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import Any, Final

from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD: Final = Struct(">iiIii")
"""Dimensions, whether some are null, the kind of a value, how many, the first index."""
_LENGTH: Final = Struct(">i").pack
_NULL: Final = _LENGTH(-1)
_IS_SWAPPED: Final = sys.byteorder == "little"
INTEGER, BIGINT, BYTEA, TEXT = 23, 20, 17, 25


class Packed:
    """An array that is packed already."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Integers(Packed):
    __slots__ = ()


class Bigints(Packed):
    __slots__ = ()


class Byteas(Packed):
    __slots__ = ()


class Texts(Packed):
    __slots__ = ()


class _PackedDumper(Dumper):  # type: ignore[misc]
    """Tells the driver what it is; there is nothing left to do."""

    format = Format.BINARY

    def dump(self, obj: Packed) -> bytes:
        return obj.data


class _IntegersDumper(_PackedDumper):
    oid = 1007


class _BigintsDumper(_PackedDumper):
    oid = 1016


class _ByteasDumper(_PackedDumper):
    oid = 1001


class _TextsDumper(_PackedDumper):
    oid = 1009


def know_arrays(connection: Any) -> None:
    """From here on the connection takes what is packed here."""
    for kind, dumper in (
        (Integers, _IntegersDumper),
        (Bigints, _BigintsDumper),
        (Byteas, _ByteasDumper),
        (Texts, _TextsDumper),
    ):
        connection.adapters.register_dumper(kind, dumper)


def integers(values: Sequence[int]) -> Integers:
    """Raises OverflowError if one has more than 32 bits."""
    words = array("i", values)
    if _IS_SWAPPED:
        words.byteswap()
    return Integers(_numbers(INTEGER, 4, words, len(values)))


def bigints(values: Sequence[int]) -> Bigints:
    """Raises OverflowError if one has more than 64 bits."""
    wide = array("q", values)
    if _IS_SWAPPED:
        wide.byteswap()
    return Bigints(_numbers(BIGINT, 8, array("i", wide.tobytes()), len(values)))


def byteas(values: Sequence[bytes | None]) -> Byteas:
    return Byteas(_strings(BYTEA, values))


def texts(values: Iterable[str | None]) -> Texts:
    encoded = [None if value is None else value.encode() for value in values]
    return Texts(_strings(TEXT, encoded))


def _numbers(kind: int, size: int, words: "array[int]", count: int) -> bytes:
    """Each value after its length; `words` are the values, four bytes a word."""
    if not count:
        return _head(kind, 0)
    each = size // 4
    packed = array("i", _LENGTH(size)) * (count * (each + 1))
    for place in range(each):
        packed[place + 1 :: each + 1] = words[place::each]
    return _head(kind, count) + packed.tobytes()


def _strings(kind: int, values: Sequence[bytes | None]) -> bytes:
    if None in values:
        parts = [
            _NULL if value is None else _LENGTH(len(value)) + value for value in values
        ]
        return _head(kind, len(values), has_null=True) + b"".join(parts)
    lengths = map(_LENGTH, map(len, values))  # type: ignore[arg-type]
    pairs = chain.from_iterable(zip(lengths, values, strict=True))
    return _head(kind, len(values)) + b"".join(pairs)  # type: ignore[arg-type]


def _head(kind: int, count: int, *, has_null: bool = False) -> bytes:
    if not count:
        return _HEAD.pack(0, 0, kind, 0, 0)[:12]
    return _HEAD.pack(1, has_null, kind, count, 1)
