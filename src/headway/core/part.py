"""One tenant's part of a limit, and what a job holds of it."""

from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, Final

from headway.core import events

if TYPE_CHECKING:
    from headway.core.limits import Gauge

MINUTE_MS: Final = 60_000
PARTS_TOLD: Final = 8
"""Tenants that are told by name: those who held most, and those stopped longest."""


class Part:
    """One tenant's part of a limit; or that of all who are not counted apart.

    Times are counted up to the end of the minute as if nothing more would happen in it:
    what is taken adds the rest of the minute, what is given back takes it off again.
    """

    __slots__ = (
        "blocked_ms",
        "hold",
        "is_open",
        "stops",
        "tenant",
        "units",
        "used_ms",
        "waiting",
    )

    def __init__(self, tenant: str | None) -> None:
        self.units = 0
        self.used_ms = 0
        self.waiting = 0
        """Turns of it that are stopped now."""
        self.blocked_ms = 0
        self.stops = 0
        self.is_open = True
        """What its tenant takes next counts here, too."""
        self.hold: Hold | None = None
        """What was last taken of it by one job: the next to take as much shares it."""
        self.tenant = tenant
        """None stands for all others."""

    def taken(self, gauge: "Gauge", units: int) -> "Hold":
        """What a job holds that takes so much of the gauge."""
        hold = self.hold
        if hold is None or hold.units != units:
            hold = self.hold = Hold(gauge, units, self)
        return hold

    def close(self) -> None:
        """What its tenant takes next counts elsewhere."""
        self.is_open = False
        self.hold = None

    def settle(self) -> None:
        """Now it is as in a minute in which nothing happens."""
        self.used_ms = self.units * MINUTE_MS
        self.blocked_ms = self.waiting * MINUTE_MS
        self.stops = 0


class Hold:
    """Units of a limit that a job has taken, and on whose part of it they count.

    It never changes: jobs that take as much of the same part share it.
    """

    __slots__ = ("gauge", "part", "units")

    def __init__(self, gauge: "Gauge", units: int, part: Part) -> None:
        self.gauge = gauge
        self.units = units
        self.part = part


def named(parts: list[Part]) -> tuple[events.LimitPart, ...]:
    """The greatest parts by name, and all others as one."""
    parts = [part for part in parts if part.used_ms or part.stops or part.blocked_ms]
    named = [part for part in parts if part.tenant is not None]
    if len(named) > PARTS_TOLD:
        holders = nsmallest(PARTS_TOLD, named, key=_by_use)
        stopped = nsmallest(PARTS_TOLD, named, key=_by_stops)
        named = list({id(part): part for part in chain(holders, stopped)}.values())
    told = [(x.tenant, x.used_ms, x.stops, x.blocked_ms) for x in named]
    chosen = set(map(id, named))
    others = [part for part in parts if id(part) not in chosen]
    if others:
        used_ms = sum(part.used_ms for part in others)
        blocked_ms = sum(part.blocked_ms for part in others)
        told.append((None, used_ms, sum(part.stops for part in others), blocked_ms))
    return tuple(told)


def _by_use(part: Part) -> tuple[int, str]:
    return -part.used_ms, part.tenant or ""


def _by_stops(part: Part) -> tuple[int, str]:
    return -part.blocked_ms, part.tenant or ""
