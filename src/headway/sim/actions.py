"""What an operator does in the middle of a run, as commands of the core."""

from enum import StrEnum
from typing import Any, Final

import msgspec

from headway.core.commands import (
    Command,
    Configure,
    Hold,
    Purge,
    SetHold,
    SetKind,
    SetTenant,
)
from headway.core.config import Limit, QueueConfig


class Do(StrEnum):
    """The verbs of a scenario's actions."""

    PAUSE = "pause"
    RESUME = "resume"
    BLOCK = "block"
    UNBLOCK = "unblock"
    PURGE = "purge"
    WEIGHT = "weight"
    CAP = "cap"
    PAUSE_TENANT = "pause_tenant"
    RESUME_TENANT = "resume_tenant"
    PAUSE_KIND = "pause_kind"
    RESUME_KIND = "resume_kind"
    KIND_CAP = "kind_cap"
    KIND_COST = "kind_cost"
    LIMITS = "limits"
    QUEUE_WEIGHT = "queue_weight"
    SLOT_SHARE = "slot_share"
    FLOOR = "floor"


NEEDS: Final[dict[Do, tuple[str, ...]]] = {
    Do.WEIGHT: ("tenant", "value"),
    Do.CAP: ("tenant", "value"),
    Do.PAUSE_TENANT: ("tenant",),
    Do.RESUME_TENANT: ("tenant",),
    Do.PAUSE_KIND: ("kind",),
    Do.RESUME_KIND: ("kind",),
    Do.KIND_CAP: ("kind", "value"),
    Do.KIND_COST: ("kind", "value"),
    Do.LIMITS: ("limits",),
    Do.QUEUE_WEIGHT: ("value",),
    Do.SLOT_SHARE: ("value",),
    Do.FLOOR: ("value",),
}
"""The fields that a verb needs beside its time and queue."""
TAKES: Final[dict[Do, tuple[str, ...]]] = {**NEEDS, Do.PURGE: ("tenant",)}
"""The fields that a verb needs or may have."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One change at one time."""

    at_ms: int
    do: Do
    queue: str
    tenant: str = ""
    """Empty means, for a purge: all tenants."""
    kind: str = ""
    value: float = 0.0
    limits: tuple[Limit, ...] = ()


def command(action: Action, config: QueueConfig) -> Command:
    """The action as a command; `config` are the rules its queue has by now."""
    queue = action.queue
    match action.do:
        case Do.PAUSE | Do.RESUME:
            return SetHold(queue, Hold.PAUSE, action.do is Do.PAUSE)
        case Do.BLOCK | Do.UNBLOCK:
            return SetHold(queue, Hold.BLOCK, action.do is Do.BLOCK)
        case Do.PURGE:
            return Purge(queue, action.tenant or None)
        case Do.WEIGHT | Do.CAP | Do.PAUSE_TENANT | Do.RESUME_TENANT:
            return _tenant_rule(action)
        case Do.PAUSE_KIND | Do.RESUME_KIND | Do.KIND_CAP | Do.KIND_COST:
            return _kind_rule(action)
        case Do.LIMITS:
            return _changed(config, limits=action.limits)
        case Do.QUEUE_WEIGHT:
            return _changed(config, weight=action.value)
        case Do.SLOT_SHARE | Do.FLOOR:
            return _changed(config, **{action.do.value: action.value})


def _tenant_rule(action: Action) -> SetTenant:
    rule = SetTenant(action.queue, action.tenant)
    match action.do:
        case Do.WEIGHT:
            rule.weight = action.value
        case Do.CAP:
            rule.cap = int(action.value)
        case _:
            rule.is_paused = action.do is Do.PAUSE_TENANT
    return rule


def _kind_rule(action: Action) -> SetKind:
    rule = SetKind(action.queue, action.kind)
    match action.do:
        case Do.KIND_CAP:
            rule.cap = int(action.value)
        case Do.KIND_COST:
            rule.cost = int(action.value)
        case _:
            rule.is_paused = action.do is Do.PAUSE_KIND
    return rule


def _changed(config: QueueConfig, **changes: Any) -> Configure:
    return Configure(msgspec.structs.replace(config, **changes))
