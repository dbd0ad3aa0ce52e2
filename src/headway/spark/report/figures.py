"""All figures of a report. What is None is of a table that the lake does not have."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from headway.spark.lake.published import Published
from headway.spark.report.read import (
    capacity,
    limits,
    promises,
    tenants,
    troubles,
    waits,
)
from headway.spark.report.read.capacity import Capacity
from headway.spark.report.read.limits import Limits
from headway.spark.report.read.promises import Promises
from headway.spark.report.read.tenants import Costs, Tenants
from headway.spark.report.read.troubles import Failures, Partner, Schedule
from headway.spark.report.read.waits import AllWaits, Runs
from headway.spark.report.source import Read, Source, Span

Tell = Callable[[str], None]
T = TypeVar("T")


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    span: Span
    as_of_s: int
    """When the last event happened that the tables know."""
    events: int
    """In all of the lake."""
    batch: int
    promises: Promises | None = None
    waits: AllWaits | None = None
    runs: Runs | None = None
    arrivals: dict[int, int] | None = None
    tenants: Tenants | None = None
    limits: Limits | None = None
    costs: Costs | None = None
    failures: Failures | None = None
    schedules: list[Schedule] | None = None
    replies: list[Partner] | None = None
    capacity: Capacity | None = None


def gather(
    read: Read, record: Published, span: Span, tell: Tell = lambda _: None
) -> Figures:
    """Asks every table that is there; tells each by name before it does."""
    source = Source(read, span, record.at_ms // 1_000)

    def ask(name: str, question: Callable[[Source], T]) -> T:
        tell(name)
        return question(source)

    return Figures(
        span=span,
        as_of_s=source.as_of_s,
        events=record.events,
        batch=record.batch,
        promises=ask("promises", promises.read),
        waits=ask("waits", waits.read),
        runs=ask("runs", waits.read_runs),
        arrivals=ask("arrivals", waits.read_arrivals),
        tenants=ask("tenants", tenants.read),
        limits=ask("limits", limits.read),
        costs=ask("costs", tenants.read_costs),
        failures=ask("failures", troubles.read_failures),
        schedules=ask("schedules", troubles.read_schedules),
        replies=ask("replies", troubles.read_replies),
        capacity=ask("capacity", capacity.read),
    )
