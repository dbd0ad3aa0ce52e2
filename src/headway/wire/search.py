"""Counts and groups from the index, which says how far it is."""

import msgspec


class LaneCounts(msgspec.Struct):
    slo_ms: int
    states: dict[str, int]


class QueueUse(msgspec.Struct):
    """Jobs of a queue by lane and state, ended ones included."""

    lanes: list[LaneCounts]
    indexed_to: int
    """The event up to which the index knows everything."""
    indexed_ms: int


class TenantCounts(msgspec.Struct):
    tenant: str
    states: dict[str, int]


class TenantUse(msgspec.Struct):
    """Jobs of a queue by tenant and state, ended ones included."""

    tenants: list[TenantCounts]
    next: str | None
    indexed_to: int
    indexed_ms: int


class DeadGroup(msgspec.Struct):
    """Dead letters that died of the same."""

    group: int
    reason: str
    line: str
    """First line of the error, with placeholders for what varies."""
    count: int
    first_ms: int
    last_ms: int
    example: str
    """The one that died last."""


class DeadGroups(msgspec.Struct):
    groups: list[DeadGroup]
