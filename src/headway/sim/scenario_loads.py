"""The `[[loads]]` of a scenario file, traces included."""

from pathlib import Path
from typing import Final

from headway.core import defaults
from headway.core.errors import BadValue
from headway.sim.scenario import (
    Arrivals,
    Burst,
    Exact,
    Label,
    Load,
    ManyTenants,
    NamedTenants,
    OneTenant,
    Poisson,
    Replies,
    RotatingTenants,
    Service,
    Sine,
    Spread,
    Steady,
    Tenants,
    Trace,
)
from headway.sim.scenario_fields import (
    Reader,
    Table,
    by_kind,
    duration,
    each,
    flag,
    name,
    number,
    share,
    span,
    table,
    text,
    whole,
)
from headway.sim.scenario_queues import attempts, priority, weight, windows_of
from headway.sim.trace import read_trace

TENANTS_MAX: Final = 10_000_000
_rate: Final = number(0.0, 1_000_000.0)


def load_reader(folder: Path) -> Reader[Load]:
    """Reads one load; its trace is looked for beside the scenario file."""
    arrivals = _arrivals_reader(folder)

    def read(fields: Table) -> Load:
        from_ms = fields.get("from", duration, 0)
        return Load(
            name=fields.need("name", name),
            queue=fields.need("queue", name),
            kind=fields.get("kind", name, ""),
            tenants=fields.get("tenant", _tenants, None),
            slos_ms=_slos(fields),
            priority=fields.get("priority", priority, None),
            cost=fields.get("cost", whole(0), None),
            is_critical=fields.get("critical", flag, False),
            labels=fields.get("labels", _labels, ()),
            weight=fields.get("weight", weight, None),
            windows=windows_of(fields),
            delay_ms=fields.get("delay", duration, 0),
            timeout_ms=fields.get("timeout", span, None),
            lifetime_ms=fields.get("lifetime", span, None),
            attempts_max=fields.get("attempts", attempts, None),
            from_ms=from_ms,
            until_ms=until_after(fields, from_ms),
            arrivals=fields.need("arrivals", arrivals),
            service=fields.need("service", service),
            fail=fields.get("fail", share, 0.0),
            hang=fields.get("hang", share, 0.0),
            replies=fields.get("reply", table(_replies), None),
        )

    return table(read)


def until_after(fields: Table, from_ms: int) -> int | None:
    """The key `until`, which must lie after the beginning."""
    until_ms = fields.get("until", span, None)
    if until_ms is not None and until_ms <= from_ms:
        raise BadValue(fields.key("until"), until_ms, "must be after the beginning")
    return until_ms


def _slos(fields: Table) -> tuple[int, ...]:
    one_ms = fields.get("slo", span, None)
    several = fields.get("slos", each(span), None)
    if one_ms is not None and several is not None:
        raise BadValue(fields.key("slos"), list(several), "either slo or slos")
    return several or ((one_ms,) if one_ms is not None else ())


def _arrivals_reader(folder: Path) -> Reader[Arrivals]:
    def trace(fields: Table) -> Arrivals:
        file, key = fields.need("file", text), fields.key("file")
        scale = fields.get("scale", number(0.0, 1_000_000.0), 1.0)
        step_ms = fields.get("step", span, defaults.MINUTE_MS)
        return Trace(jobs=read_trace(folder, file, scale, key), step_ms=step_ms)

    return by_kind(
        {
            "steady": lambda fields: Steady(
                per_second=fields.need("per_second", _rate)
            ),
            "poisson": lambda fields: Poisson(
                per_second=fields.need("per_second", _rate)
            ),
            "sine": _sine,
            "burst": _burst,
            "trace": trace,
            "list": _exact,
        }
    )


def _sine(fields: Table) -> Arrivals:
    return Sine(
        per_second=fields.need("per_second", _rate),
        amplitude=fields.get("amplitude", share, 0.5),
        period_ms=fields.need("period", span),
    )


