"""What a dashboard shows: figures of this moment and of late, who acted, what if."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from headway.wire.queues import Counts
from headway.wire.values import END

REASON: Final = "Headway-Reason"
"""The header in which somebody says why they act."""
REASON_PATTERN: Final = r"^[A-Za-z0-9%._~!*'()-]*" + END
REASON_MAX: Final = 500
"""Characters of a reason; percent-encoded it may be nine times as long."""


class Me(msgspec.Struct):
    """Who asks, and what they may do."""

    name: str
    is_open: bool
    """No token is asked for."""
    scopes: list[str]
    partition: str
    version: str


class LaneLive(msgspec.Struct, kw_only=True):
    """One lane at this moment."""

    queue: str
    slo_ms: int
    ready: int
    late: int
    """Ready jobs past their SLO, at least: of a long lane some are looked at."""
    oldest_ms: int
    """How long its oldest ready job has waited, at least."""
    is_sure: bool
    """All of its ready jobs were looked at."""
    arrivals_per_s: float
    starts_per_s: float
    run_ms: float
    attained: float | None
    """Of the starts of the last five minutes, the share in time; null without any."""
    broken_since_ms: int | None
    """Since when its promise has been broken; null while it is kept."""


class Slots(msgspec.Struct):
    """Worker slots that are there, and those that the promises need."""

    busy: int
    idle: int
    wanted: int
    reason: str
    slots_max: int | None


class Live(msgspec.Struct, kw_only=True):
    """Whether promises are kept, right now."""

    number: int
    """Pass it as `after` to hear of the next change."""
    at_ms: int
    since_ms: int
    """Since when servers of this folder have watched, as far as a trend goes back."""
    lanes: list[LaneLive]
    """Those in trouble first; of many, some."""
    lanes_total: int
    lanes_broken: int
    counts: Counts
    arrivals_per_s: float
    starts_per_s: float
    attained: float | None
    slots: Slots | None
    """For those who may read every queue."""


class LaneTrend(msgspec.Struct):
    queue: str
    slo_ms: int
    points: list[tuple[int, int, int, int, int]]
    """When a step began, starts, starts in time, the longest wait of a ready job in
    ms, and ready jobs."""


class Trends(msgspec.Struct):
    """Lanes of late, shortest SLO first."""

    step_ms: int
    since_ms: int
    lanes: list[LaneTrend]
    slots: list[tuple[int, int, int, int]]
    """When a step began, and the most slots busy, there and wanted in it."""


class Node(msgspec.Struct, kw_only=True):
    """This server and its store."""

    partition: str
    version: str
    since_ms: int
    at_ms: int
    queues: int
    lanes: int
    store_bytes: int
    log_bytes: int
    memory_bytes: int
    jobs_in_memory: int
    jobs_in_memory_max: int
    turns_in_memory: int
    commits_per_s: float
    commit_ms: float
    """The mean of late."""
    commands_per_commit: float
    slots_busy: int
    slots_idle: int
    ticks_skipped: int
    replies: dict[str, int]
    indexed_to: int | None
    """The last event that the index of jobs knows; null before there is one."""
    indexed_ms: int | None
    listeners: int
    """Pages that look at this."""


class Act(msgspec.Struct, kw_only=True):
    """What somebody did."""

    number: int = 0
    at_ms: int
    who: str
    """The name of the token; `anybody` where none is asked for."""
    what: str
    """The operation, as the description of the API calls it."""
    queue: str = ""
    job: str = ""
    named: dict[str, str] = {}
    """The tenant, kind or schedule."""
    said: Any = None
    """Rules or filters that were sent."""
    reason: str = ""


class Acts(msgspec.Struct):
    """The newest first."""

    acts: list[Act]
    next: int | None
    """Pass it as `before` for older ones."""


class RankedQueue(msgspec.Struct, kw_only=True):
    name: str
    counts: Counts
    is_paused: bool
    is_blocked: bool
    slos_ms: list[int]
    due: int
    """Lanes with a job that has reached its aim."""
    oldest_ms: int | None
    """How long its oldest ready job has waited; null where that is not watched."""


class Ranking(msgspec.Struct):
    queues: list[RankedQueue]
    total: int


class BusyTenant(msgspec.Struct, kw_only=True):
    tenant: str
    weight: float
    is_paused: bool
    cap: int | None
    ready: int
    leased: int
    is_over: bool
    """It holds more than its fair share while promises are in danger."""
    oldest_ms: int | None


class BusyTenants(msgspec.Struct):
    """Tenants that wait or run, those with most slots first."""

    tenants: list[BusyTenant]
    total: int


class BusyWorker(msgspec.Struct):
    worker: str
    jobs: int
    oldest: str
    """The job that it has had for longest."""
    oldest_ms: int
    """Since when."""
    lease_until_ms: int
    """When the first of its leases ends."""


class BusyWorkers(msgspec.Struct):
    workers: list[BusyWorker]
    next: str | None
    """Pass it as `after` for the next page."""
    total: int


class Simulation(msgspec.Struct, forbid_unknown_fields=True):
    """A scenario to be tried, as TOML."""

    scenario: Annotated[str, Meta(min_length=1, max_length=32_768)]


class SimulatedLane(msgspec.Struct):
    queue: str
    slo_ms: int
    jobs: int
    unstarted: int
    attained: float
    p50_ms: int
    p99_ms: int
    max_ms: int
    points_p99_ms: list[int | None]
    """For each bin, the 99th percentile of waits; null where nothing started."""


class Simulated(msgspec.Struct):
    """What a scenario came to."""

    title: str
    jobs: int
    duration_ms: int
    ended_ms: int
    attained: float
    bin_ms: int
    lanes: list[SimulatedLane]
    work_slots: list[float]
    slots: list[float]
