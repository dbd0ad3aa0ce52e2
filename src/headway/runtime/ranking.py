"""Lists by what matters most: queues in trouble, tenants at work, workers and their jobs.

All of it is in memory; a page costs one pass over what there is, and no more is kept.
"""

from collections.abc import Callable
from enum import StrEnum
from heapq import nlargest, nsmallest
from typing import Final

import msgspec

from headway.core.book import Book
from headway.core.defaults import COUNT_MAX
from headway.core.errors import BadValue
from headway.core.gate import BLOCKED, PAUSED
from headway.core.job import Job
from headway.core.lane import Lane
from headway.core.queue import Queue
from headway.core.turn import rows_of
from headway.runtime.views import QueueCounts, counts_of

SKIPPED_MAX: Final = 100_000
"""How far into a ranking one may turn the pages."""
TENANTS_SEEN: Final = 20_000
"""Tenants of a queue that are looked at for one answer."""
STRANDS_SEEN: Final = 256
"""The same for strands of a lane, where the first job of a tenant is looked for."""


class Order(StrEnum):
    """By what queues are ranked; a name goes upward, everything else downward."""

    NAME = "name"
    TROUBLE = "trouble"
    READY = "ready"
    SCHEDULED = "scheduled"
    LEASED = "leased"
    WAITING = "waiting"
    DEAD = "dead"


class RankQueues(msgspec.Struct, eq=False):
    """Asks for queues in some order. Answered by a QueueRanking."""

    order: Order = Order.TROUBLE
    contains: str = ""
    """Only those whose name has this in it, in any case."""
    is_held: bool = False
    """Only those that are paused or blocked."""
    patterns: tuple[str, ...] = ("*",)
    """Only those whose name is one of these, or begins with one that ends in *."""
    skip: int = 0
    limit: int = 100


class RankedQueue(msgspec.Struct, frozen=True):
    name: str
    counts: QueueCounts
    is_paused: bool
    is_blocked: bool
    slos_ms: list[int]
    """Of its lanes, shortest first."""
    due: int
    """How many of them have a job that has reached its aim."""


class QueueRanking(msgspec.Struct, frozen=True):
    queues: list[RankedQueue]
    total: int
    """How many there are of those that were asked for."""


class ListBusyTenants(msgspec.Struct, eq=False):
    """Asks for tenants that wait or run in a queue. Answered by a BusyTenantList."""

    queue: str
    limit: int = 100


class BusyTenant(msgspec.Struct, frozen=True):
    """One tenant in a queue, as far as memory knows it."""

    tenant: str
    weight: float
    is_paused: bool
    cap: int | None
    ready: int
    leased: int
    """Worker slots that it holds, in this queue."""
    is_over: bool
    """It holds more than its fair share while promises are in danger."""
    oldest_ms: int | None
    """How long its first job has waited, held time left out; None where it has none
    or too much would have to be looked at."""


class BusyTenantList(msgspec.Struct, frozen=True):
    tenants: list[BusyTenant]
    """Those with the most to do first."""
    total: int


class ListWorkers(msgspec.Struct, eq=False):
    """Asks who has jobs. Answered by a WorkerList, by name."""

    queue: str | None = None
    after: str | None = None
    limit: int = 100


class BusyWorker(msgspec.Struct, frozen=True):
    worker: str
    jobs: int
    oldest: int
    """The job that it has had for longest."""
    oldest_ms: int
    """Since when."""
    lease_until_ms: int
    """When the first of its leases ends, unless it is extended."""


class WorkerList(msgspec.Struct, frozen=True):
    workers: list[BusyWorker]
    next: str | None
    total: int


Ranking = RankQueues | ListBusyTenants | ListWorkers
RankingPage = QueueRanking | BusyTenantList | WorkerList


def is_holding(job: Job, limit: str, value: str) -> bool:
    """Whether the job holds units of this value of a limit."""
    gauges = [hold.gauge for hold in job.holds]
    return any(gauge.limit == limit and gauge.value == value for gauge in gauges)


def rank(book: Book, query: Ranking, now_ms: int) -> RankingPage:
    """Looks, and changes nothing."""
    match query:
        case RankQueues():
            return _queues(book, query, now_ms)
        case ListBusyTenants():
            return _tenants(book.queue(query.queue), query.limit, now_ms)
        case ListWorkers():
            return _workers(book, query)


def _queues(book: Book, query: RankQueues, now_ms: int) -> QueueRanking:
    if not 0 <= query.skip <= SKIPPED_MAX:
        raise BadValue("skip", query.skip, f"must be from 0 to {SKIPPED_MAX}")
    wanted = query.contains.lower()
    names = frozenset(query.patterns)
    starts = tuple(one[:-1] for one in query.patterns if one.endswith("*"))
    found = [
        queue
        for queue in book.queues.values()
        if (not wanted or wanted in queue.name.lower())
        and (not query.is_held or queue.gate.holds)
        and (queue.name.startswith(starts) or queue.name in names)
    ]
    most = query.skip + query.limit
    if query.order is Order.NAME:
        first = nsmallest(most, found, key=lambda queue: queue.name)
    else:
        first = nsmallest(most, found, key=_ranked_by(query.order, now_ms))
    return QueueRanking(
        [_ranked(queue, now_ms) for queue in first[query.skip :]], len(found)
    )


