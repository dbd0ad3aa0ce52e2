"""The rules of a queue, between the wire and the core."""

from typing import Any

import msgspec

from headway.core import config as core
from headway.core import retry as core_retry
from headway.core.durations import format_ms, parse_ms
from headway.core.windows import WindowSet
from headway.server.shapes import ms_of, retry_of, windows_of
from headway.wire import jobs, queues


def config_of(name: str, rules: queues.QueueRules) -> core.QueueConfig:
    """What the core is told."""
    return core.QueueConfig(
        name=name,
        weight=rules.weight,
        order=core.Order(rules.order),
        fair_by=core.FairBy(rules.fair_by),
        slo_ms=parse_ms(rules.slo, "slo"),
        slos_ms=tuple(parse_ms(slo, "slos") for slo in rules.slos),
        priority=rules.priority,
        cost=rules.cost,
        lease_ms=parse_ms(rules.lease, "lease"),
        timeout_ms=parse_ms(rules.timeout, "timeout"),
        lifetime_ms=parse_ms(rules.lifetime, "lifetime"),
        attempts_max=rules.attempts,
        retry=retry_of(rules.retry),
        windows=None if rules.windows is None else windows_of(rules.windows),
        limits=tuple(_limit_of(limit) for limit in rules.limits),
        margin_ms=ms_of(rules.margin, "margin"),
        floor=rules.floor,
        slot_share=rules.slot_share,
        max_length=rules.max_length,
        idempotency_window_ms=parse_ms(rules.idempotency_window, "idempotency_window"),
        early_reply_ms=parse_ms(rules.early_reply, "early_reply"),
        early_replies_max=rules.early_replies,
    )


def rules_of(config: core.QueueConfig) -> queues.QueueRules:
    """The rules as they could be set again."""
    return queues.QueueRules(
        weight=config.weight,
        order=config.order.value,  # type: ignore[arg-type]  # levels is for comparisons
        fair_by=config.fair_by.value,
        slo=format_ms(config.slo_ms),
        slos=[format_ms(slo_ms) for slo_ms in config.slos_ms],
        priority=config.priority,
        cost=config.cost,
        lease=format_ms(config.lease_ms),
        timeout=format_ms(config.timeout_ms),
        lifetime=format_ms(config.lifetime_ms),
        attempts=config.attempts_max,
        retry=_retry_shown(config.retry),
        windows=_windows_shown(config.windows),
        limits=[_limit_shown(limit) for limit in config.limits],
        margin=None if config.margin_ms is None else format_ms(config.margin_ms),
        floor=config.floor,
        slot_share=config.slot_share,
        max_length=config.max_length,
        idempotency_window=format_ms(config.idempotency_window_ms),
        early_reply=format_ms(config.early_reply_ms),
        early_replies=config.early_replies_max,
    )


def merged(rules: queues.QueueRules, changes: dict[str, Any]) -> queues.QueueRules:
    """The rules with some of them changed; null takes a rule back to its default."""
    values = msgspec.to_builtins(rules)
    for key, value in changes.items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return msgspec.convert(values, queues.QueueRules)


def _limit_of(limit: queues.Limit) -> core.Limit:
    match limit:
        case queues.ConcurrencyLimit():
            return core.Concurrency(limit.name, limit.max, limit.per)
        case queues.RateLimit():
            period_ms = parse_ms(limit.period, f"limits.{limit.name}.period")
            return core.Rate(limit.name, limit.count, period_ms, limit.burst, limit.per)
        case queues.ShareLimit():
            return core.Shares(
                limit.name, limit.max, limit.by, limit.percent, limit.lending
            )


def _limit_shown(limit: core.Limit) -> queues.Limit:
    match limit:
        case core.Concurrency():
            return queues.ConcurrencyLimit(limit.name, limit.max, limit.per)
        case core.Rate():
            period = format_ms(limit.period_ms)
            return queues.RateLimit(
                limit.name, limit.count, period, limit.burst, limit.per
            )
        case core.Shares():
            return queues.ShareLimit(
                limit.name, limit.max, limit.by, limit.percent, limit.is_lending
            )


def _retry_shown(retry: core_retry.Retry) -> jobs.Retry:
    match retry:
        case core_retry.Fixed():
            return jobs.FixedRetry(format_ms(retry.delay_ms))
        case core_retry.Exponential():
            first, most = format_ms(retry.first_ms), format_ms(retry.max_ms)
            return jobs.ExponentialRetry(first, most, retry.factor, retry.jitter)
        case core_retry.Delays():
            return jobs.DelaysRetry([format_ms(delay) for delay in retry.delays_ms])
        case core_retry.GiveUp():
            return jobs.NoRetry()
        case core_retry.WithPayload():
            return _retry_shown(retry.then)


def _windows_shown(windows: WindowSet | None) -> list[jobs.Window] | None:
    if windows is None:
        return None
    return [
        jobs.Window(f"{_clock(one.start_minute)}-{_clock(one.end_minute)}", one.zone)
        for one in windows.windows
    ]


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
