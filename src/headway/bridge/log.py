"""The bridge's log: one JSON object a line, without keys, values or tokens."""

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO


class Log:
    """Writes to stderr. A log that nobody reads is no reason to stop."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr

    def happened(self, event: str, **fields: Any) -> None:
        self._write("info", event, fields)

    def warned(self, event: str, **fields: Any) -> None:
        self._write("warning", event, fields)

    def failed(self, event: str, **fields: Any) -> None:
        self._write("error", event, fields)

    def _write(self, level: str, event: str, fields: dict[str, Any]) -> None:
        at = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, "level": level, "event": event, **fields})
        try:
            self._stream.write(line.replace("\x7f", "\\u007f") + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return
