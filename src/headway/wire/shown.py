"""Values of the core as bodies: what can be sent, or set again."""

from base64 import b64encode

from msgspec import Raw

from headway.core import config as core
from headway.core import retry as core_retry
from headway.core.cron import Schedule
from headway.core.durations import format_ms
from headway.core.spec import JobSpec
from headway.core.windows import WindowSet
from headway.wire import jobs, operations, queues


def new_job(spec: JobSpec) -> jobs.NewJob:
    """A job to be sent."""
    job = jobs.NewJob(
        kind=spec.kind,
        tenant=spec.tenant,
        slo=spec.slo_ms,
        run_at=spec.run_at_ms,
        delay=spec.delay_ms,
        priority=spec.priority,
        weight=spec.weight,
        cost=spec.cost,
        critical=spec.is_critical,
        labels=spec.labels,
        windows=windows_shown(spec.windows),
        timeout=spec.timeout_ms,
        lifetime=spec.lifetime_ms,
        attempts=spec.attempts_max,
        retry=None if spec.retry is None else retry_shown(spec.retry),
        idempotency_key=spec.idempotency_key,
        headers=spec.headers,
        result=spec.result_ms,
    )
    if spec.is_json:
        job.payload = Raw(spec.payload)
    else:
        job.payload_base64 = b64encode(spec.payload).decode()
    return job


def schedule_body(schedule: Schedule) -> operations.ScheduleBody:
    return operations.ScheduleBody(
        cron=schedule.cron,
        zone=schedule.zone,
        missed=schedule.missed.value,
        paused=schedule.is_paused,
        job=new_job(schedule.spec),
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
        retry=retry_shown(config.retry),
        windows=windows_shown(config.windows),
        limits=[_limit_shown(limit) for limit in config.limits],
        margin=None if config.margin_ms is None else format_ms(config.margin_ms),
        floor=config.floor,
        slot_share=config.slot_share,
        max_length=config.max_length,
        when_full=config.when_full.value,
        throttler_fails=config.throttler_fails.value,
        idempotency_window=format_ms(config.idempotency_window_ms),
        early_reply=format_ms(config.early_reply_ms),
        early_replies=config.early_replies_max,
    )


def retry_shown(retry: core_retry.Retry) -> jobs.Retry:
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
            return retry_shown(retry.then)


def windows_shown(windows: WindowSet | None) -> list[jobs.Window] | None:
    if windows is None:
        return None
    return [
        jobs.Window(f"{_clock(one.start_minute)}-{_clock(one.end_minute)}", one.zone)
        for one in windows.windows
    ]


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


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
