"""From what an owner knows to what its workers are asked to be: the figures of advice."""

from math import inf
from typing import Final

from headway.core import defaults
from headway.core.book import Book
from headway.core.capacity import Figures, LaneFigures, QueueFigures, wanted
from headway.core.config import Concurrency, Limit, Rate, Shares
from headway.core.errors import BadValue, RuleBroken
from headway.core.queue import Queue
from headway.runtime.folding import LANES_MAX, folded
from headway.runtime.meter import Meter, Rates
from headway.runtime.views import Autoscale, View
from headway.runtime.waiting import Waits

LONGER: Final = 3
"""Runs under way count instead of those that ended if they are so much longer."""
_UNKNOWN: Final = Rates()


def advise(
    book: Book, meter: Meter, waits: Waits, query: Autoscale, now_ms: int
) -> View:
    """Answers how many slots are wanted."""
    try:
        if not 0 <= query.start_ms <= defaults.DURATION_MAX_MS:
            raise BadValue("start_ms", query.start_ms, "must be a duration")
        told = figures(book, meter, waits, query.queues, now_ms)
        return wanted(told, query.start_ms)
    except RuleBroken as error:
        return error


def figures(
    book: Book,
    meter: Meter,
    waits: Waits,
    names: tuple[str, ...] | None,
    now_ms: int,
) -> Figures:
    """Of these queues, or of all. Raises UnknownQueue for one that is not there."""
    wished = book.queues if names is None else dict.fromkeys(names)
    queues = [book.queue(name) for name in wished]
    running = _running(book, now_ms)
    lanes: list[LaneFigures] = []
    told: list[QueueFigures] = []
    for queue in queues:
        slos_ms = sorted({*queue.lanes, *queue.exempt})
        own = [
            _lane((queue.name, slo_ms), meter, waits, running.get((queue.name, slo_ms)))
            for slo_ms in slos_ms
        ]
        lanes += own
        told.append(_queue(queue, own))
    # Who waits may serve other queues, too, but is free for these.
    slots = sum(queue.leased for queue in queues) + book.shared.ledger.idle
    if len(lanes) > LANES_MAX:
        lanes, told = folded(lanes, told)
    return Figures(lanes=tuple(lanes), queues=tuple(told), slots=slots)


def _running(book: Book, now_ms: int) -> dict[tuple[str, int], tuple[int, int]]:
    """By lane: how many jobs run, and for how long they have, all together."""
    running: dict[tuple[str, int], tuple[int, int]] = {}
    for job in book.leases.values():
        key = (job.queue, job.slo_ms)
        count, ran_ms = running.get(key, (0, 0))
        running[key] = (count + 1, ran_ms + now_ms - job.started_ms)
    return running


def _lane(
    key: tuple[str, int],
    meter: Meter,
    waits: Waits,
    running: tuple[int, int] | None,
) -> LaneFigures:
    mean, square = meter.rates.get(key, _UNKNOWN).moments()
    count, ran_ms = running or (0, 0)
    if count and ran_ms > LONGER * mean * count:
        # None of these has ended, and what has is no measure for them.
        mean = ran_ms / count
        square = 2 * mean * mean
    waiting = waits.of(*key)
    return LaneFigures(
        queue=key[0],
        slo_ms=key[1],
        per_s=meter.per_s_for(key),
        run_ms=mean,
        run_sq_ms=square,
        ready=waiting.ready,
        oldest_ms=waiting.oldest_ms,
        mean_ms=waiting.mean_ms,
        leased=count,
    )


def _queue(queue: Queue, lanes: list[LaneFigures]) -> QueueFigures:
    """What its limits let it use, by its mean run time and the cost of its jobs.

    Limits for each value of something are left out: how many values come is not known.
    """
    config = queue.rules.config
    runs = [lane.run_ms for lane in lanes if lane.run_ms]
    run_ms = max(runs, default=0.0)
    slots_max, name = inf, ""
    cost = config.cost
    for limit in config.limits if cost else ():
        most = _slots_of(limit, cost, run_ms)
        if most < slots_max:
            slots_max, name = most, limit.name
    return QueueFigures(
        name=queue.name,
        leased=queue.leased,
        slots_max=slots_max,
        limit=name,
        slot_share=config.slot_share,
        is_held=bool(queue.gate.holds),
    )


def _slots_of(limit: Limit, cost: int, run_ms: float) -> float:
    """On how many slots a limit lets jobs of that cost and run time run."""
    match limit:
        case Concurrency(per=None) | Shares():
            # One dearer than the limit may run alone.
            return max(1.0, limit.max / cost) if limit.max else 0.0
        case Rate(per=None) if run_ms:
            return limit.count / limit.period_ms * run_ms / cost
        case _:
            return inf
