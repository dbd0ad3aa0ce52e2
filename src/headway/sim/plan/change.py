"""A named alternative: what would be different, and how it is put into the rules."""

from collections.abc import Callable, Iterable

import msgspec

from headway.core.commands import Command, Configure, SetTenant
from headway.core.config import Limit, QueueConfig, Rate
from headway.core.errors import BadValue
from headway.sim.workload import Arrival


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """None leaves what is as it is."""

    name: str = "as it is"
    key: str = ""
    """Where in the grid it stands."""
    queue: str | None = None
    """Which queue it is about; None means every one."""
    lane_ms: int | None = None
    """Which lanes get another SLO; None means all of the queue."""
    slo_ms: int | None = None
    margin_ms: int | None = None
    weight: float | None = None
    floor: float | None = None
    slot_share: float | None = None
    weights: dict[str, float] = {}
    """By tenant."""
    limits: dict[str, int] = {}
    """By name: units at once, or starts in a period."""
    workers: int | None = None

    def is_about(self, queue: str) -> bool:
        return self.queue is None or self.queue == queue

    def slo_of(self, slo_ms: int) -> int:
        """The SLO of a lane from now on."""
        if self.slo_ms is None or self.lane_ms not in (None, slo_ms):
            return slo_ms
        return self.slo_ms


AS_IT_IS = Change()


def changed(config: QueueConfig, change: Change) -> QueueConfig:
    """The rules of a queue under the change. BadValue names a key of the grid."""
    if not change.is_about(config.name):
        return config
    slo_ms = change.slo_of(config.slo_ms)
    margin_ms = config.margin_ms
    if margin_ms is not None:
        margin_ms = min(margin_ms, slo_ms)
    if change.margin_ms is not None:
        margin_ms = change.margin_ms
        if margin_ms > slo_ms:
            rule = f"must be at most the SLO of queue {config.name!r}, {slo_ms} ms"
            raise BadValue(f"{change.key}.margin", margin_ms, rule)
    given = {
        "weight": change.weight,
        "floor": change.floor,
        "slot_share": change.slot_share,
    }
    return msgspec.structs.replace(
        config,
        slo_ms=slo_ms,
        slos_ms=tuple(dict.fromkeys(map(change.slo_of, config.slos_ms))),
        margin_ms=margin_ms,
        limits=tuple(_limit(limit, change) for limit in config.limits),
        **{name: value for name, value in given.items() if value is not None},
    )


def check(change: Change, configs: Iterable[QueueConfig]) -> None:
    """Refuses a change that says something of what is not there."""
    known = {config.name: config for config in configs}
    if change.queue is not None and change.queue not in known:
        rule = f"no queue of this name; known: {', '.join(sorted(known))}"
        raise BadValue(f"{change.key}.queue", change.queue, rule)
    about = [config for name, config in known.items() if change.is_about(name)]
    limits = sorted({limit.name for config in about for limit in config.limits})
    for name, value in change.limits.items():
        if name not in limits:
            rule = f"no limit of this name; known: {', '.join(limits) or 'none'}"
            raise BadValue(f"{change.key}.limits.{name}", value, rule)
    for config in about:
        changed(config, change)


def altered(command: Command, change: Change) -> Command:
    """A recorded ruling under the change."""
    if isinstance(command, Configure):
        return Configure(changed(command.config, change))
    if isinstance(command, SetTenant) and change.is_about(command.queue):
        weight = change.weights.get(command.tenant, command.weight)
        return msgspec.structs.replace(command, weight=weight)
    return command


def first_rulings(change: Change, queues: Iterable[str]) -> list[Command]:
    """What is to be said of tenants before anything comes."""
    return [
        SetTenant(queue, tenant, weight=weight)
        for queue in queues
        if change.is_about(queue)
        for tenant, weight in change.weights.items()
    ]


def alteration(change: Change) -> Callable[[Arrival], Arrival]:
    """Changes what jobs say of their own SLO and of their tenant's weight."""

    def alter(arrival: Arrival) -> Arrival:
        spec, queue = arrival.spec, arrival.queue
        if not change.is_about(queue):
            return arrival
        slo_ms = None if spec.slo_ms is None else change.slo_of(spec.slo_ms)
        weight = spec.weight
        if weight is not None:
            weight = change.weights.get(spec.tenant, weight)
        if slo_ms != spec.slo_ms or weight != spec.weight:
            arrival.spec = msgspec.structs.replace(spec, slo_ms=slo_ms, weight=weight)
        return arrival

    return alter


def _limit(limit: Limit, change: Change) -> Limit:
    value = change.limits.get(limit.name)
    if value is None:
        return limit
    if not isinstance(limit, Rate):
        return msgspec.structs.replace(limit, max=value)
    if value < 1:
        raise BadValue(
            f"{change.key}.limits.{limit.name}", value, "a rate must be at least 1"
        )
    return msgspec.structs.replace(limit, count=value)
