"""The `[[queues]]` of a scenario file, as rules of the core."""

from typing import Final

from headway.core import defaults
from headway.core.config import (
    Concurrency,
    FairBy,
    Limit,
    Order,
    QueueConfig,
    Rate,
    Shares,
)
from headway.core.errors import BadValue
from headway.core.retry import Delays, Exponential, Fixed, GiveUp, Retry
from headway.core.windows import Window, WindowSet, zone_of
from headway.sim.scenario_fields import (
    Reader,
    Table,
    by_kind,
    duration,
    each,
    flag,
    name,
    number,
    one_of,
    share,
    span,
    table,
    text,
    whole,
)

weight: Final = number(defaults.WEIGHT_MIN, defaults.WEIGHT_MAX)
priority: Final = whole(-defaults.COUNT_MAX, defaults.COUNT_MAX)
attempts: Final = whole(1, 1_000_000)


def _concurrency(fields: Table) -> Limit:
    return fields.build(
        Concurrency,
        name=fields.need("name", name),
        max=fields.need("max", whole(0)),
        per=fields.get("per", name, None),
    )


def _rate(fields: Table) -> Limit:
    return fields.build(
        Rate,
        name=fields.need("name", name),
        count=fields.need("count", whole(1)),
        period_ms=fields.need("period", span),
        burst=fields.get("burst", whole(1), None),
        per=fields.get("per", name, None),
    )


def _percent(value: object, key: str) -> dict[str, int]:
    return Table(value, key).items(whole(0, 100))


def _shares(fields: Table) -> Limit:
    return fields.build(
        Shares,
        name=fields.need("name", name),
        max=fields.need("max", whole(0)),
        by=fields.need("by", name),
        percent=fields.need("percent", _percent),
        is_lending=fields.get("lending", flag, False),
    )


limits: Final[Reader[tuple[Limit, ...]]] = each(
    by_kind({"concurrency": _concurrency, "rate": _rate, "shares": _shares})
)


def _fixed(fields: Table) -> Retry:
    return fields.build(Fixed, delay_ms=fields.need("delay", duration))


def _exponential(fields: Table) -> Retry:
    return fields.build(
        Exponential,
        first_ms=fields.get("first", duration, defaults.BACKOFF_FIRST_MS),
        max_ms=fields.get("max", duration, defaults.BACKOFF_MAX_MS),
        factor=fields.get("factor", number(1.0, 1_000.0), 2.0),
        jitter=fields.get("jitter", share, 0.5),
    )


def _delays(fields: Table) -> Retry:
    return fields.build(Delays, delays_ms=fields.need("delays", each(duration)))


def _give_up(_fields: Table) -> Retry:
    return GiveUp()


retry: Final[Reader[Retry]] = by_kind(
    {
        "fixed": _fixed,
        "exponential": _exponential,
        "delays": _delays,
        "give_up": _give_up,
    }
)


def windows_of(fields: Table) -> WindowSet | None:
    """The keys `windows` and `zone` of a queue or load."""
    zone = fields.get("zone", _zone, "UTC")

    def window(value: object, key: str) -> Window:
        try:
            return Window.parse(text(value, key), zone)
        except BadValue as error:
            raise BadValue(key, error.value, error.rule) from error

    found = fields.get("windows", each(window), None)
    return None if found is None else fields.build(WindowSet, windows=found)


def _zone(value: object, key: str) -> str:
    found = text(value, key)
    try:
        zone_of(found)
    except BadValue as error:
        raise BadValue(key, error.value, error.rule) from error
    return found


@table
def queue(fields: Table) -> QueueConfig:
    """One queue; a key that is not there leaves the core's default."""
    rules: dict[str, object] = {
        "name": fields.need("name", name),
        "weight": fields.get("weight", weight, None),
        "order": fields.get("order", _order, None),
        "fair_by": fields.get("fair_by", _fair_by, None),
        "slo_ms": fields.get("slo", span, None),
        "slos_ms": fields.get("slos", each(span), None),
        "margin_ms": fields.get("margin", duration, None),
        "priority": fields.get("priority", priority, None),
        "cost": fields.get("cost", whole(0), None),
        "lease_ms": fields.get("lease", span, None),
        "timeout_ms": fields.get("timeout", span, None),
        "lifetime_ms": fields.get("lifetime", span, None),
        "attempts_max": fields.get("attempts", attempts, None),
        "retry": fields.get("retry", retry, None),
        "limits": fields.get("limits", limits, None),
        "windows": windows_of(fields),
        "floor": fields.get("floor", share, None),
        "slot_share": fields.get("slot_share", share, None),
        "max_length": fields.get("max_length", whole(1), None),
    }
    given = {key: rule for key, rule in rules.items() if rule is not None}
    return fields.build(QueueConfig, **given)


def _order(value: object, key: str) -> Order:
    return Order(one_of(tuple(Order))(value, key))


def _fair_by(value: object, key: str) -> FairBy:
    return FairBy(one_of(tuple(FairBy))(value, key))
