"""One tenant's part of a limit, and what a job holds of it."""

from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, Final

from headway.core import events

if TYPE_CHECKING:
    from mypy_extensions import i64

    from headway.core.limits import Gauge

MINUTE_MS: Final = 60_000
PARTS_TOLD: Final = 8
"""Tenants that are told by name: those who held most, and those stopped longest."""


ANY: Final = -1
"""What jobs take of a part of which none has taken anything yet."""


class Hold:
    """Units of a limit that a job has taken, and on whose part of it they count.

    Mostly it is the part itself, of which most jobs take as much: nothing is made for them.
    """

    __slots__ = ("amount", "gauge", "is_open", "is_plain", "part", "units", "used_ms")

    def __init__(self, gauge: "Gauge", amount: int, part: "Hold | None") -> None:
        self.gauge = gauge
        self.is_plain = gauge.is_plain
        self.amount: i64 = amount
        """What one job takes. It does not change once one has: such jobs share it."""
        self.part = part
        """None if it is one."""
        # The rest says something of parts only.
        self.units: i64 = 0
        """In use, by all jobs."""
        self.used_ms = 0
        self.is_open = True
        """What its tenant takes next counts here, too."""


class Part(Hold):
    """One tenant's part of a limit; or that of all who are not counted apart.

    Times are counted up to the end of the minute as if nothing more would happen in it:
    what is taken adds the rest of the minute, what is given back takes it off again.
    """

    __slots__ = ("blocked_ms", "other", "stops", "tenant", "waiting")

    def __init__(self, gauge: "Gauge", tenant: str | None) -> None:
        super().__init__(gauge, ANY, None)
        self.waiting = 0
        """Turns of it that are stopped now."""
        self.blocked_ms = 0
        self.stops = 0
        self.other: Hold | None = None
        """What was last taken of it by a job that took another amount."""
        self.tenant = tenant
        """None stands for all others."""

    def taken(self, units: int) -> Hold:
        """What a job holds that takes so much of it."""
        if self.amount == ANY:
            self.amount = units
        if self.amount == units:
            return self
        hold = self.other
        if hold is None or hold.amount != units:
            hold = self.other = Hold(self.gauge, units, self)
        return hold

    def close(self) -> None:
        """What its tenant takes next counts elsewhere."""
        self.is_open = False
        self.other = None

    def is_idle(self) -> bool:
        """Nobody holds anything of it, or waits for it."""
        return not (self.units or self.waiting)

    def settle(self) -> None:
        """Now it is as in a minute in which nothing happens."""
        self.used_ms = self.units * MINUTE_MS
        self.blocked_ms = self.waiting * MINUTE_MS
        self.stops = 0


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
