"""Many lanes as few, for advice whose cost grows with the square of their number."""

from collections.abc import Iterable
from typing import Final

from headway.core.capacity import LaneFigures, QueueFigures
from headway.runtime.meter import OTHER

LANES_MAX: Final = 100
"""Lanes that advice looks at one by one; the price grows with their square: 0.7 s for 3,000."""
HELD_TOLD: Final = 10


def folded(
    lanes: list[LaneFigures], queues: list[QueueFigures]
) -> tuple[list[LaneFigures], list[QueueFigures]]:
    """Queues with the most to do stay as they are, the others become one.

    Its lanes are theirs, those of similar SLOs together under the shortest of them.
    """
    by_queue: dict[str, list[LaneFigures]] = {}
    for lane in lanes:
        by_queue.setdefault(lane.queue, []).append(lane)
    held = [queue for queue in queues if queue.is_held]
    going = [queue for queue in queues if not queue.is_held]
    going.sort(key=lambda queue: -_work(by_queue.get(queue.name, ())))
    kept: list[QueueFigures] = []
    left = LANES_MAX
    while going and (left := left - len(by_queue.get(going[0].name, ()))) >= 0:
        kept.append(going.pop(0))
    others = [lane for queue in going for lane in by_queue.get(queue.name, ())]
    own = [lane for queue in kept for lane in by_queue.get(queue.name, ())]
    kept += held[:HELD_TOLD]
    own += [lane for queue in held[:HELD_TOLD] for lane in by_queue.get(queue.name, ())]
    if going:
        kept.append(_queue(going))
        own += _by_slo(others)
    return own, kept


def _work(lanes: Iterable[LaneFigures]) -> float:
    return sum(lane.per_s * max(lane.run_ms, 1.0) + lane.ready for lane in lanes)


def _queue(queues: list[QueueFigures]) -> QueueFigures:
    return QueueFigures(
        name=OTHER[0],
        leased=sum(queue.leased for queue in queues),
        slots_max=sum(queue.slots_max for queue in queues),
        limit="",
        slot_share=1.0,
        is_held=False,
    )


def _by_slo(lanes: list[LaneFigures]) -> list[LaneFigures]:
    groups: dict[int, list[LaneFigures]] = {}
    for lane in lanes:
        groups.setdefault(lane.slo_ms.bit_length(), []).append(lane)
    return [_lane(group) for _, group in sorted(groups.items())]


def _lane(lanes: list[LaneFigures]) -> LaneFigures:
    """Sums, and means by how much each has to do."""
    per_s = sum(lane.per_s for lane in lanes)
    ready = sum(lane.ready for lane in lanes)
    # Before anything arrives each counts alike.
    weights = [lane.per_s or 1e-9 for lane in lanes if lane.run_ms]
    ran = [lane for lane in lanes if lane.run_ms]
    whole = sum(weights) or 1.0
    pairs = list(zip(weights, ran, strict=True))
    waited_ms = sum((lane.mean_ms or 0) * lane.ready for lane in lanes)
    return LaneFigures(
        queue=OTHER[0],
        slo_ms=min(lane.slo_ms for lane in lanes),
        per_s=per_s,
        run_ms=sum(weight * lane.run_ms for weight, lane in pairs) / whole,
        run_sq_ms=sum(weight * lane.run_sq_ms for weight, lane in pairs) / whole,
        ready=ready,
        oldest_ms=max(lane.oldest_ms for lane in lanes),
        mean_ms=waited_ms // max(1, ready),
        leased=sum(lane.leased for lane in lanes),
    )
