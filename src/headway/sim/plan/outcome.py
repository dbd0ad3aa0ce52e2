"""What a point of a grid came to, small enough to be sent around and shown in a row."""

import msgspec

from headway.sim.result import Result


class LaneKept(msgspec.Struct, frozen=True, kw_only=True):
    """One lane: how many waits were judged, and which share of them was in time."""

    slo_ms: int
    waits: int
    attained: float
    p99_ms: int


class TenantKept(msgspec.Struct, frozen=True, kw_only=True):
    tenant: str
    waits: int
    attained: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One point of the grid."""

    name: str
    """The change that it tries."""
    workers: int | None
    """Slots that were always there; None: those that really served."""
    seed: int
    lanes: dict[str, LaneKept]
    sufferers: list[TenantKept]
    """Tenants below the target, worst first."""
    sufferers_count: int
    utilisation: float
    """Of the slots that were there, the share that was busy."""
    slots: float
    """How many there were, on average."""
    unstarted: int
    refused: int
    """Jobs that the changed rules would not have taken."""
    digest: str
    """Two runs of the same point have the same."""

    @property
    def worst(self) -> str | None:
        """The lane that fared worst; None if nothing was judged."""
        lanes = [name for name, lane in self.lanes.items() if lane.waits]
        return min(lanes, key=lambda name: self.lanes[name].attained, default=None)

    def is_kept(self, target: float) -> bool:
        """Every lane keeps its promise."""
        return all(lane.attained >= target for lane in self.lanes.values())


def lanes_of(result: Result) -> dict[str, LaneKept]:
    return {
        name: LaneKept(
            slo_ms=lane.slo_ms,
            waits=lane.jobs,
            attained=lane.attained,
            p99_ms=lane.wait_ms.p99,
        )
        for name, lane in result.lanes.items()
    }


def sufferers_of(result: Result, target: float) -> list[TenantKept]:
    """Tenants whose promises were kept less often than that, worst first."""
    found = [
        TenantKept(tenant=tenant, waits=group.jobs, attained=group.attained)
        for tenant, group in result.tenants.items()
        if group.attained < target
    ]
    return sorted(found, key=lambda one: (one.attained, -one.waits, one.tenant))
