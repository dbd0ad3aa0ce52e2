"""Values as they are typed: durations, moments, pairs and payloads."""

import sys
from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from headway.cli.refused import Refused
from headway.core.durations import parse_ms
from headway.core.errors import BadValue

PAYLOAD_MAX: Final = 1 << 20


def duration(value: str | int) -> int:
    """`500ms`, `5s`, `2m`, `1h` or `1d`, as milliseconds."""
    try:
        return parse_ms(value, "duration")
    except BadValue as error:
        raise click.BadParameter(str(error)) from error


def date(value: str | int) -> int:
    """A date and time, of this machine's zone if it names none, as milliseconds."""
    if isinstance(value, int):
        return value
    try:
        at_ms = round(datetime.fromisoformat(value).timestamp() * 1_000)
    except (ValueError, OverflowError, OSError) as error:
        rule = "is no time such as 2026-11-27T08:00"
        raise click.BadParameter(f"{value!r} {rule}") from error
    if at_ms < 0:
        raise click.BadParameter(f"{value!r} is before 1970")
    return at_ms


def pair(value: str | tuple[str, str]) -> tuple[str, str]:
    """`name=value`."""
    if isinstance(value, tuple):
        return value
    name, equals, text = value.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{value!r} is no name=value")
    return name, text


def content(
    payload: str | None, file: Path | None, *, is_bytes: bool = False
) -> dict[str, Any]:
    """The payload's part of a body: JSON as it was typed, or bytes."""
    if payload is not None and file is not None:
        raise Refused("a payload comes from --payload or from a file, not from both")
    if payload is not None:
        found = payload.encode("utf-8", "surrogateescape")
    elif file is not None:
        found = _read(file)
    else:
        return {}
    if len(found) > PAYLOAD_MAX:
        raise Refused("a payload has at most 1 MiB")
    if is_bytes:
        return {"payload_base64": b64encode(found).decode()}
    try:
        msgspec.json.decode(found)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        hint = "quote a text twice ('\"hello\"'), or send anything with --bytes"
        raise Refused(f"the payload is no JSON ({error}); {hint}") from error
    return {"payload": msgspec.Raw(found.strip())}


def _read(path: Path) -> bytes:
    """No more of a file than a payload may have, and a byte to tell."""
    if str(path) == "-":
        return sys.stdin.buffer.read(PAYLOAD_MAX + 1)
    with path.open("rb") as file:
        return file.read(PAYLOAD_MAX + 1)


def said(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Options that were given: neither missing nor an empty list."""
    return {name: value for name, value in values if value not in (None, (), [], {})}
