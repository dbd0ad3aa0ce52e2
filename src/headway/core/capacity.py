"""How many worker slots are wanted to keep the promises of some queues, and why.

Three things ask for slots, and the largest wins: what arrives, with a reserve for chance
where promises are short; what waits, so that it starts before it is due; and queues that
may hold but a share of the slots. What limits forbid is left out of all three.
"""

from collections import deque
from math import ceil, inf, log, sqrt
from typing import Final

import msgspec

MISSED: Final = 0.01
"""The share of starts that chance alone may make late."""
MARGIN: Final = 0.1
"""The part of an SLO that is not planned to be waited: jobs aim at an earlier moment."""
QUANTILE: Final = 2.33
"""What the normal law asks for that share, where a job can't wait at all."""
RUN_MS: Final = 1_000.0
"""The run time of jobs of which nothing is known."""
START_MS: Final = 30_000
"""How long a new worker takes to be there, if nobody says."""
SLOTS_MAX: Final = 1_000_000_000
"""Nobody is told to start more, by whatever figures: a share may be next to nothing."""
HOLD_MS: Final = 30_000
"""How long a fleet stays as large as it was last wanted to be."""


class LaneFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one lane."""

    queue: str
    slo_ms: int
    per_s: float = 0.0
    """Jobs that become ready in a second."""
    run_ms: float = 0.0
    """The mean run time; 0 where none has ended yet."""
    run_sq_ms: float = 0.0
    """The mean of its square."""
    ready: int = 0
    oldest_ms: int = 0
    """How long the oldest of the ready ones has waited."""
    mean_ms: int | None = None
    """How long they have on average; None: evenly spread from the oldest to now."""
    leased: int = 0
    """Jobs that run."""


class QueueFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one queue."""

    name: str
    leased: int = 0
    slots_max: float = inf
    """More slots than this its limits let no jobs run on."""
    limit: str = ""
    """The limit that says so."""
    slot_share: float = 1.0
    is_held: bool = False
    """Paused or blocked: nothing of it may start."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the queues that some workers serve."""

    lanes: tuple[LaneFigures, ...]
    queues: tuple[QueueFigures, ...]
    slots: int = 0
    """Worker slots that are there, busy or not."""


class LaneWanted(msgspec.Struct, frozen=True, kw_only=True):
    """What one lane asks for."""

    queue: str
    slo_ms: int
    load: float
    """Slots that what arrives keeps busy."""
    backlog: float
    """Slots for which what waits is work until it is due."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The advice: so many slots, and the reason in words."""

    slots: int
    reason: str
    load: float
    """Slots that what arrives keeps busy, as far as limits let it."""
    slots_max: int | None
    """More than this could not be used, whatever waits; None where nothing limits."""
    by_lane: tuple[LaneWanted, ...]


class _Lane(msgspec.Struct, frozen=True):
    """A lane with its queue's limits taken off."""

    of: LaneFigures
    queue: QueueFigures
    run_s: float
    rest_s: float
    """What is left of a run, on average, at a moment in it."""
    load: float

    def span_s(self) -> tuple[float, float]:
        """From when until when the jobs that wait are due: a burst all at once."""
        figures = self.of
        oldest_ms, mean_ms = figures.oldest_ms, figures.mean_ms
        youngest_ms = 0 if mean_ms is None else max(0, 2 * mean_ms - oldest_ms)
        aim_ms = figures.slo_ms * (1 - MARGIN)
        return (aim_ms - oldest_ms) / 1_000, (aim_ms - youngest_ms) / 1_000

    def due(self, within_s: float) -> float:
        """How many jobs have to start by then: of those there, and of those to come."""
        figures = self.of
        slo_s = figures.slo_ms / 1_000
        first_s, last_s = self.span_s()
        if within_s >= last_s:
            waiting = float(figures.ready)
        elif within_s <= first_s:
            waiting = 0.0
        else:
            # Their times are not known one by one: evenly between first and last.
            waiting = figures.ready * (within_s - first_s) / (last_s - first_s)
        coming = max(0.0, within_s - slo_s) * self.load / self.run_s
        return waiting + coming


