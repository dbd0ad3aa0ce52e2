"""Passes and weights: the fair clocks of tenants and of queues.

A clock's pass says how much its owner has had. The lowest pass goes first and is
moved on by cost / weight, so a new weight holds from the next start on.
"""

from typing import TYPE_CHECKING, Final

from headway.core.held import HeldClock

if TYPE_CHECKING:
    from headway.core.entitlement import Account
    from headway.core.lane import TenancyTier
    from headway.core.limits import Gauge
    from headway.core.turn import Turn

UNIT: Final = 1_000_000
"""Pass of one unit of cost at weight 1; integers, so that order never drifts."""


def stride_of(weight: float) -> int:
    """How far one unit of cost moves the pass of that weight."""
    return max(1, round(UNIT / weight))


class TenantRule(HeldClock):
    """What holds for one tenant in all lanes of a queue."""

    __slots__ = ("cap", "gauges", "name", "parked", "stride", "weight")

    def __init__(self, name: str) -> None:
        super().__init__()
        # Compiled classes lie in memory as this writes them: what starts ask for first.
        self.stride = UNIT
        self.gauges: tuple[Gauge, ...] = ()
        """What its cap and every limit per tenant leave it."""
        self.name = name
        self.weight = 1.0
        self.cap: int | None = None
        """The operator's cap for this tenant alone, if there is one."""
        self.parked: list[Turn] | None = None
        """Turns that were met while it was paused."""

    def set_weight(self, weight: float) -> None:
        self.weight = weight
        self.stride = stride_of(weight)


class Tenancy:
    """One tenant in one lane: its clock, shared by all of its turns there."""

    __slots__ = (
        "account",
        "entitled",
        "is_named",
        "leased",
        "name",
        "over",
        "pass_",
        "ready",
        "rule",
        "turns",
    )

    def __init__(self, name: str, rule: TenantRule, account: "Account") -> None:
        self.is_named = name != ""
        """Told apart from the name: that is a string, and lies elsewhere."""
        self.rule = rule
        self.account = account
        self.name = name
        self.pass_ = 0
        self.entitled: TenancyTier | None = None
        self.over: TenancyTier | None = None
        """Its places in the lane, made when it first has a turn there."""
        self.ready = 0
        self.leased = 0
        self.turns = 0


class LaneClock:
    """A queue's clock among the lanes of one SLO, while they are due."""

    __slots__ = ("pass_", "slo", "stride")

    def __init__(self, slo: "SloClass", stride: int) -> None:
        self.slo = slo
        self.pass_ = slo.base
        self.stride = stride

    def catch_up(self) -> None:
        """A lane that was not due gets no credit for that time."""
        self.pass_ = max(self.pass_, self.slo.base)

    def charge(self, cost: int) -> None:
        self.slo.base = max(self.slo.base, self.pass_)
        self.pass_ += cost * self.stride


class SloClass:
    """All lanes of one SLO in the partition."""

    __slots__ = ("base", "slo_ms")

    def __init__(self, slo_ms: int) -> None:
        self.slo_ms = slo_ms
        self.base = 0
        """Pass of the last start among them; never moves back."""
