"""Loads a scenario from a TOML file, or says in one line what is wrong with it."""

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from headway.core import defaults
from headway.core.errors import BadValue
from headway.sim.actions import NEEDS, TAKES, Action, Do
from headway.sim.scenario import EPOCH_MS, Scenario, ScenarioError, Workers
from headway.sim.scenario_fields import (
    Table,
    duration,
    each,
    name,
    number,
    one_of,
    share,
    span,
    table,
    text,
    whole,
)
from headway.sim.scenario_loads import load_reader, until_after
from headway.sim.scenario_queues import limits, queue, weight

SLOTS_MAX: Final = 1_000_000
SEED_MAX: Final = 2**63 - 1
_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)


def load_scenario(path: Path) -> Scenario:
    """The scenario in a file; ScenarioError names file, key and value."""
    try:
        content = path.read_bytes()
    except OSError as error:
        shown = _one_line(str(path))
        raise ScenarioError(f"{shown}: {error.strerror or error}") from error
    return parse_scenario(content, path)


def parse_scenario(content: bytes, path: Path) -> Scenario:
    """The same of what a file of this path would hold; traces lie beside it."""
    shown = _one_line(str(path))
    try:
        raw = tomllib.loads(content.decode("utf-8"))
        fields = Table(raw, "")
        scenario = _scenario(fields, path)
        fields.close()
    except OSError as error:
        raise ScenarioError(f"{shown}: {error.strerror or error}") from error
    except RecursionError as error:
        raise ScenarioError(f"{shown}: nested too deeply") from error
    # Both TOML syntax errors and bytes that are no UTF-8 are ValueErrors.
    except (BadValue, ScenarioError, ValueError) as error:
        raise ScenarioError(f"{shown}: {_one_line(str(error))}") from error
    return scenario


def _scenario(fields: Table, path: Path) -> Scenario:
    return fields.build(
        Scenario,
        name=fields.get("name", name, path.stem[: defaults.NAME_LENGTH_MAX] or "?"),
        title=fields.get("title", text, ""),
        duration_ms=fields.need("duration", span),
        drain_ms=fields.get("drain", duration, defaults.HOUR_MS),
        seed=fields.get("seed", whole(0, SEED_MAX), 1),
        epoch_ms=fields.get("epoch", _epoch_ms, EPOCH_MS),
        sample_ms=fields.get("sample", span, 0),
        workers=fields.need("workers", each(table(_workers))),
        queues=fields.need("queues", each(queue)),
        loads=fields.need("loads", each(load_reader(path.parent))),
        actions=fields.get("actions", each(table(_action)), ()),
    )


def _workers(fields: Table) -> Workers:
    at_ms = fields.get("at", duration, 0)
    return Workers(
        slots=fields.need("slots", whole(1, SLOTS_MAX)),
        at_ms=at_ms,
        until_ms=until_after(fields, at_ms),
        queues=fields.get("queues", each(name), None),
    )


def _action(fields: Table) -> Action:
    do = Do(fields.need("do", one_of(tuple(Do))))
    readers = {
        "tenant": name,
        "kind": name,
        "value": _VALUES.get(do, share),
        "limits": limits,
    }
    given = {
        key: readers[key](fields.need(key, _anything), fields.key(key))
        for key in TAKES.get(do, ())
        if key in NEEDS.get(do, ()) or key in fields
    }
    return fields.build(
        Action,
        at_ms=fields.need("at", duration),
        do=do,
        queue=fields.need("queue", name),
        **given,
    )


_VALUES: Final = {
    Do.WEIGHT: weight,
    Do.QUEUE_WEIGHT: weight,
    Do.CAP: whole(-1),
    Do.KIND_CAP: whole(-1),
    Do.KIND_COST: whole(0),
    Do.SLOT_SHARE: number(0.001, 1.0),
}


def _anything(value: object, _key: str) -> object:
    return value


def _epoch_ms(value: object, key: str) -> int:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            rule = 'must be an instant such as "2026-01-05T00:00:00Z"'
            raise BadValue(key, value, rule) from error
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise BadValue(key, value, "must be an instant with a time zone")
    found_ms = (value - _UNIX) // timedelta(milliseconds=1)
    if not 0 <= found_ms <= defaults.TIME_MAX_MS - 2 * defaults.DURATION_MAX_MS:
        raise BadValue(key, str(value), "must be from the years 1970 to 9970")
    return found_ms


def _one_line(text: str) -> str:
    """Neither line breaks nor control characters reach a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)
