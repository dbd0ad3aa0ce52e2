"""Reads the tables of a scenario file, key by key, and names the key that is wrong."""

import json
import re
from collections.abc import Callable
from difflib import get_close_matches
from math import isfinite
from typing import Any, Final, TypeVar

from headway.core import durations
from headway.core.defaults import COUNT_MAX, NAME_LENGTH_MAX
from headway.core.errors import BadValue
from headway.sim.scenario import ScenarioError

T = TypeVar("T")
D = TypeVar("D")
Reader = Callable[[object, str], T]
"""From a value and the path of its key to what it means, or BadValue."""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FILE_KEYS: Final = {"attempts_max": "attempts", "is_lending": "lending"}
"""Where a key of the core is not simply called the same without its unit."""


class Table:
    """A table of the file. Keys that nobody asked for are unknown ones."""

    def __init__(self, raw: object, path: str) -> None:
        if not isinstance(raw, dict):
            raise BadValue(path, raw, "must be a table")
        self._raw: dict[str, object] = raw
        self._path = path
        self._asked: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def key(self, name: str) -> str:
        """The path of a key, safe to print."""
        # A quoted key may hold anything, a line break too.
        shown = name if _BARE.fullmatch(name) else json.dumps(name[:64])
        return f"{self._path}.{shown}" if self._path else shown

    def need(self, key: str, read: Reader[T]) -> T:
        """The value of a key that must be there."""
        self._asked.append(key)
        if key in self._raw:
            return read(self._raw[key], self.key(key))
        for stray in self._raw:
            # Very close: a table's other keys may well resemble the missing one.
            if get_close_matches(stray, [key], cutoff=0.8):
                raise self._unknown(stray)
        raise ScenarioError(f"{self.key(key)}: is missing")

    def get(self, key: str, read: Reader[T], default: D) -> T | D:
        """The value of a key that may be there."""
        self._asked.append(key)
        if key not in self._raw:
            return default
        return read(self._raw[key], self.key(key))

    def items(self, read: Reader[T]) -> dict[str, T]:
        """All keys, where the file's author chooses their names."""
        self._asked += self._raw
        return {key: read(value, self.key(key)) for key, value in self._raw.items()}

    def build(self, make: Callable[..., T], **values: Any) -> T:
        """Makes a part of the core, whose own checks then name a key of this table."""
        try:
            return make(**values)
        except BadValue as error:
            first, *rest = error.key.split(".")
            name = ".".join([_FILE_KEYS.get(first, first.removesuffix("_ms")), *rest])
            key = f"{self._path}.{name}" if self._path else name
            raise BadValue(key, error.value, error.rule) from error

    def close(self) -> None:
        """Refuses keys that were not asked for."""
        for key in self._raw:
            if key not in self._asked:
                raise self._unknown(key)

    def _unknown(self, key: str) -> BadValue:
        near = get_close_matches(key, self._asked, n=1, cutoff=0.5)
        known = f"did you mean {near[0]}?" if near else f"known: {self._known()}"
        return BadValue(self.key(key), self._raw[key], f"unknown key; {known}")

    def _known(self) -> str:
        return ", ".join(dict.fromkeys(self._asked))


def table(read: Callable[[Table], T]) -> Reader[T]:
    """A table of known keys."""

    def read_table(value: object, key: str) -> T:
        inner = Table(value, key)
        found = read(inner)
        inner.close()
        return found

    return read_table


def each(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """A list."""

    def read_list(value: object, key: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise BadValue(key, value, "must be a list")
        return tuple([read(one, f"{key}[{n}]") for n, one in enumerate(value)])

    return read_list


def by_kind(kinds: dict[str, Callable[[Table], T]]) -> Reader[T]:
    """A table whose key `kind` says which other keys it has."""

    def read_kind(inner: Table) -> T:
        return kinds[inner.need("kind", one_of(tuple(kinds)))](inner)

    return table(read_kind)


def one_of(known: tuple[str, ...]) -> Reader[str]:
    def read_choice(value: object, key: str) -> str:
        if not isinstance(value, str) or value not in known:
            raise BadValue(key, value, f"must be one of {', '.join(known)}")
        return value

    return read_choice


def text(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise BadValue(key, value, "must be a text in quotes")
    return value


def name(value: object, key: str) -> str:
    found = text(value, key)
    if not 1 <= len(found) <= NAME_LENGTH_MAX:
        raise BadValue(key, found, f"must have 1 to {NAME_LENGTH_MAX} characters")
    return found


def flag(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise BadValue(key, value, "must be true or false")
    return value


def whole(low: int, high: int = COUNT_MAX) -> Reader[int]:
    """A whole number in a range."""

    def read_whole(value: object, key: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadValue(key, value, "must be a whole number")
        if not low <= value <= high:
            raise BadValue(key, value, f"must be from {low} to {high}")
        return value

    return read_whole


def number(low: float, high: float) -> Reader[float]:
    """A number in a range: neither NaN nor infinite."""

    def read_number(value: object, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadValue(key, value, "must be a number")
        # Compared before it becomes a float: int has no upper bound, float has one.
        if not low <= value <= high or not isfinite(value):
            raise BadValue(key, value, f"must be from {low:g} to {high:g}")
        return float(value)

    return read_number


share: Final = number(0.0, 1.0)


def duration(value: object, key: str) -> int:
    """In ms; may be 0."""
    return durations.parse_ms(value, key)


def span(value: object, key: str) -> int:
    """A duration in ms that is not 0."""
    found_ms = durations.parse_ms(value, key)
    if found_ms == 0:
        raise BadValue(key, value, "must be above 0")
    return found_ms
