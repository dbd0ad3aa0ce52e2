"""The choice between lanes, for the workers that serve one set of queues.

1. lanes that are due: shortest SLO first, then fairly between queues
2. if none is due: the lane with the earliest aim
3. then turns above their share, which in any case get every 50th start
A queue with a floor goes before all of them when its share of starts falls below it.
"""

from collections import OrderedDict
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Protocol

from headway.core import defaults
from headway.core.lane import LaneTier
from headway.core.turn import ENTITLED, OVER

if TYPE_CHECKING:
    from headway.core.commands import Lease
    from headway.core.entitlement import Ledger
    from headway.core.queue import Queue


class Board:
    """Lanes of one set of queues, most urgent first."""

    __slots__ = (
        "_ahead",
        "_due",
        "_floor_next",
        "_floors",
        "_stirred",
        "key",
        "lanes",
        "starts",
        "waiters",
    )

    def __init__(
        self, key: tuple[str, ...] | None, stirred: dict["Board", None]
    ) -> None:
        self.key = key
        """The queues it shows; None means all."""
        self.waiters: OrderedDict[Lease, int] = OrderedDict()
        """Callers for whom there was nothing yet, longest waiting first."""
        self._stirred = stirred
        self.lanes = 0
        self.starts = 0
        self._floors: list[tuple[float, int, Queue]] = []
        self._floor_next: dict[int, float] = {}
        """By number of the queue: the start by which it is owed one of its own."""
        self._due: tuple[list[tuple[int, int, int, LaneTier]], ...] = ([], [])
        self._ahead: tuple[list[tuple[int, int, LaneTier]], ...] = ([], [])

    def post_due(self, lane: LaneTier) -> None:
        if self.waiters:
            self._stirred[self] = None
        heap: list[Any] = self._due[lane.tier]
        first: tuple[Any, ...] = heap[0] if heap else ()
        entry = (lane.lane.slo_ms, lane.rank, lane.number, lane)
        if first and first[3] is lane:
            # It was first, and its clock has moved: so it is with each start.
            if len(heap) == 1:
                heap[0] = entry
            else:
                heapreplace(heap, entry)
            return
        heappush(heap, entry)
        if len(heap) > 64 and len(heap) > 4 * self.lanes:
            kept = {entry[2]: entry for entry in heap if entry[3].rank == entry[1]}
            heap[:] = kept.values()
            heapify(heap)

    def post_ahead(self, lane: LaneTier) -> None:
        if self.waiters:
            self._stirred[self] = None
        heap = self._ahead[lane.tier]
        heappush(heap, (lane.aim, lane.number, lane))
        if len(heap) > 64 and len(heap) > 4 * self.lanes:
            kept = {entry[1]: entry for entry in heap if entry[2].aim == entry[0]}
            heap[:] = kept.values()
            heapify(heap)

    def stir(self) -> None:
        """There may be something to start: callers who wait are to be looked at."""
        if self.waiters:
            self._stirred[self] = None

    def pick(self, now_ms: int, ledger: "Ledger") -> LaneTier | None:
        """The lane to serve next, None when there is nothing to start."""
        if self._floor_next:
            lane = self._below_floor()
            if lane is not None:
                return lane
        if self.starts % defaults.OVER_SHARE_STARTS == 0 and ledger.owes_over(now_ms):
            return self._first(OVER, now_ms) or self._first(ENTITLED, now_ms)
        return self._first(ENTITLED, now_ms) or self._first(OVER, now_ms)

    def next_due_ms(self) -> int | None:
        """When the next lane that is ahead reaches its aim, if there is one."""
        heap = self._ahead[ENTITLED]
        while heap and heap[0][2].aim != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def peek(self, tier: int, now_ms: int) -> tuple[int | None, int | None]:
        """The shortest SLO that is due, and else the earliest aim; nothing changes."""
        due = self._due[tier]
        while due and due[0][3].rank != due[0][1]:
            heappop(due)
        slo_ms = due[0][0] if due else None
        ahead = self._ahead[tier]
        while ahead and ahead[0][2].aim != ahead[0][0]:
            heappop(ahead)
        places = [0]
        while places:
            place = places.pop()
            if place < len(ahead) and ahead[place][0] <= now_ms:
                aim, _, lane = ahead[place]
                if lane.aim == aim and (slo_ms is None or lane.lane.slo_ms < slo_ms):
                    slo_ms = lane.lane.slo_ms
                places += (2 * place + 1, 2 * place + 2)
        return slo_ms, ahead[0][0] if ahead else None

    def restart_floor(self, queue: "Queue") -> None:
        """The queue started a job, or has a floor from now on: its share counts anew."""
        floor = queue.rules.config.floor
        if floor > 0.0:
            next_start = self.starts + 1.0 / floor - 1.0
            self._floor_next[queue.number] = next_start
            heappush(self._floors, (next_start, queue.number, queue))
        else:
            self._floor_next.pop(queue.number, None)

    def _first(self, tier: int, now_ms: int) -> LaneTier | None:
        ahead = self._ahead[tier]
        while ahead and ahead[0][0] <= now_ms:
            aim, _, lane = heappop(ahead)
            if lane.aim == aim:
                lane.come_due(now_ms)
        due = self._due[tier]
        while due:
            _, rank, _, lane = due[0]
            if lane.rank == rank:
                if lane.lane.clock.pass_ <= rank:
                    return lane
                # The queue's clock was moved on by its lane of exempt jobs.
                heappop(due)
                lane.reseat()
            else:
                heappop(due)
        while ahead:
            aim, _, lane = ahead[0]
            if lane.aim == aim:
                return lane
            heappop(ahead)
        return None

    def _below_floor(self) -> LaneTier | None:
        floors = self._floors
        while floors:
            next_start, number, queue = floors[0]
            if self._floor_next.get(number) != next_start:
                heappop(floors)
                continue
            if next_start > self.starts:
                return None
            lane = queue.most_urgent()
            if lane is None:
                # Nothing to start: its share counts anew from here.
                heappop(floors)
                self.restart_floor(queue)
                continue
            return lane
        return None


class BoardMaker(Protocol):
    """Makes the board of a set of queues; the simulator has others to compare with."""

    def __call__(
        self, key: tuple[str, ...] | None, stirred: dict[Board, None], /
    ) -> Board: ...
