"""Throttlers: code of an operator's that is asked whether a job may start.

    def at_most_three(job: ThrottledJob, running: Running) -> Verdict:
        return Start() if running.tenants[job.tenant] < 3 else Later("5s")

Here is what such a function is given and what it may answer, and the process in which
it runs. What becomes of its verdicts is the scheduler's to say, and not decided here.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from headway.core import defaults
from headway.core.durations import parse_ms
from headway.core.errors import BadValue

__all__ = [
    "Later",
    "LimitInUse",
    "Refuse",
    "Running",
    "Start",
    "ThrottledJob",
    "Verdict",
]


class LimitInUse(msgspec.Struct, frozen=True, array_like=True):
    """A limit that a start of the job would count on."""

    name: str
    value: str
    """Of a limit for each tenant, kind or label: which of them; else empty."""
    used: int
    max: int


class ThrottledJob(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The job that is about to start. Times are milliseconds since 1970."""

    seq: int = 0
    """Its number: in a server's ids the part behind the partition, `p1_17`."""
    queue: str = ""
    kind: str = ""
    tenant: str = ""
    labels: dict[str, str] = {}
    payload: bytes = b""
    priority: int = defaults.PRIORITY
    cost: int = defaults.COST
    slo_ms: int = defaults.SLO_MS
    attempt: int = 1
    """Which attempt its start would be."""
    enqueued_ms: int = 0
    ready_ms: int = 0
    """Since when it could start; its promise counts from here."""
    expires_ms: int = 0
    """When its lifetime ends."""
    now_ms: int = 0
    """The time of the queue, when it was asked about."""
    limits: tuple[LimitInUse, ...] = ()


@dataclass(frozen=True)
class Running:
    """How many jobs run, as far as limits would count them: a view to be read only.

    A job runs from its lease to its end, and while it waits for a reply; one that was
    told to start counts at once. Critical jobs do not count. Whoever is not there is 0.
    """

    total: int = 0
    """Of the job's queue; and of these:"""
    kinds: Mapping[str, int] = field(default_factory=Counter)
    tenants: Mapping[str, int] = field(default_factory=Counter)
    labels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By the name of a label, and then its value; see `label`."""
    queues: Mapping[str, int] = field(default_factory=Counter)
    """By queue, of all that are in the same partition."""

    def label(self, name: str, value: str) -> int:
        """How many of the queue's running jobs bear the label with this value."""
        return self.labels.get(name, {}).get(value, 0)


@dataclass(frozen=True)
class Start:
    """The job may start, as soon as limits and workers let it."""


@dataclass(frozen=True)
class Later:
    """The job is put off: `Later("30s")`, or `Later(at=…)` with a time and its zone.

    A time that is over means now. Its lifetime goes on.
    """

    delay: str | int | None = None
    """Such as "5m", or milliseconds."""
    at: datetime | None = None

    def __post_init__(self) -> None:
        if (self.delay is None) == (self.at is None):
            raise BadValue("Later", "", "needs a delay, or a time as `at`")
        if self.delay is not None:
            parse_ms(self.delay, "delay")
        elif not isinstance(self.at, datetime) or self.at.tzinfo is None:
            raise BadValue("at", self.at, "must be a time with a zone")


@dataclass(frozen=True)
class Refuse:
    """The job goes to the dead letters, and the text with it."""

    text: str = ""


Verdict = Start | Later | Refuse
