"""A grid: numbers of workers and named changes, read from a TOML file."""

import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from headway.core.defaults import NAME_LENGTH_MAX
from headway.core.durations import format_ms
from headway.core.errors import BadValue
from headway.sim.plan.change import AS_IT_IS, Change
from headway.sim.scenario import ScenarioError
from headway.sim.scenario_fields import (
    Reader,
    Table,
    duration,
    each,
    name,
    number,
    share,
    span,
    table,
    whole,
)
from headway.sim.scenario_file import SEED_MAX
from headway.sim.scenario_queues import weight

POINTS_MAX: Final = 10_000
SLOTS_MAX: Final = 100_000
TARGET: Final = 0.99
RESERVE: Final = 0.5
FILE_MAX: Final = 1 << 20
T = TypeVar("T")

_slots: Final = whole(1, SLOTS_MAX)


class Range(msgspec.Struct, frozen=True):
    """The fewest in it that keep every promise are searched for."""

    low: int
    high: int


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Every change with every number of workers."""

    workers: tuple[int, ...] | Range | None = None
    """None means: those that are there."""
    changes: tuple[Change, ...] = (AS_IT_IS,)
    target: float = TARGET
    """The share of its waits that a lane must keep to count as kept."""
    reserve: float = RESERVE
    """The part of the misses which that allows that is left to chance."""
    seed: int = 1

    @property
    def bar(self) -> float:
        """What a lane must keep in a replay for its promise to count as safe."""
        return self.target + (1.0 - self.target) * self.reserve


class GridError(ScenarioError):
    """A grid that cannot be tried: one line with file, key and value."""


def load_grid(path: Path) -> Grid:
    """The grid in a file; GridError names file, key and value."""
    shown = "".join(char if char.isprintable() else " " for char in str(path))
    try:
        with path.open("rb") as file:
            text = file.read(FILE_MAX + 1)
        if len(text) > FILE_MAX:
            raise GridError(f"more than {FILE_MAX} bytes")
        return read_grid(tomllib.loads(text.decode("utf-8")))
    except OSError as error:
        raise GridError(f"{shown}: {error.strerror or error}") from error
    except RecursionError as error:
        raise GridError(f"{shown}: nested too deeply") from error
    # Both TOML syntax errors and bytes that are no UTF-8 are ValueErrors.
    except (BadValue, ScenarioError, ValueError) as error:
        line = "".join(char if char.isprintable() else " " for char in str(error))
        raise GridError(f"{shown}: {line}") from error


def read_grid(raw: object) -> Grid:
    """The grid of a table; BadValue names the key."""
    fields = Table(raw, "")
    workers = fields.get("workers", _workers, None)
    changes = fields.get("change", each(_change), ())
    grid = Grid(
        workers=workers,
        changes=(AS_IT_IS, *(one for some in changes for one in some)),
        target=fields.get("target", share, TARGET),
        reserve=fields.get("reserve", share, RESERVE),
        seed=fields.get("seed", whole(0, SEED_MAX), 1),
    )
    fields.close()
    _check(grid)
    return grid


def _check(grid: Grid) -> None:
    seen: set[str] = set()
    for change in grid.changes:
        if change.name in seen:
            raise BadValue(f"{change.key}.name", change.name, "used twice")
        seen.add(change.name)
    each_way = len(grid.workers) if isinstance(grid.workers, tuple) else 1
    points = len(grid.changes) * each_way
    if points > POINTS_MAX:
        raise BadValue("change", f"{points} points", f"at most {POINTS_MAX} in all")


def _workers(value: object, key: str) -> tuple[int, ...] | Range:
    if isinstance(value, dict):
        return table(lambda fields: _range(fields, key))(value, key)
    if isinstance(value, int) and not isinstance(value, bool):
        return (_slots(value, key),)
    found = each(_slots)(value, key)
    if not found:
        raise BadValue(key, [], "at least one is needed")
    return tuple(sorted(set(found)))


def _range(fields: Table, key: str) -> Range:
    found = Range(fields.need("from", _slots), fields.need("to", _slots))
    if found.high < found.low:
        raise BadValue(f"{key}.to", found.high, f"must be at least {found.low}")
    return found


def _change(value: object, key: str) -> tuple[Change, ...]:
    """One change for every choice of a value wherever there is a list of them."""
    fields = Table(value, key)
    label = fields.need("name", name)
    fixed = {
        "queue": fields.get("queue", name, None),
        "lane_ms": fields.get("lane", span, None),
        "workers": fields.get("workers", _slots, None),
    }
    axes: dict[str, tuple[Any, ...]] = {}
    for field, file_key, read in _AXES:
        found = fields.get(file_key, one_or_more(read), None)
        if found is not None:
            axes[field] = found
    for field, read in (("weights", weight), ("limits", whole(0))):
        for inner, some in fields.get(field, _named(read), {}).items():
            axes[f"{field}.{inner}"] = some
    fields.close()
    if not axes and fixed["workers"] is None:
        known = [file_key for _, file_key, _ in _AXES]
        rule = f"changes nothing; known: {', '.join([*known, 'weights', 'limits'])}"
        raise BadValue(key, label, rule)
    if fixed["lane_ms"] is not None and "slo_ms" not in axes:
        raise BadValue(f"{key}.lane", label, "says which lane gets another slo")
    return tuple(_choices(label, key, fixed, axes))


def _choices(
    label: str, key: str, fixed: dict[str, Any], axes: dict[str, tuple[Any, ...]]
) -> Iterator[Change]:
    for chosen in product(*axes.values()):
        values: dict[str, Any] = {**fixed, "weights": {}, "limits": {}}
        tags = []
        for (axis, some), one in zip(axes.items(), chosen, strict=True):
            field, _, inner = axis.partition(".")
            if inner:
                values[field][inner] = one
            else:
                values[field] = one
            if len(some) > 1:
                shown = format_ms(one) if field.endswith("_ms") else f"{one:g}"
                tags.append(f"{inner or field.removesuffix('_ms')} {shown}")
        tagged = f"{label} ({', '.join(tags)})" if tags else label
        if len(tagged) > 2 * NAME_LENGTH_MAX:
            tagged = f"{tagged[: 2 * NAME_LENGTH_MAX - 1]}…"
        yield Change(name=tagged, key=key, **values)


def one_or_more(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """A value, or a list of some to choose from."""

    def read_some(value: object, key: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            return (read(value, key),)
        found = each(read)(value, key)
        if not found:
            raise BadValue(key, [], "at least one is needed")
        return tuple(dict.fromkeys(found))

    return read_some


def _named(read: Reader[Any]) -> Reader[dict[str, tuple[Any, ...]]]:
    def read_table(value: object, key: str) -> dict[str, tuple[Any, ...]]:
        return Table(value, key).items(one_or_more(read))

    return read_table


_AXES: Final[tuple[tuple[str, str, Reader[Any]], ...]] = (
    ("slo_ms", "slo", span),
    ("margin_ms", "margin", duration),
    ("weight", "weight", weight),
    ("floor", "floor", share),
    ("slot_share", "slot_share", number(0.001, 1.0)),
)
