"""What an operator wants to know in numbers, as one value that no owner changes."""

from typing import Final, Protocol, runtime_checkable

import msgspec

from headway.core.book import Book
from headway.core.bounds import Bounds
from headway.core.limits import Gauge, RateGauge
from headway.core.partition import Partition
from headway.core.queue import Queue
from headway.runtime.meter import (
    COUNTERS,
    LANES_MAX,
    OTHER,
    ROW,
    RUN,
    RUN_SUM,
    WAIT,
    WAIT_SUM,
    Meter,
    Rates,
    Row,
)
from headway.runtime.waiting import LaneWait, Waits

DURATIONS_MS: Final = tuple(2**n for n in range(23))
"""Up to how long the buckets of waits, runs and late ticks go; one more is above."""
COMMITS_US: Final = tuple(2**n for n in range(6, 25))
"""The same for commits, in microseconds."""
BATCHES: Final = tuple(2**n for n in range(15))
"""The same for the commands that one decision took."""
QUEUES_MAX: Final = 1_000
"""Queues with a row of their own; the others share one."""
_NO_ROW: Final = [0] * ROW
_NO_RATES: Final = Rates()


class Histogram(msgspec.Struct, frozen=True):
    """How many values are within which bound; bounds are constants of this module."""

    counts: tuple[int, ...]
    """One for each bound, not cumulated, and one for what is above the last."""
    total: float
    """The sum of all values."""


_UNTOLD: Final = Histogram((), 0.0)


class LaneMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """One lane. Counters begin with 0 when an owner does."""

    queue: str
    slo_ms: int
    enqueued: int
    started: int
    in_time: int
    """Of the starts, those that waited no longer than the SLO."""
    acked: int
    retried: int
    lost: int
    buried: int
    expired: int
    cancelled: int
    released: int
    wait: Histogram
    run: Histogram
    per_s: float
    """Jobs that became ready in a second, lately."""
    run_ms: float
    """The mean run time, lately."""
    run_sq_ms: float
    """The mean of its square."""
    waiting: LaneWait

    @property
    def late(self) -> int:
        """Starts that came after their time."""
        return self.started - self.in_time

    @property
    def attained(self) -> float:
        """The share of starts that were in time; 1 before the first."""
        return self.in_time / self.started if self.started else 1.0


class QueueMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """One queue as it stands."""

    name: str
    ready: int = 0
    scheduled: int = 0
    leased: int = 0
    waiting: int = 0
    dead: int = 0
    length_max: int | None = None
    """None where nothing bounds its length."""
    enqueued_bytes: int = 0
    """Payload bytes enqueued since the owner began."""
    replies_kept: int = 0
    """Replies that came before their job asked."""


class LimitMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """One limit of a queue, over all its values."""

    queue: str
    limit: str
    used: int
    max: int | None
    """None for one that holds for each value of something."""


class ThrottlerMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """The throttler of one queue, since the owner began."""

    queue: str
    verdicts: dict[str, int]
    errors: dict[str, int]
    """How often there was no verdict, by reason."""


