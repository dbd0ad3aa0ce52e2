"""What is said of a server and of the wanted part of it: options as Spark passes them."""

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from headway.client.blocking import Client
from headway.core.errors import BadValue

EVENTS_PER_TASK: Final = 250_000
EVENTS_PER_BATCH: Final = 2_000_000
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
    reader: str | None = None
    """The name under which a stream tells the server how far it is."""

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
    "reader": "reader",
}


def read_options(given: Mapping[str, str]) -> Options:
    """Raises BadValue for what is unknown or out of range, and names it."""
    values: dict[str, object] = {}
    for name, text in given.items():
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
    return options
