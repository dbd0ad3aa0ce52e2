"""The log of a worker: what its handlers say and what happens to their jobs.

At a terminal it is text, elsewhere one JSON object a line, as the server's. Every line
that is written while a job runs names the job.
"""

import logging
import traceback
from typing import Any, Final, TextIO

from headway.wire.logline import log_line
from headway.wire.work import Leased
from headway.worker.outcomes import current

_FIELDS: Final = ("job", "kind", "queue", "attempt")
_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_KNOWN: Final = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", (), None)) | {"message": 0, "asctime": 0}
)
"""What every record has; anything else was given as `extra`."""


class JobFields(logging.Filter):
    """Gives each record the job that runs where it was written.

    For handlers of your own: `handler.addFilter(JobFields())`, and then `%(job)s`,
    `%(kind)s`, `%(queue)s` and `%(attempt)s` can be written. They are empty elsewhere.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        of = getattr(record, "of", None)
        job = of if isinstance(of, Leased) else current.get(None)
        record.job = "" if job is None else job.id
        for name in _FIELDS[1:]:
            setattr(record, name, "" if job is None else getattr(job, name))
        return True


class JsonLines(logging.Formatter):
    """A record as a line of JSON: its text, its job, and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {"event": record.getMessage(), "logger": record.name}
        if getattr(record, "job", ""):
            told |= {name: getattr(record, name) for name in _FIELDS}
        for name, value in vars(record).items():
            if name not in _KNOWN and name not in _FIELDS and name != "of":
                told.setdefault(name, value)
        if record.exc_info and record.exc_info[1] is not None:
            told["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return log_line(record.created, record.levelname, told)


class TextLines(logging.Formatter):
    """A record for people; the job goes before the text."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        told = vars(record)
        if told.get("job"):
            job = f"{told['kind']} {told['job']} #{told['attempt']}"
            record.message = f"[{job}] {record.message}"
        return super().formatMessage(record)


def start_log(stream: TextIO, level: int = logging.INFO) -> None:
    """What this process logs goes to the stream, unless somebody has seen to it."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(JobFields())
    handler.setFormatter(TextLines() if stream.isatty() else JsonLines())
    logging.basicConfig(level=level, handlers=[handler])
