"""A scenario: fleets, queues, streams of jobs and what an operator does meanwhile.

All times are milliseconds after the scenario's start; `epoch_ms` says when that is.
"""

from enum import StrEnum
from typing import Final

import msgspec

from headway.core import defaults
from headway.core.config import QueueConfig
from headway.core.errors import BadValue
from headway.core.windows import WindowSet
from headway.sim.actions import Action

JOBS_MAX: Final = 50_000_000
SAMPLES_MAX: Final = 1_000_000
EPOCH_MS: Final = 1_767_571_200_000
"""2026-01-05T00:00:00Z, a Monday."""


class ScenarioError(Exception):
    """A scenario file that cannot be run: one line with file, key and value."""


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet of worker slots that joins at `at_ms` and leaves at `until_ms`."""

    slots: int
    at_ms: int = 0
    until_ms: int | None = None
    queues: tuple[str, ...] | None = None
    """None means: every queue."""


class Steady(msgspec.Struct, frozen=True, kw_only=True, tag="steady"):
    """Evenly spaced."""

    per_second: float


class Poisson(msgspec.Struct, frozen=True, kw_only=True, tag="poisson"):
    """At random, independent of each other."""

    per_second: float


class Sine(msgspec.Struct, frozen=True, kw_only=True, tag="sine"):
    """At random, with a rate that swings by `amplitude` (0 to 1) of its mean."""

    per_second: float
    amplitude: float = 0.5
    period_ms: int


class Burst(msgspec.Struct, frozen=True, kw_only=True, tag="burst"):
    """`count` jobs in the same instant, once or again and again."""

    count: int
    at_ms: int = 0
    every_ms: int | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """So many jobs in each step of a record, at random within the step."""

    jobs: tuple[int, ...]
    step_ms: int = defaults.MINUTE_MS


class Exact(msgspec.Struct, frozen=True, kw_only=True, tag="list"):
    """One job at each of these times, ascending."""

    at_ms: tuple[int, ...]
    priorities: tuple[int, ...] = ()
    """One for each job, or none at all."""


Arrivals = Steady | Poisson | Sine | Burst | Trace | Exact


class OneTenant(msgspec.Struct, frozen=True, kw_only=True, tag="one"):
    name: str


class ManyTenants(msgspec.Struct, frozen=True, kw_only=True, tag="many"):
    """prefix0 … prefix(count-1), drawn evenly or by Zipf's law."""

    count: int
    prefix: str = "t"
    zipf: float = 0.0
    """The n-th gets jobs in proportion to n ** -zipf."""
    weights: tuple[float, ...] = ()
    """Fairness weights, dealt out in turn to the tenants."""


class RotatingTenants(msgspec.Struct, frozen=True, kw_only=True, tag="rotating"):
    """Each job under the next of `count` names; all are fresh every `every_ms`."""

    count: int
    every_ms: int | None = None
    prefix: str = "t"


class NamedTenants(msgspec.Struct, frozen=True, kw_only=True, tag="named"):
    """Each job under the next of these names."""

    names: tuple[str, ...]


Tenants = OneTenant | ManyTenants | RotatingTenants | NamedTenants


class Spread(StrEnum):
    """How times are distributed around their mean."""

    FIXED = "fixed"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """How long a job runs, or a reply takes."""

    kind: Spread = Spread.FIXED
    mean_ms: int
    spread: float = 0.5
    """Uniform: the mean plus or minus this part of it."""
    sigma: float = 1.0
    """Lognormal: the deviation of the logarithm."""


