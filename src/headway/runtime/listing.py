"""Lists for operators: queues and their rules, schedules, what runs and what has died.

Every list comes in pages, and an answer says after what the next one begins.
"""

from collections.abc import Iterable
from heapq import nlargest, nsmallest
from itertools import chain, islice
from typing import Final, TypeVar

import msgspec

from headway.core.book import Book
from headway.core.bulk import EVERYTHING, Filter, check_filter
from headway.core.config import QueueConfig
from headway.core.cron import Schedule
from headway.core.errors import BadValue, RuleBroken
from headway.core.gate import BLOCKED, PAUSED
from headway.core.lane import Lane
from headway.core.limits import Gauge, RateGauge
from headway.core.queue import Queue
from headway.runtime import scanning
from headway.runtime.ranking import Ranking, RankingPage, is_holding, rank
from headway.runtime.scanning import Most
from headway.runtime.views import JobView, QueueCounts, counts_of, job_view
from headway.store.port import Store

K = TypeVar("K", str, int, tuple[str, str])
PAGE_MAX: Final = 1_000
SCANNED_MAX: Final = 10_000
"""Dead letters that are looked at for one page, meant or not."""
LIMITS_SHOWN: Final = 100
GAUGES_SEEN: Final = 10_000


class ListQueues(msgspec.Struct, eq=False):
    """Asks for queues in the order of their names. Answered by a QueueList."""

    after: str = ""
    limit: int = 100


class ShowQueue(msgspec.Struct, eq=False):
    """Asks for one queue, with its lanes and limits. Answered by a QueueView."""

    queue: str


class ListTenants(msgspec.Struct, eq=False):
    """Asks for the tenants of which something was said. Answered by a TenantList."""

    queue: str
    after: str | None = None
    limit: int = 100


class ListKinds(msgspec.Struct, eq=False):
    """Asks for the kinds of which something was said. Answered by a KindList."""

    queue: str
    after: str | None = None
    limit: int = 100


class ListSchedules(msgspec.Struct, eq=False):
    """Asks for schedules by queue and name. Answered by a ScheduleList."""

    queue: str | None = None
    after: tuple[str, str] | None = None
    limit: int = 100


class ListDead(msgspec.Struct, eq=False):
    """Asks for dead letters in the order of their death. Answered by a DeadList."""

    queue: str
    filter: Filter = EVERYTHING
    after: str = ""
    limit: int = 100


class ListRunning(msgspec.Struct, eq=False):
    """Asks for jobs that are leased, or wait for a reply. Answered by a JobList.

    `holding` is a limit and a value of it, of which the jobs hold units.
    """

    queue: str | None = None
    after: int = 0
    limit: int = 100
    worker: str | None = None
    is_waiting: bool | None = None
    holding: tuple[str, str] | None = None


class LaneView(msgspec.Struct, frozen=True):
    """The ready jobs of one SLO."""

    slo_ms: int
    is_exempt: bool
    """Of jobs that no limit stops."""
    ready: int
    aim_ms: int
    """So long after it is ready a job is to be started."""
    is_due: bool
    """Its oldest job that may start has reached its aim."""
    next_aim_ms: int | None
    """When that will be, where it is known."""
    start_interval_ms: float
    """Mean time between its newest starts; 0 until there were two."""


class LimitView(msgspec.Struct, frozen=True):
    """One value of a limit or cap. Of a rate it is the burst that is in use."""

    name: str
    value: str
    used: int
    max: int


class QueueView(msgspec.Struct, frozen=True):
    name: str
    config: QueueConfig
    counts: QueueCounts
    is_paused: bool
    is_blocked: bool
    lanes: list[LaneView] = []
    """In a list of queues lanes and limits are left out."""
    limits: list[LimitView] = []
    """The most used ones."""


class TenantView(msgspec.Struct, frozen=True):
    tenant: str
    weight: float
    is_paused: bool
    cap: int | None


class KindView(msgspec.Struct, frozen=True):
    kind: str
    cost: int | None
    is_paused: bool
    cap: int | None


class ScheduleView(msgspec.Struct, frozen=True):
    schedule: Schedule
    last_ms: int
    """The newest tick that was dealt with, or when it was made."""
    next_ms: int | None
    """None while it is paused."""


class QueueList(msgspec.Struct, frozen=True):
    queues: list[QueueView]
    next: str | None
    """After what the next page begins; None if this is the last one."""


class TenantList(msgspec.Struct, frozen=True):
    tenants: list[TenantView]
    next: str | None


class KindList(msgspec.Struct, frozen=True):
    kinds: list[KindView]
    next: str | None


class ScheduleList(msgspec.Struct, frozen=True):
    schedules: list[ScheduleView]
    next: tuple[str, str] | None


class DeadList(msgspec.Struct, frozen=True):
    jobs: list[JobView]
    """May be few, or none, although there are more: then none of many was meant."""
    next: str | None


class JobList(msgspec.Struct, frozen=True):
    jobs: list[JobView]
    next: int | None


Listing = (
    ListQueues
    | ShowQueue
    | ListTenants
    | ListKinds
    | ListSchedules
    | ListDead
    | ListRunning
    | Ranking
)
Page = (
    QueueList
    | QueueView
    | TenantList
    | KindList
    | ScheduleList
    | DeadList
    | JobList
    | RankingPage
)