def wanted(figures: Figures, start_ms: int = START_MS) -> Wanted:
    """Slots enough to keep the promises. Nothing is remembered between two calls."""
    lanes = _lanes(figures)
    queues = [queue for queue in figures.queues if not queue.is_held]
    useful = sum(queue.slots_max for queue in queues)
    needs = [(0.0, "nothing arrives and nothing waits")]
    needs += _steady(lanes)
    needs += _backlog(figures, lanes, start_ms)
    needs += _shared(lanes, queues)
    most, reason = max(needs, key=lambda need: need[0])
    most = min(most, useful, SLOTS_MAX)
    notes = [reason, *_limited(figures, lanes, queues), *_long_runs(lanes)]
    return Wanted(
        # A hair above a whole number is not worth a worker.
        slots=ceil(most - 1e-6),
        reason="; ".join(notes),
        load=round(sum(lane.load for lane in lanes), 3),
        slots_max=None if useful == inf else ceil(useful),
        by_lane=tuple(_told(lane, start_ms) for lane in lanes),
    )


class Scaler:
    """Follows advice up at once and down slowly: what was wanted lately is kept."""

    def __init__(self, hold_ms: int = HOLD_MS, least: int = 1) -> None:
        self._hold_ms = hold_ms
        self._least = least
        self._lately: deque[tuple[int, int]] = deque()
        """Times and slots, ever fewer: the first is the most that counts still."""

    def follow(self, slots: int, now_ms: int) -> int:
        """The size that the fleet is to have, now that so many are wanted."""
        lately = self._lately
        while lately and lately[-1][1] <= slots:
            lately.pop()
        lately.append((now_ms, slots))
        while lately[0][0] <= now_ms - self._hold_ms:
            lately.popleft()
        return max(self._least, lately[0][1])


def _lanes(figures: Figures) -> list[_Lane]:
    """Lanes that may start jobs, the shortest promise first."""
    queues = {queue.name: queue for queue in figures.queues}
    loads: dict[str, float] = {}
    for lane in figures.lanes:
        load = lane.per_s * (lane.run_ms or RUN_MS) / 1_000
        loads[lane.queue] = loads.get(lane.queue, 0.0) + load
    lanes = []
    for lane in sorted(figures.lanes, key=lambda lane: (lane.slo_ms, lane.queue)):
        queue = queues[lane.queue]
        if queue.is_held:
            continue
        run_s = (lane.run_ms or RUN_MS) / 1_000
        rest_s = lane.run_sq_ms / lane.run_ms / 2_000 if lane.run_ms else run_s / 2
        load = lane.per_s * run_s
        if loads[lane.queue] > queue.slots_max:
            load *= queue.slots_max / loads[lane.queue]
        lanes.append(_Lane(lane, queue, run_s, rest_s, load))
    return lanes


def _steady(lanes: list[_Lane]) -> list[tuple[float, str]]:
    """What arrives, lane by lane: longer promises give way to shorter ones."""
    needs = []
    load = rest_load = 0.0
    for place, lane in enumerate(lanes):
        load += lane.load
        rest_load += lane.load * lane.rest_s
        if not load:
            continue
        # Slots that others hold for longer than this promise are as good as gone.
        held = sum(
            other.of.leased
            for other in lanes[place + 1 :]
            if other.rest_s * 1_000 > lane.of.slo_ms
        )
        # In a busy fleet with so many slots to spare, waits beyond the SLO become rare
        # exponentially; where the SLO is next to nothing, by the square root instead.
        rest_s = rest_load / load
        decay = log(1 / MISSED) * rest_s * 1_000 / lane.of.slo_ms
        # Half a slot more, since slots are whole: it shows where there are few.
        reserve = min(QUANTILE * sqrt(load) + 0.5, decay)
        text = (
            f"jobs that arrive with up to {_seconds(lane.of.slo_ms)} to wait keep "
            f"{load:.1f} slots busy, and {reserve:.1f} more are in reserve for chance"
        )
        if held:
            text += f"; {held} are held by jobs that run for longer than that"
        needs.append((load + reserve + held, text))
    return needs


