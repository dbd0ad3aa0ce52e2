"""What a run came to: the shape of `headway simulate --json`, and of the chart."""

import msgspec


class WaitTimes(msgspec.Struct, frozen=True):
    """Exact, by nearest rank; 0 where nothing waited."""

    p50: int
    p99: int
    max: int


class Series(msgspec.Struct, frozen=True):
    """A lane over the run, one entry for each bin of `Result.bin_ms`."""

    starts: list[int]
    mean_ms: list[int | None]
    """None where nothing started."""
    p99_ms: list[int | None]
    max_ms: list[int | None]


class LaneResult(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    slo_ms: int
    jobs: int
    unstarted: int
    """How many of them had not started when the run ended."""
    attained: float
    """Of those started or past due: the share that waited no longer than the SLO."""
    wait_ms: WaitTimes
    """Of those started or past due."""
    unfairness: float
    """Sum over tenants of the place of their first start, by tenants squared."""
    series: Series


class GroupResult(msgspec.Struct, frozen=True, kw_only=True):
    """Some jobs of the run: those of one load, or of one tenant."""

    jobs: int
    attained: float
    wait_ms: WaitTimes
    share: float
    """Of all first starts."""
    run_share: float
    """Of the time that workers were busy."""


class LimitUse(msgspec.Struct, frozen=True):
    """The most that was ever in use at once, and what was allowed."""

    max_used: int
    capacity: int


class Outcomes(msgspec.Struct, frozen=True):
    """Where the jobs stood at the end."""

    done: int = 0
    dead: int = 0
    cancelled: int = 0
    open: int = 0


class LoadSeries(msgspec.Struct, frozen=True):
    """What was asked of the fleet, one entry for each bin."""

    arrivals: list[int]
    work_slots: list[float]
    """Slots that the arriving work would have kept busy."""
    slots: list[float]
    """Slots that were there, on average over the bin."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario under one policy."""

    scenario: str
    title: str
    policy: str
    seed: int
    digest: str
    simulated_jobs: int
    simulated_jobs_per_second: float
    duration_ms: int
    ended_ms: int
    """After the start."""
    attained: float
    outcomes: Outcomes
    lanes: dict[str, LaneResult]
    loads: dict[str, GroupResult]
    tenants: dict[str, GroupResult]
    """The largest ones by jobs; "" are the jobs without a tenant."""
    tenants_folded: GroupResult | None
    """All the others together."""
    tenants_count: int
    limits: dict[str, LimitUse]
    bin_ms: int
    load: LoadSeries
