"""Rules as they are typed and shown: limits, retry strategies and windows."""

import re
from typing import Any, Final

import click

from headway.core.durations import parse_ms
from headway.core.errors import BadValue

WINDOWS: Final = "22:00-06:00, or 22:00-06:00@Europe/London"
RETRIES: Final = "none, fixed:10s, exponential:1s..5m[:factor[:jitter]] or delays:1s,1m"
LIMITS: Final = (
    "concurrency:NAME:MAX[:PER], rate:NAME:COUNT/PERIOD[:PER] or "
    "shares:NAME:MAX:LABEL:east=40,west=60[:lending]"
)
"""How each is typed, as the help has it."""


def window(value: str | dict[str, str]) -> dict[str, str]:
    """A span of the day as the API has it."""
    if isinstance(value, dict):
        return value
    span, at, zone = value.partition("@")
    if not re.fullmatch(r"[0-9]{1,2}:[0-9]{2}-[0-9]{1,2}:[0-9]{2}", span):
        raise click.BadParameter(f"{value!r} is not {WINDOWS}")
    return {"span": span, "zone": zone} if at else {"span": span}


def retry(value: str | dict[str, Any]) -> dict[str, Any]:
    """A retry strategy as the API has it."""
    if isinstance(value, dict):
        return value
    try:
        return _retry(value)
    except (ValueError, BadValue) as error:
        raise click.BadParameter(f"{value!r} is not {RETRIES}") from error


def limit(value: str | dict[str, Any]) -> dict[str, Any]:
    """A limit as the API has it."""
    if isinstance(value, dict):
        return value
    try:
        return _limit(value)
    except (ValueError, BadValue) as error:
        raise click.BadParameter(f"{value!r} is not {LIMITS}") from error


def _retry(text: str) -> dict[str, Any]:
    name, _, rest = text.partition(":")
    if name in ("none", "give_up") and not rest:
        return {"type": "give_up"}
    if name == "fixed":
        return {"type": "fixed", "delay": parse_ms(rest, "delay")}
    if name == "delays":
        delays = [parse_ms(part, "delays") for part in rest.split(",")]
        return {"type": "delays", "delays": delays}
    if name != "exponential":
        raise ValueError(name)
    found: dict[str, Any] = {"type": "exponential"}
    if rest:
        span, *others = rest.split(":")
        first, _, most = span.partition("..")
        found |= {"first": parse_ms(first, "first"), "max": parse_ms(most, "max")}
        found |= dict(zip(("factor", "jitter"), map(float, others), strict=False))
        if len(others) > 2:
            raise ValueError(text)
    return found


def _limit(text: str) -> dict[str, Any]:
    kind, name, amount, *rest = text.split(":")
    if not name:
        raise ValueError(text)
    if kind == "shares":
        label, percents, *lending = rest
        if lending not in ([], ["lending"]):
            raise ValueError(text)
        pairs = (part.rpartition("=") for part in percents.split(","))
        return {
            "type": "shares",
            "name": name,
            "max": int(amount),
            "by": label,
            "percent": {value: int(percent) for value, _, percent in pairs},
            "lending": bool(lending),
        }
    found: dict[str, Any] = {"type": kind, "name": name}
    if kind == "rate":
        count, _, period = amount.partition("/")
        found |= {"count": int(count), "period": parse_ms(period or "1s", "period")}
    elif kind == "concurrency":
        found["max"] = int(amount)
    else:
        raise ValueError(kind)
    if len(rest) > 1 or rest == [""]:
        raise ValueError(text)
    return found | ({"per": rest[0]} if rest else {})


def written_retry(found: dict[str, Any]) -> str:
    """As `_retry` reads it."""
    match found["type"]:
        case "fixed":
            return f"fixed:{found['delay']}"
        case "delays":
            return f"delays:{','.join(map(str, found['delays']))}"
        case "exponential":
            span = f"{found['first']}..{found['max']}"
            return f"exponential:{span}:{found['factor']:g}:{found['jitter']:g}"
        case _:
            return "none"


def written_limit(found: dict[str, Any]) -> str:
    """As `_limit` reads it, but for a burst, which only a file can set."""
    name = f"{found['type']}:{found['name']}"
    per = f":{found['per']}" if found.get("per") else ""
    match found["type"]:
        case "rate":
            burst = f" (burst {found['burst']})" if found["burst"] else ""
            return f"{name}:{found['count']}/{found['period']}{per}{burst}"
        case "shares":
            shares = ",".join(f"{key}={one}" for key, one in found["percent"].items())
            lending = ":lending" if found["lending"] else ""
            return f"{name}:{found['max']}:{found['by']}:{shares}{lending}"
        case _:
            return f"{name}:{found['max']}{per}"