def _backlog(
    figures: Figures, lanes: list[_Lane], start_ms: int
) -> list[tuple[float, str]]:
    """What waits, at every moment by which some of it is due.

    By such a moment the slots there and those to come have to do all that is due
    before; those to come are there for the rest of the time only. What is due before
    they come is to be made up for within the time of one more start, and until then
    whoever is there is to stay.
    """
    needs = []
    start_s = start_ms / 1_000
    leased = sum(queue.leased for queue in figures.queues)
    load = sum(lane.load for lane in lanes)
    ready = sum(lane.of.ready for lane in lanes)
    busy = min(figures.slots, leased + ready)
    # Never more than one slot for each job.
    most = load + ready
    moments = {
        moment_s for lane in lanes if lane.of.ready for moment_s in lane.span_s()
    }
    for moment_s in sorted(moments):
        due_s = max(moment_s, 2 * start_s + 1.0)
        left = _work(lanes, leased, due_s) - busy * start_s
        slots = min(left / (due_s - start_s), most)
        text = (
            f"{ready:,} jobs wait, and what is due within {due_s:.0f} s is work for "
            f"{slots:.1f} slots from when new ones are there"
        )
        needs.append((slots, text))
        soon_s = max(moment_s, 1.0)
        staying = min(_work(lanes, leased, soon_s) / soon_s, most, float(figures.slots))
        text = (
            f"{ready:,} jobs wait, and some are due within {soon_s:.0f} s: nobody goes"
        )
        needs.append((staying, text))
    return needs


def _work(lanes: list[_Lane], leased: int, due_s: float) -> float:
    """Slot-seconds that have to be done by then: what runs, and what is due."""
    rest_s = max((lane.rest_s for lane in lanes if lane.load), default=0.0)
    return leased * min(rest_s, due_s) + sum(_asked(lanes, due_s).values())


def _asked(lanes: list[_Lane], due_s: float) -> dict[str, float]:
    """Slot-seconds by queue of what has to start by then, as far as limits let it."""
    asked: dict[str, float] = {}
    for lane in lanes:
        name = lane.queue.name
        work_s = lane.due(due_s) * min(lane.run_s, due_s)
        asked[name] = min(asked.get(name, 0.0) + work_s, lane.queue.slots_max * due_s)
    return asked


def _shared(lanes: list[_Lane], queues: list[QueueFigures]) -> list[tuple[float, str]]:
    """A queue that may hold but a share of the slots needs so many more of them."""
    needs = []
    for queue in queues:
        if queue.slot_share < 1.0:
            load = sum(lane.load for lane in lanes if lane.queue is queue)
            text = (
                f"queue {queue.name!r} keeps {load:.1f} slots busy and may hold "
                f"{queue.slot_share:.0%} of them"
            )
            needs.append((load / queue.slot_share, text))
    return needs


def _limited(
    figures: Figures, lanes: list[_Lane], queues: list[QueueFigures]
) -> list[str]:
    """Queues that more workers would not help."""
    notes = [f"queue {q.name!r} is held" for q in figures.queues if q.is_held]
    for queue in queues:
        own = [lane for lane in lanes if lane.queue is queue]
        asked = sum(lane.of.per_s * lane.run_s for lane in own)
        waits = any(lane.of.ready for lane in own)
        is_full = waits and queue.leased >= queue.slots_max
        if asked > queue.slots_max or is_full:
            notes.append(
                f"limit {queue.limit!r} lets queue {queue.name!r} use "
                f"{queue.slots_max:.1f} slots: workers beyond that would idle"
            )
    return notes


def _long_runs(lanes: list[_Lane]) -> list[str]:
    """Runs in whose shadow a shorter promise can't be kept, whatever the order."""
    notes = []
    for lane in lanes:
        shortest = lanes[0]
        is_free = lane.queue.slot_share == 1.0 and lane.queue.slots_max == inf
        if is_free and lane.load and lane.run_s * 1_000 > 10 * shortest.of.slo_ms:
            notes.append(
                f"jobs of queue {lane.queue.name!r} run for {lane.run_s:.0f} s: unless "
                f"it is capped to a share of the slots, they may all be busy for longer "
                f"than the {_seconds(shortest.of.slo_ms)} of {shortest.queue.name!r}"
            )
    return notes[:1]


def _told(lane: _Lane, start_ms: int) -> LaneWanted:
    due_s = max(lane.of.slo_ms - lane.of.oldest_ms, start_ms, 1) / 1_000
    backlog = min(lane.of.ready * lane.run_s / due_s, float(lane.of.ready))
    return LaneWanted(
        queue=lane.of.queue,
        slo_ms=lane.of.slo_ms,
        load=round(lane.load, 3),
        backlog=round(min(backlog, lane.queue.slots_max), 3),
    )


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1_000:g} s"