class Replies(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs wait for a reply from outside, and what becomes of it."""

    share: float = 1.0
    after: Service
    timeout_ms: int
    never: float = 0.0
    """Share of the replies that never come."""
    early: float = 0.0
    """Share of the replies that come before their job waits for them."""


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """A label with one value, or with values drawn by weight."""

    name: str
    values: tuple[str, ...]
    weights: tuple[float, ...] = ()


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """One stream of jobs. None means: as the queue says."""

    name: str
    queue: str
    arrivals: Arrivals
    service: Service
    kind: str = ""
    tenants: Tenants | None = None
    slos_ms: tuple[int, ...] = ()
    """Dealt out to the jobs in turn."""
    priority: int | None = None
    cost: int | None = None
    is_critical: bool = False
    labels: tuple[Label, ...] = ()
    weight: float | None = None
    windows: WindowSet | None = None
    delay_ms: int = 0
    timeout_ms: int | None = None
    lifetime_ms: int | None = None
    attempts_max: int | None = None
    from_ms: int = 0
    until_ms: int | None = None
    fail: float = 0.0
    """Share of the attempts that end in a nack."""
    hang: float = 0.0
    """Share of the jobs whose first worker dies without a word."""
    replies: Replies | None = None

    def end_ms(self, duration_ms: int) -> int:
        """Where the stream ends, in a scenario of this length."""
        return duration_ms if self.until_ms is None else min(self.until_ms, duration_ms)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What is simulated. Checked when it is made: BadValue names the key."""

    name: str
    title: str = ""
    duration_ms: int
    """Jobs arrive before this time."""
    drain_ms: int = defaults.HOUR_MS
    """How much longer the run may go on until all is done."""
    seed: int = 1
    epoch_ms: int = EPOCH_MS
    sample_ms: int = 0
    """The bin of the chart; 0 means a 200th of the duration."""
    workers: tuple[Workers, ...]
    queues: tuple[QueueConfig, ...]
    loads: tuple[Load, ...]
    actions: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        if self.duration_ms < 1:
            raise BadValue("duration", self.duration_ms, "must be above 0")
        if self.duration_ms > SAMPLES_MAX * self.bin_ms:
            rule = f"at most {SAMPLES_MAX} of them in the duration"
            raise BadValue("sample", self.sample_ms, rule)
        for key, parts in (("workers", self.workers), ("loads", self.loads)):
            if not parts:
                raise BadValue(key, [], "at least one is needed")
        _distinct("queues", [queue.name for queue in self.queues])
        _distinct("loads", [load.name for load in self.loads])
        self._check_queue_names()
        jobs = sum(expected_jobs(load, self.duration_ms) for load in self.loads)
        if jobs > JOBS_MAX:
            raise BadValue("loads", f"{jobs:.0f} jobs", f"at most {JOBS_MAX} in all")

    @property
    def bin_ms(self) -> int:
        return self.sample_ms or max(1, self.duration_ms // 200)

    def queue(self, name: str) -> QueueConfig:
        return next(queue for queue in self.queues if queue.name == name)

    def _check_queue_names(self) -> None:
        known = {queue.name for queue in self.queues}
        named = [
            (f"loads[{index}].queue", load.queue)
            for index, load in enumerate(self.loads)
        ]
        named += [
            (f"actions[{index}].queue", action.queue)
            for index, action in enumerate(self.actions)
        ]
        named += [
            (f"workers[{index}].queues", name)
            for index, workers in enumerate(self.workers)
            for name in workers.queues or ()
        ]
        for key, name in named:
            if name not in known:
                raise BadValue(key, name, "no queue of this name")


def expected_jobs(load: Load, duration_ms: int) -> float:
    """How many jobs a stream brings, on average."""
    length_ms = max(0, load.end_ms(duration_ms) - load.from_ms)
    match load.arrivals:
        case Steady(per_second=rate) | Poisson(per_second=rate) | Sine(per_second=rate):
            return rate * length_ms / 1_000
        case Burst(count=count, at_ms=at_ms, every_ms=every_ms):
            if every_ms is None:
                return count
            return count * (max(0, load.end_ms(duration_ms) - at_ms) // every_ms + 1)
        case Trace(jobs=jobs):
            return sum(jobs)
        case Exact(at_ms=times):
            return len(times)


def _distinct(key: str, names: list[str]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            raise BadValue(f"{key}[{index}].name", name, "used twice")
        seen.add(name)