def _ranked_by(order: Order, now_ms: int) -> Callable[[Queue], tuple[int, str]]:
    """Larger counts first; of equal ones by name, so that pages do not overlap."""
    if order is Order.TROUBLE:
        return lambda queue: (-_trouble(queue, now_ms), queue.name)
    return lambda queue: (-int(getattr(queue, order.value)), queue.name)


def _trouble(queue: Queue, now_ms: int) -> int:
    """Whoever is due comes first, then held backlogs, then by what waits."""
    ready = queue.ready
    if not ready:
        return 0
    # Spelled out: every queue is looked at for a page of fifty.
    for lanes in (queue.lanes, queue.exempt):
        for lane in lanes.values():
            tier = lane.entitled
            if lane.ready and (tier.is_due or 0 <= tier.aim <= now_ms):
                return ready + 2 * COUNT_MAX
    return ready + COUNT_MAX if queue.gate.holds else ready


def _is_due(lane: Lane, now_ms: int) -> bool:
    tier = lane.entitled
    return bool(lane.ready) and (tier.is_due or 0 <= tier.aim <= now_ms)


def _ranked(queue: Queue, now_ms: int) -> RankedQueue:
    holds = queue.gate.holds
    return RankedQueue(
        queue.name,
        counts_of(queue),
        bool(holds & PAUSED),
        bool(holds & BLOCKED),
        sorted({lane.slo_ms for lane in queue.all_lanes()}),
        sum(_is_due(lane, now_ms) for lane in queue.all_lanes()),
    )


class _Use:
    """What one tenant has in all lanes of a queue."""

    __slots__ = ("is_over", "leased", "ready")

    def __init__(self) -> None:
        self.ready = 0
        self.leased = 0
        self.is_over = False


def _tenants(queue: Queue, limit: int, now_ms: int) -> BusyTenantList:
    used: dict[str, _Use] = {}
    left = TENANTS_SEEN
    for lane in queue.all_lanes():
        for name, tenancy in lane.tenancies.items():
            left -= 1
            if left < 0:
                break
            if tenancy.ready or tenancy.leased:
                use = used.setdefault(name, _Use())
                use.ready += tenancy.ready
                use.leased += tenancy.leased
                use.is_over |= bool(tenancy.account.over)
    busiest = nlargest(
        limit, used.items(), key=lambda one: (one[1].leased, one[1].ready, one[0])
    )
    rules = queue.rules.tenants
    told = []
    for name, use in busiest:
        rule = rules.get(name)
        told.append(
            BusyTenant(
                name,
                1.0 if rule is None else rule.weight,
                rule is not None and bool(rule.holds),
                None if rule is None else rule.cap,
                use.ready,
                use.leased,
                use.is_over,
                _oldest_ms(queue, name, now_ms) if use.ready else None,
            )
        )
    return BusyTenantList(told, len(used))


def _oldest_ms(queue: Queue, tenant: str, now_ms: int) -> int | None:
    """By the first job of each of its turns that memory has."""
    queue_ms = queue.gate.time(now_ms)
    oldest_ms: int | None = None
    for lane in queue.all_lanes():
        if len(lane.strands) > STRANDS_SEEN:
            return None
        for strand in lane.strands.values():
            turn = strand.turns.get(tenant)
            rows = [] if turn is None else rows_of(turn, 1)
            if turn is None or not rows or rows[0][3].turn is not turn:
                continue
            job = rows[0][3]
            rule = turn.tenancy.rule
            turn_ms = strand.time(queue_ms) - queue_ms + rule.time(queue_ms)
            wait_ms = turn_ms + job.shift_ms - job.run_at_ms
            oldest_ms = wait_ms if oldest_ms is None else max(oldest_ms, wait_ms)
    return oldest_ms


def _workers(book: Book, query: ListWorkers) -> WorkerList:
    if query.queue is not None:
        book.queue(query.queue)
    found: dict[str, BusyWorker] = {}
    for job in book.leases.values():
        if query.queue not in (None, job.queue):
            continue
        one = found.get(job.worker)
        if one is None:
            one = BusyWorker(job.worker, 1, job.seq, job.started_ms, job.lease_until_ms)
        else:
            is_older = job.started_ms < one.oldest_ms
            one = BusyWorker(
                job.worker,
                one.jobs + 1,
                job.seq if is_older else one.oldest,
                min(job.started_ms, one.oldest_ms),
                min(job.lease_until_ms, one.lease_until_ms),
            )
        found[job.worker] = one
    after = query.after
    names = [name for name in found if after is None or name > after]
    first = nsmallest(query.limit, names)
    following = first[-1] if len(names) > len(first) else None
    return WorkerList([found[name] for name in first], following, len(found))
