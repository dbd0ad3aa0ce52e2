"""What is shown of a queue that has several partitions: one queue."""

from collections import Counter
from typing import Any

import msgspec

from headway.server.cluster.errand import Errand
from headway.server.cluster.pages import merged
from headway.wire import live, queues

Parts = list[tuple[str, Any]]
LIMIT = 100


def summed(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return dict(Counter(one) + Counter(other))


def folded_counts(one: queues.Counts, other: queues.Counts) -> queues.Counts:
    return queues.Counts(
        one.ready + other.ready,
        one.scheduled + other.scheduled,
        one.leased + other.leased,
        one.waiting + other.waiting,
        one.dead + other.dead,
    )


def folded_brief(one: queues.QueueBrief, other: queues.QueueBrief) -> queues.QueueBrief:
    """Held only where all of it is."""
    return queues.QueueBrief(
        one.name,
        folded_counts(one.counts, other.counts),
        one.is_paused and other.is_paused,
        one.is_blocked and other.is_blocked,
    )


def folded_ranked(one: live.RankedQueue, other: live.RankedQueue) -> live.RankedQueue:
    waits = [row.oldest_ms for row in (one, other) if row.oldest_ms is not None]
    return live.RankedQueue(
        name=one.name,
        counts=folded_counts(one.counts, other.counts),
        is_paused=one.is_paused and other.is_paused,
        is_blocked=one.is_blocked and other.is_blocked,
        slos_ms=sorted({*one.slos_ms, *other.slos_ms}),
        due=max(one.due, other.due),
        oldest_ms=max(waits, default=None),
    )


def holds(_: Errand, parts: Parts) -> queues.Holds:
    return queues.Holds(
        all(part.is_paused for _, part in parts),
        all(part.is_blocked for _, part in parts),
    )


def queue_shown(_: Errand, parts: Parts) -> queues.QueueShown:
    """Its rules are those of all parts together: what was divided is summed."""
    shown: list[queues.QueueShown] = [part for _, part in parts]
    counts = shown[0].counts
    for part in shown[1:]:
        counts = folded_counts(counts, part.counts)
    return queues.QueueShown(
        shown[0].name,
        counts,
        all(part.is_paused for part in shown),
        all(part.is_blocked for part in shown),
        whole([part.rules for part in shown]),
        _lanes(shown),
        _limits(shown),
        any(part.has_throttler for part in shown),
    )


def whole(parts: list[queues.QueueRules]) -> queues.QueueRules:
    """The rules that were divided."""
    limits = [
        _summed(
            limit, [part.limits[place] for part in parts if place < len(part.limits)]
        )
        for place, limit in enumerate(parts[0].limits)
    ]
    length = parts[0].max_length
    if length is not None:
        length = sum(part.max_length or 0 for part in parts)
    return msgspec.structs.replace(parts[0], limits=limits, max_length=length)


def _summed(limit: queues.Limit, parts: list[queues.Limit]) -> queues.Limit:
    replace = msgspec.structs.replace
    if isinstance(limit, queues.RateLimit):
        rates = [part for part in parts if isinstance(part, queues.RateLimit)]
        burst = limit.burst
        if burst is not None:
            burst = sum(part.burst or 0 for part in rates)
        return replace(limit, count=sum(part.count for part in rates), burst=burst)
    most = sum(part.max for part in parts if not isinstance(part, queues.RateLimit))
    return replace(limit, max=most)


def _lanes(shown: list[queues.QueueShown]) -> list[queues.LaneShown]:
    lanes: dict[tuple[int, bool], queues.LaneShown] = {}
    for part in shown:
        for lane in part.lanes:
            known = lanes.setdefault((lane.slo_ms, lane.critical), lane)
            if known is lane:
                continue
            known.ready += lane.ready
            known.is_due = known.is_due or lane.is_due
            aims_ms = [one.next_aim_ms for one in (known, lane) if one.next_aim_ms]
            known.next_aim_ms = min(aims_ms, default=None)
            known.start_interval_ms = _together(
                known.start_interval_ms, lane.start_interval_ms
            )
    return list(lanes.values())


def _together(one_ms: float, other_ms: float) -> float:
    """The mean time between starts of two that start side by side."""
    if not one_ms or not other_ms:
        return one_ms or other_ms
    return one_ms * other_ms / (one_ms + other_ms)


def _limits(shown: list[queues.QueueShown]) -> list[queues.LimitShown]:
    limits: dict[tuple[str, str], queues.LimitShown] = {}
    for part in shown:
        for limit in part.limits:
            known = limits.setdefault((limit.name, limit.value), limit)
            if known is not limit:
                known.used += limit.used
                known.max += limit.max
    return sorted(limits.values(), key=lambda limit: -limit.used)[:LIMIT]


def tenant_page(errand: Errand, parts: Parts) -> queues.TenantPage:
    def fold(one: queues.TenantShown, other: queues.TenantShown) -> queues.TenantShown:
        cap = _cap(one.cap, other.cap)
        return queues.TenantShown(one.tenant, one.weight, one.is_paused, cap)

    pages = [(part.tenants, part.next) for _, part in parts]
    return queues.TenantPage(
        *merged(pages, lambda one: one.tenant, _limit(errand), fold)
    )


def kind_page(errand: Errand, parts: Parts) -> queues.KindPage:
    def fold(one: queues.KindShown, other: queues.KindShown) -> queues.KindShown:
        cap = _cap(one.cap, other.cap)
        return queues.KindShown(one.kind, one.cost, one.is_paused, cap)

    pages = [(part.kinds, part.next) for _, part in parts]
    return queues.KindPage(*merged(pages, lambda one: one.kind, _limit(errand), fold))


def busy_tenants(errand: Errand, parts: Parts) -> live.BusyTenants:
    rows: dict[str, live.BusyTenant] = {}
    for _, part in parts:
        for row in part.tenants:
            known = rows.setdefault(row.tenant, row)
            if known is not row:
                known.ready += row.ready
                known.leased += row.leased
                known.is_over = known.is_over or row.is_over
                known.cap = _cap(known.cap, row.cap)
                waits = [one.oldest_ms for one in (known, row) if one.oldest_ms]
                known.oldest_ms = max(waits, default=None)
    total = max([len(rows), *(part.total for _, part in parts)])
    order = sorted(rows.values(), key=lambda row: (-row.leased, -row.ready, row.tenant))
    return live.BusyTenants(order[: _limit(errand, 50)], total)


def _cap(one: int | None, other: int | None) -> int | None:
    return one if other is None else other if one is None else one + other


def _limit(errand: Errand, default: int = LIMIT) -> int:
    given = dict(errand.request.query()).get("limit")
    return int(given) if given is not None else default
