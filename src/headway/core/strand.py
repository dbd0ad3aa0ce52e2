"""Strands: the parts of a lane whose jobs can only be stopped together."""

from typing import TYPE_CHECKING, Final

from headway.core.held import HeldClock
from headway.core.shelf import NEVER
from headway.core.turn import Turn
from headway.core.windows import WindowSet

if TYPE_CHECKING:
    from headway.core.lane import Lane
    from headway.core.limits import Gauge
    from headway.core.shares import ShareGauge

WINDOW: Final = 1
KIND: Final = 2
TENANT: Final = 4
"""Why a strand is held: its window is closed, its kind or its tenant is paused."""


class Strand(HeldClock):
    """The part of a lane whose jobs can only be stopped together."""

    __slots__ = (
        "_many",
        "aside",
        "closes_held_ms",
        "closes_ms",
        "gauges",
        "key",
        "kind",
        "lane",
        "lone",
        "shape",
        "shares",
        "tenant",
        "windows",
    )

    def __init__(self, lane: "Lane", key: tuple[object, ...]) -> None:
        super().__init__()
        self.lane = lane
        self.key = key
        self.shape = 0
        """The version of its queue's rules by which its jobs were sorted."""
        self.kind: str | None = None
        """Its jobs' kind, where the queue's rules tell kinds apart."""
        self.tenant: str | None = None
        """Their tenant, where tenants have no turns of their own."""
        self.windows: WindowSet | None = None
        self.closes_ms = NEVER
        """Until when its window is known to be open."""
        self.closes_held_ms = 0
        """How long its queue had been held when that was found out."""
        self.gauges: tuple[Gauge, ...] = ()
        self.shares: tuple[ShareGauge, ...] = ()
        """Those of its gauges that want to know who will ask for units."""
        self.lone: Turn | None = None
        """Its only turn, while there is but one: strands may be many..."""
        self._many: dict[str, Turn] | None = None
        """...and else all of them by tenant."""
        self.aside: list[Turn] | None = None
        """Turns that were met while it was held."""

    @property
    def turns(self) -> dict[str, Turn]:
        """By tenant, to be looked at."""
        if self.lone is not None:
            return {self.lone.tenancy.name: self.lone}
        return {} if self._many is None else self._many

    def turn_of(self, name: str) -> Turn | None:
        lone = self.lone
        if lone is not None:
            return lone if lone.tenancy.name == name else None
        return None if self._many is None else self._many.get(name)

    def by_tenant(self) -> dict[str, Turn] | None:
        """Where its turns are looked up; None while there is but one."""
        return self._many

    def add(self, name: str, turn: Turn) -> None:
        lone = self.lone
        if self._many is not None:
            self._many[name] = turn
        elif lone is None:
            self.lone = turn
        else:
            self.lone = None
            self._many = {lone.tenancy.name: lone, name: turn}

    def drop(self, name: str) -> bool:
        """Takes out the turn of a tenant; whether that was the last."""
        if self._many is None:
            self.lone = None
            return True
        del self._many[name]
        return not self._many

    def now(self, now_ms: int) -> int:
        """The partition's time in the time of this strand."""
        return self.time(self.lane.queue.gate.time(now_ms))

    def hold(self, reason: int, now_ms: int, *, is_on: bool) -> None:
        """Stops it, or lets it go, for one of its reasons."""
        self.hold_at(reason, self.lane.queue.gate.time(now_ms), is_on=is_on)

    def hold_at(self, reason: int, queue_ms: int, *, is_on: bool) -> None:
        """The same as of an earlier moment, in the time of its queue."""
        self.set_hold(reason, queue_ms, is_on=is_on)
        if not self.holds and self.aside:
            self.lane.queue.shared.waking.append(self)
