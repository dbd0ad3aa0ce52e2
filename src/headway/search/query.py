"""What may be searched for."""

from enum import StrEnum
from typing import Final

import msgspec

from headway.core.defaults import COUNT_MAX, NAME_LENGTH_MAX, TIME_MAX_MS
from headway.core.errors import BadValue
from headway.core.states import JobState

LIMIT_MAX: Final = 1_000
LABELS_MAX: Final = 4
TEXT_LENGTH_MAX: Final = 256
CURSOR_LENGTH_MAX: Final = 256


class By(StrEnum):
    """The time that a search goes by, in its order and in its range."""

    ENQUEUED = "enqueued"
    CHANGED = "changed"
    """When the job last changed; a heartbeat is no change."""


class Search(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs for which all of this holds; None and nothing mean: any."""

    queue: str | None = None
    states: tuple[JobState, ...] = ()
    tenant: str | None = None
    """Belongs to a queue, which has to be named; so does a kind."""
    kind: str | None = None
    labels: dict[str, str] = {}
    worker: str | None = None
    """Who has the job, or had it last."""
    reason: str | None = None
    """Of its last failure, as a whole: failed, lease lost, timed out …"""
    error: str | None = None
    """How the text of its last failure begins; the reason has to be named."""
    group: int | None = None
    """Dead letters of one group."""
    by: By = By.ENQUEUED
    since_ms: int | None = None
    until_ms: int | None = None
    """This moment is not in the range."""
    is_newest_first: bool = True
    limit: int = 100
    cursor: str | None = None
    """Where the page before ended; everything else must be as it was there."""


def check(search: Search) -> None:
    """Refuses what can't be found by a range of an index, naming the key."""
    for key in ("queue", "tenant", "kind", "worker", "reason"):
        _check_text(key, getattr(search, key), NAME_LENGTH_MAX)
    _check_text("error", search.error, TEXT_LENGTH_MAX)
    _check_text("cursor", search.cursor, CURSOR_LENGTH_MAX)
    if len(search.labels) > LABELS_MAX:
        raise BadValue("labels", search.labels, f"at most {LABELS_MAX}")
    for name, value in search.labels.items():
        _check_text("labels", name, TEXT_LENGTH_MAX)
        _check_text("labels", value, TEXT_LENGTH_MAX)
    for key in ("since_ms", "until_ms"):
        value = getattr(search, key)
        if value is not None and not 0 <= value <= TIME_MAX_MS:
            raise BadValue(key, value, f"must be from 0 to {TIME_MAX_MS}")
    check_limit(search.limit)
    if search.group is not None and not 0 < search.group <= COUNT_MAX:
        raise BadValue("group", search.group, f"must be from 1 to {COUNT_MAX}")
    if search.queue is None:
        if search.tenant is not None:
            raise BadValue("tenant", search.tenant, "needs a queue")
        if search.kind is not None:
            raise BadValue("kind", search.kind, "needs a queue")
    if search.error and not search.reason:
        raise BadValue("error", search.error, "needs a reason")


def check_limit(limit: int) -> None:
    if not 1 <= limit <= LIMIT_MAX:
        raise BadValue("limit", limit, f"must be from 1 to {LIMIT_MAX}")


def check_name(key: str, name: str, longest: int = NAME_LENGTH_MAX) -> None:
    _check_text(key, name, longest)


def _check_text(key: str, text: str | None, longest: int) -> None:
    if text is None:
        return
    if len(text) > longest:
        raise BadValue(key, text, f"at most {longest} characters")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise BadValue(key, text, "must be text that can be written")
