"""What waits in a lane, as far as memory knows: how long, and how much of it is late."""

from typing import Final

import msgspec

from headway.core.lane import Lane
from headway.core.queue import Queue
from headway.core.turn import rows_of

LOOKED_AT: Final = 10_000
"""Jobs of a lane that are looked at for one answer, spread evenly over its turns."""


class Backlog(msgspec.Struct, frozen=True):
    """The ready jobs of one SLO of a queue. Times leave out what was held."""

    ready: int = 0
    """All of them, in memory or not."""
    seen: int = 0
    """Those that were looked at."""
    oldest_ms: int = 0
    """How long the oldest of those has waited."""
    late: int = 0
    """How many of those have waited for longer than the SLO."""
    waited_ms: int = 0
    """How long those have waited, all together."""

    @property
    def is_whole(self) -> bool:
        return self.seen >= self.ready


def backlog(
    queue: Queue, slo_ms: int, now_ms: int, looked_at: int = LOOKED_AT
) -> Backlog:
    """Looks and changes nothing; a lane of any length takes some milliseconds."""
    ready = seen = late = oldest_ms = waited_ms = 0
    for lanes in (queue.lanes, queue.exempt):
        lane = lanes.get(slo_ms)
        if lane is not None and lane.ready:
            more = _in_memory(lane, now_ms, looked_at)
            ready += lane.ready
            seen += more.seen
            late += more.late
            waited_ms += more.waited_ms
            oldest_ms = max(oldest_ms, more.oldest_ms)
    return Backlog(ready, seen, oldest_ms, late, waited_ms)


def _in_memory(lane: Lane, now_ms: int, looked_at: int) -> Backlog:
    queue_ms = lane.queue.gate.time(now_ms)
    slo_ms = lane.slo_ms
    turns = [
        turn
        for strand in lane.strands.values()
        for turn in strand.turns.values()
        if turn.count
    ]
    each = max(1, looked_at // max(1, len(turns)))
    seen = late = oldest_ms = waited_ms = 0
    for turn in turns:
        rule = turn.tenancy.rule
        turn_ms = turn.strand.time(queue_ms) - queue_ms + rule.time(queue_ms)
        # Heaps and a line: their first rows are their first jobs, or nearly so. Rows
        # whose job has left stay until they surface.
        rows = rows_of(turn, each)
        if turn.late:
            rows = turn.late[:each] + rows
        waits_ms = [
            turn_ms + job.shift_ms - job.run_at_ms
            for _, _, _, job in rows[:each]
            if job.turn is turn
        ]
        if waits_ms:
            seen += len(waits_ms)
            late += sum(map(slo_ms.__lt__, waits_ms))
            waited_ms += sum(waits_ms)
            oldest_ms = max(oldest_ms, *waits_ms)
    return Backlog(lane.ready, seen, oldest_ms, late, waited_ms)
