"""The rules of a queue, between the wire and the core."""

from typing import Any

import msgspec

from headway.core import config as core
from headway.core.durations import parse_ms
from headway.server.shapes import ms_of, retry_of, windows_of
from headway.wire import queues


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
        when_full=core.WhenFull(rules.when_full),
        throttler_fails=core.FailMode(rules.throttler_fails),
        idempotency_window_ms=parse_ms(rules.idempotency_window, "idempotency_window"),
        early_reply_ms=parse_ms(rules.early_reply, "early_reply"),
        early_replies_max=rules.early_replies,
    )


def merged(rules: queues.QueueRules, changes: dict[str, Any]) -> queues.QueueRules:
    """The rules with some of them changed; null takes a rule back to its default."""
    values = msgspec.to_builtins(rules)
    for key, value in changes.items():
        if value is None and key in values:
            del values[key]
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
