"""Queues, jobs and rules drawn from a few numbers, so that any list is a story."""

from headway.core.commands import Verdict
from headway.core.config import (
    Concurrency,
    FailMode,
    FairBy,
    Limit,
    Order,
    QueueConfig,
    Rate,
    Shares,
    WhenFull,
)
from headway.core.cron import Missed, Schedule
from headway.core.retry import Delays, Exponential, Fixed, GiveUp, Retry, WithPayload
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet

QUEUES = ("fair", "time", "priority", "plain")
TENANTS = ("", "a", "b", "c")
KINDS = ("", "x", "y")
REGIONS = ("east", "north", "west")
MINUTES = WindowSet(tuple(Window(n, n + 1) for n in range(0, 32, 2)))
"""Open every other minute of the first half hour of a day."""
MORNING = WindowSet((Window(0, 720),))
ORDERS = {"time": Order.TIME, "priority": Order.PRIORITY}
RETRIES: tuple[Retry, ...] = (
    Fixed(500),
    Exponential(first_ms=100, max_ms=10_000),
    Delays((0, 2_000)),
    GiveUp(),
    WithPayload(b"other", Fixed(100)),
)


class Draw:
    """Digits of a number, taken one after the other."""

    def __init__(self, number: int) -> None:
        self._left = number

    def pick(self, count: int) -> int:
        self._left, digit = divmod(self._left, count)
        return digit

    def chance(self, one_in: int) -> bool:
        """True once in so many; never for a number that is used up."""
        return self.pick(one_in) == one_in - 1


def limit_of(draw: Draw) -> Limit:
    size = (1, 2, 3, 5, 0)[draw.pick(5)]
    match draw.pick(8):
        case 0:
            return Concurrency("all", size)
        case 1:
            return Concurrency("each", size, "tenant")
        case 2:
            return Concurrency("regions", size, "region")
        case 3:
            return Rate("pace", size or 1, 1_000, None if draw.chance(2) else 1)
        case 4:
            percent = {"east": 40, "north": 30}
            return Shares("shares", size, "region", percent, draw.chance(2))
        case 5:
            return Rate("tenant pace", size or 1, 3_000, 1, "tenant")
        case 6:
            return Concurrency("kinds", size, "kind")
        case _:
            return Rate("regions", size or 1, 500, None, "region")


def config_of(name: str, number: int) -> QueueConfig:
    draw = Draw(number)
    limits = {limit.name: limit for limit in map(limit_of, [draw] * draw.pick(4))}
    order = ORDERS.get(name, Order.FAIR)
    if draw.chance(6):
        order = (Order.FAIR, Order.TIME, Order.PRIORITY)[draw.pick(3)]
    return QueueConfig(
        name=name,
        weight=(1.0, 2.0, 0.5)[draw.pick(3)],
        order=order,
        fair_by=FairBy.TIME if draw.chance(4) else FairBy.COST,
        slo_ms=5_000,
        slos_ms=(1_000, 60_000),
        lease_ms=(30_000, 2_000, 600_000)[draw.pick(3)],
        timeout_ms=(3_600_000, 5_000)[draw.pick(2)],
        lifetime_ms=(86_400_000, 20_000)[draw.pick(2)],
        attempts_max=(3, 1, 5)[draw.pick(3)],
        retry=RETRIES[draw.pick(len(RETRIES))],
        windows=(None, None, None, MINUTES, MORNING)[draw.pick(5)],
        limits=tuple(limits.values()),
        floor=(0.0, 0.0, 0.2)[draw.pick(3)],
        slot_share=(1.0, 1.0, 0.5)[draw.pick(3)],
        max_length=(None, None, 20)[draw.pick(3)],
        when_full=(WhenFull.REFUSE, WhenFull.SHED)[draw.pick(2)],
        has_throttler=draw.chance(5),
        idempotency_window_ms=(3_600_000, 1_000)[draw.pick(2)],
        early_reply_ms=(86_400_000, 1_000)[draw.pick(2)],
        early_replies_max=(100, 1)[draw.pick(2)],
        throttler_fails=(FailMode.CLOSED, FailMode.OPEN)[draw.pick(2)],
    )


def verdict_of(draw: Draw, now_ms: int) -> tuple[Verdict, int]:
    """What a throttler says, or that it says nothing."""
    verdict = (Verdict.START, Verdict.START, Verdict.LATER, Verdict.REFUSE)[
        draw.pick(4)
    ]
    if draw.chance(4):
        return Verdict.FAILED, (now_ms + 1_000) * draw.pick(2)
    return verdict, now_ms + 1_000


def spec_of(number: int, now_ms: int) -> JobSpec:
    draw = Draw(number)
    cost = (None, 1, 1, 2, 3, 0)[draw.pick(6)]
    tenant = TENANTS[draw.pick(4)]
    return JobSpec(
        tenant=tenant,
        kind=KINDS[draw.pick(3)],
        labels={"region": REGIONS[draw.pick(3)]} if draw.chance(2) else None,
        cost=cost,
        priority=(None, 1, 200)[draw.pick(3)],
        slo_ms=(None, 1_000, 60_000, 7_000)[draw.pick(4)],
        run_at_ms=now_ms + (10, 2_000, 100_000)[draw.pick(3)]
        if draw.chance(4)
        else None,
        is_critical=draw.chance(8),
        payload=bytes([draw.pick(2)]),
        idempotency_key=f"key {draw.pick(3)}" if draw.chance(6) else None,
        weight=(4.0, 1.0)[draw.pick(2)] if draw.chance(6) else None,
        windows=(MINUTES, MORNING)[draw.pick(2)] if draw.chance(10) else None,
        attempts_max=(1, 3)[draw.pick(2)] if draw.chance(4) else None,
        timeout_ms=3_000 if draw.chance(8) else None,
        lifetime_ms=8_000 if draw.chance(8) else None,
        retry=RETRIES[draw.pick(len(RETRIES))] if draw.chance(4) else None,
    )


def schedule_of(queue: str, number: int) -> Schedule:
    draw = Draw(number)
    missed = (Missed.ONE, Missed.SKIP, Missed.ALL)[draw.pick(3)]
    # All ticks of a day are to be few, and hundreds of them are tried elsewhere.
    often = "0 */3 * * *" if missed is Missed.ALL else "*/20 * * * * *"
    return Schedule(
        queue=queue,
        name=("one", "two")[draw.pick(2)],
        cron=(often, "0 * * * *", "0 0 1 1 *")[draw.pick(3)],
        missed=missed,
        is_paused=draw.chance(4),
        spec=JobSpec(kind="tick"),
    )
