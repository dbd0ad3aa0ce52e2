"""What is said of a server and of the wanted part of it: options as Spark passes them."""

import os
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from headway.client.blocking import Client
from headway.core.errors import BadValue
from headway.wire.writes import CHUNK_JOBS_MAX, NAME

EVENTS_PER_TASK: Final = 500_000
EVENTS_PER_BATCH: Final = 8_000_000
CHUNK_JOBS: Final = 5_000
TABLES: Final = ("history", "jobs", "backlog")
TOKEN_VARIABLE: Final = "HEADWAY_TOKEN"  # noqa: S105 the name of one


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Read once, on the driver; executors get them as they are."""

    url: str
    token: str | None = None
    table: str = "history"
    first: int = 1
    """The first event that is wanted."""
    before: int | None = None
    """No events from this number on."""
    starts: dict[str, int] = {}
    """For a stream: the first event that is wanted, by partition."""
    events_per_task: int = EVENTS_PER_TASK
    events_per_batch: int = EVENTS_PER_BATCH
    stage_to: str | None = None
    """For a stream: the root of the lake to whose files the events go."""
    reader: str | None = None
    """The name under which a stream tells the server how far it is."""

    queue: str | None = None
    """Whose jobs are read; where jobs go that do not name their queue."""
    pushdown: bool = True
    """Filters go to the server; Spark has to allow that."""
    write_id: str | None = None
    """The name of a write; under one name jobs are written once."""
    chunk_jobs: int = CHUNK_JOBS
    """Jobs that a task sends at one go."""

    def client(self) -> Client:
        return Client(self.url, self.token)


_NAMES: Final = {
    "url": "url",
    "token": "token",
    "table": "table",
    "from": "first",
    "before": "before",
    "starts": "starts",
    "eventspertask": "events_per_task",
    "eventsperbatch": "events_per_batch",
    "stageto": "stage_to",
    "reader": "reader",
    "queue": "queue",
    "pushdown": "pushdown",
    "writeid": "write_id",
    "chunkjobs": "chunk_jobs",
}


_OF_SPARK: Final = ("checkpointlocation",)
"""Options that Spark reads itself and passes on all the same."""


def read_options(given: Mapping[str, str]) -> Options:
    """Raises BadValue for what is unknown or out of range, and names it."""
    values: dict[str, object] = {}
    for name, text in given.items():
        if name.lower() in _OF_SPARK:
            continue
        field = _NAMES.get(name.lower())
        if field is None:
            raise BadValue(name, text, f"unknown option; known are {', '.join(_NAMES)}")
        values[field] = msgspec.json.decode(text) if field == "starts" else text
    if "url" not in values:
        raise BadValue("url", "", 'missing: option("url", "http://HOST:PORT")')
    values.setdefault("token", os.environ.get(TOKEN_VARIABLE))
    try:
        options = msgspec.convert(values, Options, strict=False)
    except msgspec.ValidationError as error:
        raise BadValue("options", "", str(error)) from error
    for name in ("first", "events_per_task", "events_per_batch"):
        if getattr(options, name) < 1:
            raise BadValue(name, getattr(options, name), "must be at least 1")
    if options.table not in TABLES:
        raise BadValue("table", options.table, f"known are {', '.join(TABLES)}")
    if not 1 <= options.chunk_jobs <= CHUNK_JOBS_MAX:
        rule = f"must be from 1 to {CHUNK_JOBS_MAX}"
        raise BadValue("chunkJobs", options.chunk_jobs, rule)
    if options.write_id is not None and not re.fullmatch(NAME, options.write_id):
        rule = "at most 128 letters, digits, . _ and -, the first no sign"
        raise BadValue("writeId", options.write_id, rule)
    return options
