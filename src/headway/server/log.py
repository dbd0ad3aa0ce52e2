"""The log: one JSON object a line, on stderr, and nothing in it that is secret.

Python's own `logging` writes it: a line takes ten lines of formatter, and a plain install
stays small. What callers send is never logged: no query, header, payload, key or token,
nor the path, which may hold one of them, but the route that it led to. Texts of
unexpected errors may quote such values, so of those only types and places are told.
"""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from headway.runtime.errors import OwnerStopped
from headway.server.call import Call
from headway.server.http.message import Request, Response
from headway.wire.logline import log_line

_FRAMES_MAX: Final = 30


class Lines(logging.Formatter):
    """A record as a line of JSON, escaped so that no terminal acts on it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {}
        fields = getattr(record, "fields", None)
        if fields is None:
            # Of another library: its text may quote anything.
            line |= {"event": "library", "logger": record.name}
            if record.exc_info and record.exc_info[1] is not None:
                line |= told(record.exc_info[1])
        else:
            line |= {"event": record.getMessage(), **fields}
        return log_line(record.created, record.levelname, line)


class _Quiet(logging.StreamHandler[TextIO]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Nobody reads the log: no reason to stop, and nobody to tell."""


class Watcher:
    """Keeps the log of one server."""

    def __init__(self, level: str = "info", stream: TextIO | None = None) -> None:
        self._handler = _Quiet(stream or sys.stderr)
        self._handler.setFormatter(Lines())
        # Not one of the process's loggers: several servers may live in one.
        self._logger = logging.Logger("headway.server", level.upper())
        self._logger.addHandler(self._handler)
        self._is_debug = self._logger.isEnabledFor(logging.DEBUG)

    def take_over(self) -> None:
        """Whatever else the process would print of errors comes here, too."""
        logging.getLogger().addHandler(self._handler)
        threading.excepthook = lambda hook: self._stray(hook.exc_value)
        sys.unraisablehook = lambda hook: self._stray(hook.exc_value)

    def happened(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warned(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def seen(
        self, request: Request, call: Call | None, answer: Response, began_s: float
    ) -> None:
        """A request was answered."""
        status = answer.status
        if status < 500 and not self._is_debug:
            return
        level = logging.DEBUG
        if status >= 500:
            level = logging.ERROR if status == 500 else logging.WARNING
        fields = {
            "method": request.method.decode("latin-1"),
            "route": None if call is None else call.route.path,
            "status": status,
            "ms": round((time.perf_counter() - began_s) * 1_000, 3),
            "bytes": len(answer.body),
            "bearer": None if call is None else call.bearer.name,
        }
        self._write(level, "answered", fields)

    def unreadable(self, status: int) -> None:
        """What came was no request."""
        self._write(logging.DEBUG, "unreadable", {"status": status})

    def broken(self, error: BaseException) -> None:
        """A bug has shown itself."""
        self._write(logging.ERROR, "broken", told(error))

    def stray(self, _: object, context: Mapping[str, Any]) -> None:
        """An error that the event loop was left with."""
        self._stray(context.get("exception"))

    def owner_stopped(self, stopped: OwnerStopped) -> None:
        cause = stopped.__cause__
        # Without a cause it is a text of our own.
        why = {"error": str(stopped)} if cause is None else told(cause)
        self._write(logging.ERROR, "owner stopped", why)

    def owner_reopened(self) -> None:
        self.happened("owner reopened")

    def tokens_read(self, count: int) -> None:
        self.happened("tokens read", tokens=count)

    def not_read(self, what: str, error: Exception) -> None:
        """A file of the server's folder; the error names the place, and no secret."""
        self._write(logging.ERROR, f"{what} not read", {"error": str(error)})

    def not_served(self, error: Exception) -> None:
        """The command says it in words; here is where."""
        self._write(logging.ERROR, "not served", told(error))

    def _stray(self, error: BaseException | None) -> None:
        if error is not None:
            self._write(logging.ERROR, "stray", told(error))

    def _write(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        self._logger.log(level, event, extra={"fields": fields})


def told(error: BaseException) -> dict[str, object]:
    """Of what type an error is and where it was raised, without any value."""
    kinds: list[str] = []
    one: BaseException | None = error
    while one is not None and len(kinds) < 8:
        kinds.append(type(one).__name__)
        one = one.__cause__ or one.__context__
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_MAX:]
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames
    ]
    return {"error": " < ".join(kinds), "trace": places}