def _burst(fields: Table) -> Arrivals:
    return Burst(
        count=fields.need("count", whole(1)),
        at_ms=fields.get("at", duration, 0),
        every_ms=fields.get("every", span, None),
    )


def _exact(fields: Table) -> Arrivals:
    times = fields.need("at", each(duration))
    priorities = fields.get("priority", each(priority), ())
    if priorities and len(priorities) != len(times):
        rule = f"must have one entry for each of the {len(times)} in at"
        raise BadValue(fields.key("priority"), list(priorities), rule)
    # Stable, so that jobs of one instant keep the order of the file.
    order = sorted(range(len(times)), key=lambda place: times[place])
    return Exact(
        at_ms=tuple([times[place] for place in order]),
        priorities=tuple([priorities[place] for place in order]) if priorities else (),
    )


def _fixed_service(fields: Table) -> Service:
    return Service(kind=Spread.FIXED, mean_ms=fields.need("mean", span))


def _uniform_service(fields: Table) -> Service:
    return Service(
        kind=Spread.UNIFORM,
        mean_ms=fields.need("mean", span),
        spread=fields.get("spread", share, 0.5),
    )


def _exponential_service(fields: Table) -> Service:
    return Service(kind=Spread.EXPONENTIAL, mean_ms=fields.need("mean", span))


def _lognormal_service(fields: Table) -> Service:
    return Service(
        kind=Spread.LOGNORMAL,
        mean_ms=fields.need("mean", span),
        sigma=fields.get("sigma", number(0.0, 10.0), 1.0),
    )


service: Final[Reader[Service]] = by_kind(
    {
        "fixed": _fixed_service,
        "uniform": _uniform_service,
        "exponential": _exponential_service,
        "lognormal": _lognormal_service,
    }
)


def _replies(fields: Table) -> Replies:
    return Replies(
        share=fields.get("share", share, 1.0),
        after=fields.need("after", service),
        timeout_ms=fields.need("timeout", span),
        never=fields.get("never", share, 0.0),
        early=fields.get("early", share, 0.0),
    )


def _tenants(value: object, key: str) -> Tenants:
    if isinstance(value, str):
        return OneTenant(name=name(value, key))
    return table(_many_tenants)(value, key)


def _many_tenants(fields: Table) -> Tenants:
    if "names" in fields:
        return NamedTenants(names=_some(fields, "names"))
    if "rotate" in fields:
        return RotatingTenants(
            count=fields.need("rotate", whole(1, TENANTS_MAX)),
            every_ms=fields.get("every", span, None),
            prefix=fields.get("prefix", _prefix, "t"),
        )
    return ManyTenants(
        count=fields.need("count", whole(1, TENANTS_MAX)),
        prefix=fields.get("prefix", _prefix, "t"),
        zipf=fields.get("zipf", number(0.0, 10.0), 0.0),
        weights=fields.get("weights", each(weight), ()),
    )


def _some(fields: Table, key: str) -> tuple[str, ...]:
    found = fields.need(key, each(name))
    if not found:
        raise BadValue(fields.key(key), [], "at least one is needed")
    return found


def _prefix(value: object, key: str) -> str:
    # Leaves room for the number behind it.
    if len(found := text(value, key)) > 64:
        raise BadValue(key, found, "at most 64 characters")
    return found


def _labels(value: object, key: str) -> tuple[Label, ...]:
    found = Table(value, key).items(_label_values)
    if len(found) > defaults.LABELS_MAX:
        raise BadValue(key, len(found), f"at most {defaults.LABELS_MAX}")
    return tuple(
        [
            Label(name=label, values=tuple(odds), weights=tuple(odds.values()))
            for label, odds in found.items()
        ]
    )


def _label_values(value: object, key: str) -> dict[str, float]:
    if isinstance(value, str):
        return {name(value, key): 1.0}
    odds = Table(value, key).items(number(0.0, 1_000_000.0))
    if not sum(odds.values()):
        raise BadValue(key, value, "at least one value with a weight above 0")
    return odds