class Lister:
    """Answers lists by a book, and by its store for what has died."""

    def __init__(self, book: Book, store: Store) -> None:
        self._book = book
        self._store = store

    def look(self, query: Listing, now_ms: int) -> Page | RuleBroken:
        """Looks, and changes nothing."""
        try:
            if not isinstance(query, ShowQueue) and not 1 <= query.limit <= PAGE_MAX:
                raise BadValue("limit", query.limit, f"must be from 1 to {PAGE_MAX}")
            return self._page(query, now_ms)
        except RuleBroken as error:
            return error

    def _page(self, query: Listing, now_ms: int) -> Page:
        match query:
            case ListQueues():
                return self._queues(query)
            case ShowQueue():
                return _whole_queue(self._book.queue(query.queue), now_ms)
            case ListTenants():
                return self._tenants(query)
            case ListKinds():
                return self._kinds(query)
            case ListSchedules():
                return self._schedules(query)
            case ListDead():
                return self._dead(query)
            case ListRunning():
                return self._running(query)
            case _:
                return rank(self._book, query, now_ms)

    def _queues(self, query: ListQueues) -> QueueList:
        names = (name for name in self._book.queues if name > query.after)
        found, after = _first(names, query.limit)
        return QueueList([_queue_view(self._book.queues[x]) for x in found], after)

    def _tenants(self, query: ListTenants) -> TenantList:
        rules = self._book.queue(query.queue).rules.tenants
        said = (
            name
            for name, rule in rules.items()
            if (rule.weight != 1.0 or rule.holds or rule.cap is not None)
            and (query.after is None or name > query.after)
        )
        found, after = _first(said, query.limit)
        tenants = [
            TenantView(name, rule.weight, bool(rule.holds), rule.cap)
            for name, rule in ((name, rules[name]) for name in found)
        ]
        return TenantList(tenants, after)

    def _kinds(self, query: ListKinds) -> KindList:
        rules = self._book.queue(query.queue).rules.kinds
        said = (
            name
            for name, rule in rules.items()
            if (rule.cost is not None or rule.is_paused or rule.cap is not None)
            and (query.after is None or name > query.after)
        )
        found, after = _first(said, query.limit)
        kinds = [
            KindView(name, rule.cost, rule.is_paused, rule.cap)
            for name, rule in ((name, rules[name]) for name in found)
        ]
        return KindList(kinds, after)

    def _schedules(self, query: ListSchedules) -> ScheduleList:
        crons = self._book.crons
        if query.queue is not None:
            self._book.queue(query.queue)
        keys = (
            key
            for key in crons
            if query.queue in (None, key[0])
            and (query.after is None or key > query.after)
        )
        found, after = _first(keys, query.limit)
        schedules = [
            ScheduleView(cron.schedule, cron.last_ms, cron.next_ms)
            for cron in (crons[key] for key in found)
        ]
        return ScheduleList(schedules, after)

    def _dead(self, query: ListDead) -> DeadList:
        self._book.queue(query.queue)
        check_filter(query.filter)
        after = scanning.position(query.after)
        most = Most(query.limit, SCANNED_MAX)
        found = scanning.dead(self._store, query.queue, query.filter, after, most)
        cursor = None if found.is_end else found.cursor
        return DeadList(
            [job_view(job) for job in found.jobs],
            None if cursor is None else f"{cursor.first}-{cursor.seq}",
        )

    def _running(self, query: ListRunning) -> JobList:
        book = self._book
        queues: Iterable[Queue] = book.queues.values()
        if query.queue is not None:
            queues = (book.queue(query.queue),)
        waiting = chain.from_iterable(queue.replies.waiting for queue in queues)
        seqs = (
            job.seq
            for job in chain(
                () if query.is_waiting else book.leases.values(),
                () if query.is_waiting is False else waiting,
            )
            if job.seq > query.after
            and query.queue in (None, job.queue)
            and query.worker in (None, job.worker)
            and (query.holding is None or is_holding(job, *query.holding))
        )
        found, after = _first(seqs, query.limit)
        return JobList([job_view(book.jobs[seq]) for seq in found], after)


def _first(keys: Iterable[K], limit: int) -> tuple[list[K], K | None]:
    """The lowest keys, and the last of them if there are others behind it."""
    found = nsmallest(limit + 1, keys)
    if len(found) <= limit:
        return found, None
    return found[:limit], found[limit - 1]


def _queue_view(queue: Queue) -> QueueView:
    holds = queue.gate.holds
    return QueueView(
        queue.name,
        queue.rules.config,
        counts_of(queue),
        bool(holds & PAUSED),
        bool(holds & BLOCKED),
    )


def _whole_queue(queue: Queue, now_ms: int) -> QueueView:
    return msgspec.structs.replace(
        _queue_view(queue),
        lanes=[_lane_view(lane, now_ms) for lane in queue.all_lanes()],
        limits=_limits(queue, now_ms),
    )


def _lane_view(lane: Lane, now_ms: int) -> LaneView:
    tier = lane.entitled
    return LaneView(
        lane.slo_ms,
        lane.is_exempt,
        lane.ready,
        lane.aim_ms,
        tier.is_due or 0 <= tier.aim <= now_ms,
        tier.aim if tier.aim > now_ms else None,
        lane.start_interval_ms,
    )


def _limits(queue: Queue, now_ms: int) -> list[LimitView]:
    """A queue may know more values than can be shown: the most used ones are."""
    gauges = islice(queue.rules.book.all(), GAUGES_SEEN)
    views = [_limit_view(gauge, now_ms) for gauge in gauges]
    if queue.rules.config.slot_share < 1.0:
        slots, most = queue.slot_gauge, queue.slots_allowed(now_ms)
        views.append(LimitView(slots.limit, slots.value, slots.used, most))
    return nlargest(LIMITS_SHOWN, views, key=lambda view: view.used)


def _limit_view(gauge: Gauge, now_ms: int) -> LimitView:
    if isinstance(gauge, RateGauge):
        used, most = gauge.unpaid(now_ms), gauge.burst
    else:
        used, most = gauge.used, gauge.max
    return LimitView(gauge.limit, gauge.value, used, most)
