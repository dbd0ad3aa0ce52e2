"""How many worker slots there really were, and when: read off what they did.

A slot that is there takes a job as soon as one waits. So a slot that did nothing while
jobs waited was gone, and one that did nothing while none waited may have been there.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

from headway.sim.scenario import Workers

GRACE_MS: Final = 1_000
"""A slot that leaves jobs waiting for longer than this is not there."""
LATENCY_MS: Final = 250
"""A job that waits for less than this may well be on its way to a free slot."""
OVERLAP_MS: Final = 100
"""For so long at most a worker may seem to have a slot more than it has: it asks for the
next job before it was heard that the last one is done. A quarter of a run, if shorter."""
OVERLAP_SHARE: Final = 0.02
"""And that for no more than this part of the time for which all of them are busy."""
FULL_SHARE: Final = 0.1
"""Of the time while jobs wait, a worker has all of its slots busy for this part."""
CHANCE: Final = 1e-6
"""A worker that got no job of a queue, though this unlikely, does not serve it."""


class Run(NamedTuple):
    """A lease: from when to when, since when its job waited, and who had it."""

    started_ms: int
    ended_ms: int
    ready_ms: int
    worker: str
    queue: str
    token: int = 0
    is_held_up: bool = False
    """Something else than a missing slot may have made it wait."""


class Waited(NamedTuple):
    """A job was ready, and as far as is known only a missing slot held it up."""

    ready_ms: int
    until_ms: int
    queue: str


Period = tuple[int, int]


class Backlog:
    """When jobs waited although a slot would have taken them."""

    def __init__(self, waits: Iterable[Period]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start_ms, end_ms in sorted(waits):
            if end_ms <= start_ms:
                continue
            if self._ends and start_ms <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end_ms)
            else:
                self._starts.append(start_ms)
                self._ends.append(end_ms)

    def within(self, from_ms: int, to_ms: int) -> Period | None:
        """From the first to the last long one between two moments; None if none is."""
        first = bisect_right(self._ends, from_ms)
        last = bisect_left(self._starts, to_ms)
        found = [
            (start_ms, end_ms)
            for start_ms, end_ms in (
                (max(self._starts[place], from_ms), min(self._ends[place], to_ms))
                for place in range(first, last)
            )
            if end_ms - start_ms > GRACE_MS
        ]
        return (found[0][0], found[-1][1]) if found else None

    def periods(self, from_ms: int, to_ms: int) -> list[Period]:
        """All of them between two moments."""
        first = bisect_right(self._ends, from_ms)
        last = bisect_left(self._starts, to_ms)
        return [
            (max(self._starts[place], from_ms), min(self._ends[place], to_ms))
            for place in range(first, last)
        ]


class Estimate(NamedTuple):
    workers: tuple[Workers, ...]
    """Times are after the beginning, or before it for jobs that ran already."""
    gap_ms: int
    """How long a slot takes from the end of a job to the next, on average."""
    cuts_ms: dict[int, int]
    """By token: how long a job held its slot, where its end was heard of later."""


def estimate(
    runs: Sequence[Run], waits: Sequence[Waited], from_ms: int, to_ms: int
) -> Estimate:
    """The slots that served between two moments."""
    backlogs: dict[tuple[str, ...] | None, Backlog] = {}
    by_worker: defaultdict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs):
        by_worker[run.worker].append(run)
    shares = _shares(runs)
    gaps = _Gaps()
    cuts_ms: dict[int, int] = {}
    groups: Counter[tuple[int, int | None, tuple[str, ...] | None]] = Counter()
    for own in by_worker.values():
        queues = _served(own, shares)
        backlog = backlogs.get(queues)
        if backlog is None:
            backlog = backlogs[queues] = _backlog(waits, queues)
        for slot in _slots(own, backlog):
            gaps.add(slot)
            cuts_ms.update(_cuts(slot))
            for start_ms, end_ms in _presence(slot, backlog, from_ms, to_ms):
                groups[start_ms, end_ms, queues] += 1
    workers = [
        Workers(
            slots=slots,
            at_ms=start_ms - from_ms,
            until_ms=None if end_ms is None else max(1, end_ms - from_ms),
            queues=queues,
        )
        for (start_ms, end_ms, queues), slots in groups.items()
    ]
    workers.sort(key=lambda one: (one.at_ms, one.until_ms or to_ms, one.queues or ()))
    return Estimate(tuple(workers), gaps.mean_ms(), cuts_ms)


def _backlog(waits: Iterable[Waited], queues: tuple[str, ...] | None) -> Backlog:
    """As those see it who serve these queues."""
    return Backlog(
        (ready_ms + LATENCY_MS, until_ms)
        for ready_ms, until_ms, queue in waits
        if queues is None or queue in queues
    )


class _Gaps:
    """What a slot loses between two jobs when the next one waits already."""

    def __init__(self) -> None:
        self._sum_ms = 0
        self._count = 0

    def add(self, slot: list[Run]) -> None:
        for last, run in pairwise(slot):
            gap_ms = run.started_ms - last.ended_ms
            if run.is_held_up or gap_ms > GRACE_MS:
                continue
            if run.ready_ms <= last.ended_ms:
                self._sum_ms += max(0, gap_ms)
                self._count += 1

    def mean_ms(self) -> int:
        return round(self._sum_ms / self._count) if self._count else 0


def _cuts(slot: list[Run]) -> Iterator[tuple[int, int]]:
    """Jobs that were over before anybody heard of it: the next had begun."""
    for last, run in pairwise(slot):
        if run.started_ms < last.ended_ms and last.token:
            yield last.token, run.started_ms - last.started_ms


def _slots(runs: list[Run], backlog: Backlog) -> list[list[Run]]:
    """The runs of one worker, dealt out to its slots."""
    most = _most_while_waited(runs, backlog) if runs[0].worker else None
    slots: list[list[Run]] = [[] for _ in range(most or _most_at_once(runs))]
    usual_ms = _usual_ms(runs)
    free = list(range(len(slots)))
    busy: list[tuple[int, int]] = []
    for run in runs:
        while busy and busy[0][0] <= run.started_ms:
            heappush(free, heappop(busy)[1])
        if free:
            place = heappop(free)
        else:
            # One of them is over already: whichever has taken longest for its queue.
            over = max(
                busy,
                key=lambda one: (
                    -slots[one[1]][-1].started_ms - usual_ms[slots[one[1]][-1].queue]
                ),
            )
            busy.remove(over)
            heapify(busy)
            place = over[1]
        slots[place].append(run)
        heappush(busy, (run.ended_ms, place))
    return [slot for slot in slots if slot]


def _usual_ms(runs: list[Run]) -> dict[str, int]:
    """The median of the runs of each queue."""
    lengths: defaultdict[str, list[int]] = defaultdict(list)
    for run in runs:
        lengths[run.queue].append(run.ended_ms - run.started_ms)
    return {queue: sorted(own)[len(own) // 2] for queue, own in lengths.items()}


def _most_while_waited(runs: list[Run], backlog: Backlog) -> int | None:
    """How many a worker ran at once for a good part of the time while jobs waited.

    None if they never did for long: then it was never seen how many it can.
    """
    last_ms = max(run.ended_ms for run in runs)
    moments = [(run.started_ms, 1, 0) for run in runs]
    moments += [(run.ended_ms, -1, 0) for run in runs]
    for start_ms, end_ms in backlog.periods(runs[0].started_ms, last_ms):
        moments += [(start_ms, 0, 1), (end_ms, 0, -1)]
    moments.sort()
    at_level_ms = [0] * (len(runs) + 1)
    level = waiting = before_ms = 0
    for at_ms, step, turn in moments:
        if waiting:
            at_level_ms[level] += at_ms - before_ms
        before_ms = at_ms
        level += step
        waiting += turn
    total_ms = sum(at_level_ms)
    if total_ms < GRACE_MS:
        return None
    reached_ms = 0
    for level in range(len(runs), 1, -1):
        reached_ms += at_level_ms[level]
        if reached_ms >= FULL_SHARE * total_ms:
            return level
    return 1


def _most_at_once(runs: list[Run]) -> int:
    """How many ran at once, but for overlaps: short ones, and seldom."""
    lengths = sorted(run.ended_ms - run.started_ms for run in runs)
    overlap_ms = min(OVERLAP_MS, lengths[len(lengths) // 2] // 4)
    # Starts come first: a job that follows another at once does not end a level.
    moments = [(run.started_ms, 0) for run in runs]
    moments += [(run.ended_ms, 1) for run in runs]
    moments.sort()
    since_ms: list[int] = []
    longest_ms = [0] * (len(runs) + 1)
    total_ms = [0] * (len(runs) + 1)
    for at_ms, is_end in moments:
        if not is_end:
            since_ms.append(at_ms)
            continue
        level = len(since_ms)
        lasted_ms = at_ms - since_ms.pop()
        total_ms[level] += lasted_ms
        longest_ms[level] = max(longest_ms[level], lasted_ms)
    most = 1
    for level in range(2, len(runs) + 1):
        is_seldom = total_ms[level] < OVERLAP_SHARE * total_ms[level - 1]
        if not total_ms[level] or (is_seldom and longest_ms[level] <= overlap_ms):
            break
        most = level
    return most


def _presence(
    slot: list[Run], backlog: Backlog, from_ms: int, to_ms: int
) -> list[tuple[int, int | None]]:
    """From when to when the slot was there; None: it stayed."""
    found: list[tuple[int, int | None]] = []
    missed = backlog.within(from_ms, slot[0].started_ms)
    # A job that ran already at the beginning is had by its slot from its own start on.
    joined_ms = min(from_ms, slot[0].started_ms) if missed is None else missed[1]
    for last, run in pairwise(slot):
        if run.started_ms - last.ended_ms <= GRACE_MS:
            continue
        missed = backlog.within(last.ended_ms, run.started_ms)
        if missed is not None:
            found.append((joined_ms, _left_ms(last, missed)))
            joined_ms = missed[1]
    missed = backlog.within(slot[-1].ended_ms, to_ms)
    return [*found, (joined_ms, None if missed is None else _left_ms(slot[-1], missed))]


def _left_ms(last: Run, missed: Period) -> int:
    """When a slot stopped taking jobs: in the midst of its last, if others waited."""
    if missed[0] > last.ended_ms:
        return missed[0]
    return (last.started_ms + last.ended_ms) // 2 + 1


def _shares(runs: Collection[Run]) -> dict[str, float]:
    counts = Counter(run.queue for run in runs)
    return {queue: count / len(runs) for queue, count in counts.items()}


def _served(own: list[Run], shares: dict[str, float]) -> tuple[str, ...] | None:
    """The queues of a worker; None means all, unless chance can't explain the rest."""
    seen = {run.queue for run in own}
    missing = [
        queue
        for queue, share in shares.items()
        if queue not in seen and (1.0 - share) ** len(own) < CHANCE
    ]
    if not missing:
        return None
    return tuple(sorted(queue for queue in shares if queue not in missing))
