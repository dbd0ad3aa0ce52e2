"""A shelf: members in order of pass, those that are due apart from the rest.

Heaps with lazy deletion: an entry counts only while its member still has that key.
"""

from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol

from headway.core import defaults

OFF: Final = 0
FRESH: Final = 1
DUE: Final = 2
NEVER: Final = 2 * defaults.TIME_MAX_MS
"""An aim that no clock reaches."""


class Member(Protocol):
    """What can stand on a shelf; only the shelf writes these."""

    number: int
    """Unique and given in order, so that ties are broken alike in every run."""
    home: "Shelf | None"
    seat: int
    rank: int
    aim: int

    def come_due(self, now_ms: int) -> None:
        """Its aim has come: it takes its new seat."""


Entry = tuple[int, int, Any]


class Shelf:
    """Turns of a tenant, or tenancies of a lane."""

    __slots__ = ("ahead", "due", "fresh", "size", "solo", "top")

    def __init__(self) -> None:
        self.due: list[Entry] = []
        """By pass: members whose aim has come."""
        self.fresh: list[Entry] = []
        """By pass: the others."""
        self.ahead: list[Entry] = []
        """By the time at which a member is due, or has more that is due."""
        self.size = 0
        self.solo: Any = None
        """The only member, while there is but one: it needs no heap."""
        self.top: Any = None
        """The first of several, as long as that is known."""

    def put(self, member: Member, seat: int, rank: int, aim: int) -> None:
        """Seats a member, or moves it. `aim` is when it must be looked at again."""
        if member.home is not self:
            member.home = self
            self.size += 1
            if self.size == 1:
                self.solo = member
            else:
                member.seat = OFF
                member.aim = -1
                if self.solo is not None:
                    self._make_room()
        if self.solo is member:
            member.rank = rank
            member.seat = seat
            member.aim = aim
            return
        if member.rank != rank or member.seat != seat:
            member.rank = rank
            member.seat = seat
            heap = self.due if seat == DUE else self.fresh
            number = member.number
            heappush(heap, (rank, number, member))
            top = self.top
            if top is member:
                self.top = None
            elif top is not None and (
                seat > top.seat
                or (seat == top.seat and (rank, number) < (top.rank, top.number))
            ):
                self.top = member
            if len(heap) > 64 and len(heap) > 4 * self.size:
                self._compact()
        if member.aim != aim:
            member.aim = aim
            if aim < NEVER:
                heappush(self.ahead, (aim, member.number, member))
                if len(self.ahead) > 64 and len(self.ahead) > 4 * self.size:
                    self._compact()

    def off(self, member: Member) -> None:
        """Takes a member away; its entries are dropped when they surface."""
        if member.home is not self:
            return
        member.home = None
        member.seat = OFF
        member.aim = -1
        self.size -= 1
        if self.top is member:
            self.top = None
        if self.solo is member:
            self.solo = None
        elif self.size == 0:
            self.due.clear()
            self.fresh.clear()
            self.ahead.clear()

    def settle(self, now_ms: int) -> None:
        """Seats anew all whose aim has come by `now_ms`."""
        if self.solo is not None:
            if self.solo.aim <= now_ms:
                self.solo.come_due(now_ms)
            return
        ahead = self.ahead
        while ahead and ahead[0][0] <= now_ms:
            aim, _, member = heappop(ahead)
            if member.home is self and member.aim == aim:
                member.come_due(now_ms)

    def first(self) -> Any:
        """The lowest pass among the due, else among the fresh; None when empty."""
        if self.solo is not None or self.size == 0:
            return self.solo
        if self.top is not None:
            return self.top
        heap = self.due
        while heap:
            rank, _, member = heap[0]
            if member.home is self and member.rank == rank and member.seat == DUE:
                self.top = member
                return member
            heappop(heap)
        heap = self.fresh
        while heap:
            rank, _, member = heap[0]
            if member.home is self and member.rank == rank and member.seat == FRESH:
                self.top = member
                return member
            heappop(heap)
        return None

    def lowest(self) -> Any:
        """The lowest pass of all, due or not."""
        first = self.first()
        if first is None or first.seat == FRESH or self.solo is not None:
            return first
        fresh = self.fresh
        while fresh:
            rank, _, member = fresh[0]
            if member.home is self and member.rank == rank and member.seat == FRESH:
                return member if rank < first.rank else first
            heappop(fresh)
        return first

    def has_due(self) -> bool:
        first = self.first()
        return first is not None and first.seat == DUE

    def next_aim(self) -> int:
        """When the next fresh member is due; NEVER when there is none."""
        if self.solo is not None:
            return int(self.solo.aim)
        ahead = self.ahead
        while ahead:
            aim, _, member = ahead[0]
            if member.home is self and member.aim == aim:
                return aim
            heappop(ahead)
        return NEVER

    def _make_room(self) -> None:
        """A second member comes: the first takes its places in the heaps."""
        solo = self.solo
        self.solo = None
        heap = self.due if solo.seat == DUE else self.fresh
        heappush(heap, (solo.rank, solo.number, solo))
        if solo.aim < NEVER:
            heappush(self.ahead, (solo.aim, solo.number, solo))

    def _compact(self) -> None:
        """Drops stale entries, and all but one of a member's equal ones."""
        for heap, seat in ((self.due, DUE), (self.fresh, FRESH)):
            kept = {
                entry[1]: entry
                for entry in heap
                if entry[2].home is self
                and entry[2].rank == entry[0]
                and entry[2].seat == seat
            }
            heap[:] = kept.values()
            heapify(heap)
        aims = {
            entry[1]: entry
            for entry in self.ahead
            if entry[2].home is self and entry[2].aim == entry[0]
        }
        self.ahead[:] = aims.values()
        heapify(self.ahead)
