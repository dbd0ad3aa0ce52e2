"""Durations as people write them ("500ms", "1.5s", "2m") and as the core counts them."""

import re
from typing import Final

from headway.core.defaults import (
    DAY_MS,
    DURATION_MAX_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
)
from headway.core.errors import BadValue

_UNITS: Final = {
    "d": DAY_MS,
    "h": HOUR_MS,
    "m": MINUTE_MS,
    "s": SECOND_MS,
    "ms": 1,
}
# Bounded digits: int() refuses very long strings with an error of its own.
_WRITTEN: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))? ?(ms|s|m|h|d)")
_READABLE: Final = (
    (DAY_MS, "d", HOUR_MS, "h"),
    (HOUR_MS, "h", MINUTE_MS, "min"),
    (MINUTE_MS, "min", SECOND_MS, "s"),
)
_RULE: Final = 'must be a duration such as "500ms", "1.5s", "2m", "1h" or "1d"'


def parse_ms(value: object, key: str) -> int:
    """Whole milliseconds of "5s" or of an integer (milliseconds); BadValue else."""
    if isinstance(value, str):
        found_ms = _written_ms(value, key)
    elif isinstance(value, int) and not isinstance(value, bool):
        found_ms = value
    else:
        raise BadValue(key, value, _RULE)
    if found_ms < 0:
        raise BadValue(key, value, "must not be negative")
    if found_ms > DURATION_MAX_MS:
        raise BadValue(key, value, f"must be at most {format_ms(DURATION_MAX_MS)}")
    return found_ms


def format_ms(duration_ms: int) -> str:
    """The shortest exact way to write it: parse_ms gives the same number back."""
    if duration_ms == 0:
        return "0s"
    for unit, size_ms in _UNITS.items():
        if duration_ms % size_ms == 0 and unit != "ms":
            return f"{duration_ms // size_ms}{unit}"
    if duration_ms < SECOND_MS:
        return f"{duration_ms}ms"
    seconds, rest_ms = divmod(duration_ms, SECOND_MS)
    return f"{seconds}.{rest_ms:03}".rstrip("0") + "s"


def readable_ms(duration_ms: int) -> str:
    """For people, rounded: "12 ms", "4.5 s", "1 min 19 s", "2 h 05 min"."""
    if duration_ms < SECOND_MS:
        return f"{duration_ms} ms"
    if duration_ms < MINUTE_MS - 50:
        return f"{round(duration_ms / SECOND_MS, 1):g} s"
    for size_ms, unit, part_ms, part in _READABLE:
        # Rounded first, so that 59.9 of the smaller unit counts as the larger one.
        parts = (duration_ms + part_ms // 2) // part_ms
        whole, rest = divmod(parts, size_ms // part_ms)
        if whole:
            return f"{whole} {unit} {rest:02} {part}" if rest else f"{whole} {unit}"
    raise AssertionError(duration_ms)


def _written_ms(text: str, key: str) -> int:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        rule = "must not be negative" if text.startswith("-") else _RULE
        raise BadValue(key, text, rule)
    whole, decimals, unit = match.groups(default="")
    scale = int("1" + "0" * len(decimals))
    numerator = int(whole + decimals) * _UNITS[unit]
    if numerator % scale:
        raise BadValue(key, text, "must come to whole milliseconds")
    return numerator // scale