class CommitMeasures(msgspec.Struct, frozen=True, kw_only=True):
    """What durability has cost."""

    commits: int
    rows: int
    time_us: Histogram
    batch: Histogram
    """Commands that were decided together."""


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to Measure."""

    at_ms: int
    lanes: tuple[LaneMeasures, ...]
    queues: tuple[QueueMeasures, ...]
    limits: tuple[LimitMeasures, ...]
    commits: CommitMeasures
    tick_late: Histogram
    """By how much ticks of schedules came after their time."""
    ticks_skipped: int
    replies: dict[str, int]
    """Replies that nobody waited for: early, repeated or late."""
    jobs_in_memory: int
    jobs_in_memory_max: int
    turns_in_memory: int
    slots_busy: int
    slots_idle: int
    """Slots whose callers wait for a job."""
    store_bytes: int
    log_bytes: int
    """Size of the store and of its log; 0 where they have none."""
    throttlers: tuple[ThrottlerMeasures, ...] = ()


@runtime_checkable
class Sized(Protocol):
    """A store that knows how large it is."""

    def sizes(self) -> tuple[int, int]:
        """Bytes of itself and of its log."""


def snapshot(
    partition: Partition,
    meter: Meter,
    waits: Waits,
    bounds: Bounds,
    store: object,
    *,
    is_brief: bool = False,
) -> Measures:
    """Everything as it stands after the last commit.

    A brief one leaves out limits, and how waits and runs are spread.
    """
    book = partition.book
    shared = book.shared
    stored = store.sizes() if isinstance(store, Sized) else (0, 0)
    return Measures(
        at_ms=partition.now_ms,
        lanes=_lanes(book, meter, waits, is_brief=is_brief),
        queues=_queues(book, meter),
        limits=() if is_brief else _limits(book),
        commits=CommitMeasures(
            commits=meter.commits,
            rows=meter.commit_rows,
            time_us=_histogram(meter.commit_us, COMMITS_US, meter.commit_s * 1e6),
            batch=_histogram(meter.batches, BATCHES, meter.commands),
        ),
        tick_late=_histogram(meter.tick_late, DURATIONS_MS, meter.tick_late_ms),
        ticks_skipped=meter.ticks_skipped,
        replies=dict(meter.replies),
        jobs_in_memory=len(book.jobs),
        jobs_in_memory_max=bounds.jobs_max,
        turns_in_memory=shared.turns,
        slots_busy=shared.ledger.leased,
        slots_idle=shared.ledger.idle,
        store_bytes=stored[0],
        log_bytes=stored[1],
        throttlers=_throttlers(meter),
    )


def _lanes(
    book: Book, meter: Meter, waits: Waits, *, is_brief: bool
) -> tuple[LaneMeasures, ...]:
    """Every lane that is there or was; beyond a number of them, as one."""
    keys = dict.fromkeys(meter.rows)
    keys.pop(OTHER, None)
    for queue in book.queues.values():
        for slo_ms in (*queue.lanes, *queue.exempt):
            keys[queue.name, slo_ms] = None
    named = list(keys)
    own, others = named[: LANES_MAX - 1], named[LANES_MAX - 1 :]
    told = [_lane(meter, key, waits.of(*key), is_brief) for key in own]
    if others or OTHER in meter.rows:
        told.append(_lane(meter, OTHER, waits.together(others), is_brief))
    return tuple(told)


def _queues(book: Book, meter: Meter) -> tuple[QueueMeasures, ...]:
    """Every queue; beyond a number of them, as one."""
    told = [_queue(queue, meter) for queue in book.queues.values()]
    own, others = told[: QUEUES_MAX - 1], told[QUEUES_MAX - 1 :]
    if others:
        name = OTHER[0]
        while name in book.queues:
            name = f"({name})"
        own.append(
            QueueMeasures(
                name=name,
                ready=sum(queue.ready for queue in others),
                scheduled=sum(queue.scheduled for queue in others),
                leased=sum(queue.leased for queue in others),
                waiting=sum(queue.waiting for queue in others),
                dead=sum(queue.dead for queue in others),
                enqueued_bytes=sum(queue.enqueued_bytes for queue in others),
                replies_kept=sum(queue.replies_kept for queue in others),
            )
        )
    return tuple(own)


def _limits(book: Book) -> tuple[LimitMeasures, ...]:
    """What is in use of limits on what runs at once; rates hold nothing."""
    told: list[LimitMeasures] = []
    for queue in list(book.queues.values())[: QUEUES_MAX - 1]:
        used: dict[str, int] = {}
        for gauge in queue.rules.book.all():
            if not isinstance(gauge, RateGauge):
                used[gauge.limit] = used.get(gauge.limit, 0) + gauge.used
        told += [
            LimitMeasures(
                queue=queue.name, limit=name, used=units, max=_max_of(queue, name)
            )
            for name, units in used.items()
        ]
    return tuple(told)


def _throttlers(meter: Meter) -> tuple[ThrottlerMeasures, ...]:
    """Those that were asked; how many there may be is bounded."""
    names = dict.fromkeys(name for name, _ in (*meter.verdicts, *meter.unheard))
    return tuple(
        ThrottlerMeasures(
            queue=name,
            verdicts={x: n for (of, x), n in meter.verdicts.items() if of == name},
            errors={x: n for (of, x), n in meter.unheard.items() if of == name},
        )
        for name in names
    )


def _lane(
    meter: Meter, key: tuple[str, int], waiting: LaneWait, is_brief: bool
) -> LaneMeasures:
    row = meter.rows.get(key, _NO_ROW)
    mean, square = meter.rates.get(key, _NO_RATES).moments()
    # The first ten are told by name, the others as what they add up to.
    counts = dict(zip(COUNTERS[:10], row[:10], strict=True))
    return LaneMeasures(
        queue=key[0],
        slo_ms=key[1],
        **counts,
        wait=_UNTOLD if is_brief else _durations(row, WAIT, row[WAIT_SUM]),
        run=_UNTOLD if is_brief else _durations(row, RUN, row[RUN_SUM]),
        per_s=meter.per_s(key),
        run_ms=mean,
        run_sq_ms=square,
        waiting=waiting,
    )


def _durations(row: Row, begin: int, total: int) -> Histogram:
    return _histogram(row[begin : begin + 64], DURATIONS_MS, total)


def _histogram(buckets: Row, bounds: tuple[int, ...], total: float) -> Histogram:
    """Powers of two below the first bound count within it, those above the last as one."""
    first = bounds[0].bit_length() - 1
    last = bounds[-1].bit_length()
    counts = buckets[first:last]
    counts[0] += sum(buckets[:first])
    return Histogram((*counts, sum(buckets[last:])), total)


def _queue(queue: Queue, meter: Meter) -> QueueMeasures:
    return QueueMeasures(
        name=queue.name,
        ready=queue.ready,
        scheduled=queue.scheduled,
        leased=queue.leased,
        waiting=queue.waiting,
        dead=queue.dead,
        length_max=queue.rules.config.max_length,
        enqueued_bytes=meter.sizes.get(queue.name, 0),
        replies_kept=queue.replies.kept,
    )


def _max_of(queue: Queue, name: str) -> int | None:
    whole: list[Gauge] = [g for g in queue.rules.gauges if g.limit == name]
    if whole:
        return whole[0].max
    return next((x.max for x in queue.rules.shares if x.name == name), None)
