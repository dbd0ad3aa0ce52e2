"""Dead letters, bulk operations and schedules."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from headway.wire.jobs import JobShown, NewJob
from headway.wire.values import BATCH_MAX, Base64, Moment, Name, Token


class DeadFilter(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which dead letters are meant: those of which all that is said here holds."""

    tenant: Name | None = None
    kind: Name | None = None
    reason: Name | None = None
    """Of the last error: failed, lease lost, timed out, no reply, expired, refused."""
    text: Annotated[str, Meta(min_length=1, max_length=1_000)] | None = None
    """Contained in the last error."""
    died_after: Moment | None = None
    died_before: Moment | None = None
    ids: Annotated[list[Token], Meta(min_length=1, max_length=BATCH_MAX)] | None = None


Rate = Annotated[float, Meta(ge=0.001, le=1_000_000.0)]


class DeadBody(msgspec.Struct, forbid_unknown_fields=True):
    filter: DeadFilter = msgspec.field(default_factory=DeadFilter)
    rate: Rate | None = None
    """Jobs a second at most."""
    preview: bool = False
    """Changes nothing and answers what would be met."""


class RedriveBody(msgspec.Struct, forbid_unknown_fields=True):
    """A payload for the next attempts, in place of the old one."""

    payload: Raw | UnsetType = UNSET
    payload_base64: Base64 | None = None


class PurgeBody(msgspec.Struct, forbid_unknown_fields=True):
    tenant: Name | None = None
    rate: Rate | None = None
    preview: bool = False


class Preview(msgspec.Struct):
    """What an operation would meet, if it was started now."""

    matched: int
    is_more: bool
    """Only so many jobs were looked at, and there are others."""
    sample: list[JobShown]


class Operation(msgspec.Struct, kw_only=True):
    """One thing that is done to many jobs, and how far it is."""

    id: int
    queue: str
    verb: str
    state: str
    done: int
    failed: int
    """Jobs that were meant and had moved on."""
    total: int | None
    rate: float | None
    started_ms: int
    ended_ms: int | None
    partition: str | UnsetType = UNSET
    """Where it runs, in answers that are about several: numbers are of a partition."""


class Operations(msgspec.Struct):
    operations: list[Operation]


class JobPage(msgspec.Struct):
    jobs: list[JobShown]
    """May be few, or none, although there is a next page."""
    next: str | None


class ScheduleBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A job at every tick of a cron expression."""

    cron: Annotated[str, Meta(min_length=1, max_length=128)]
    """Five fields, or six with seconds in front."""
    zone: Annotated[str, Meta(min_length=1, max_length=64)] = "UTC"
    missed: Literal["skip", "one", "all"] = "one"
    """What to do about ticks that nobody was there to see."""
    paused: bool = False
    job: NewJob = msgspec.field(default_factory=NewJob)


class ScheduleShown(msgspec.Struct):
    queue: str
    name: str
    cron: str
    zone: str
    missed: str
    is_paused: bool
    kind: str
    last_ms: int
    """The newest tick that was dealt with, or when the schedule was made."""
    next_ms: int | None


class SchedulePage(msgspec.Struct):
    schedules: list[ScheduleShown]
    next: str | None


class LaneWanted(msgspec.Struct):
    queue: str
    slo_ms: int
    load: float
    """Slots that what arrives keeps busy."""
    backlog: float
    """Slots for which what waits is work until it is due."""


class WorkersWanted(msgspec.Struct):
    """How many workers would keep the promises."""

    workers: int
    slots: int
    """Jobs that should be able to run at once."""
    reason: str
    load: float
    slots_max: int | None
    """More could not be used, since limits forbid it."""
    lanes: list[LaneWanted]
