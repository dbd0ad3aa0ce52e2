"""A line of a log: a JSON object, escaped so that no terminal acts on it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def log_line(at_s: float, level: str, fields: Mapping[str, Any]) -> str:
    """`at_s` is in seconds since 1970."""
    at = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
    own = {"at": at, "level": level.lower()}
    line = json.dumps({**own, **fields, **own}, default=str, skipkeys=True)
    return line.replace("\x7f", "\\u007f")
