"""A shelf: members in order of pass, those that are due apart from the rest.

Orders with lazy changes: passes and aims mostly rise, so an entry stays where it is when
its member's key does, and is moved when it surfaces. It stays when its member leaves, too:
who comes and goes is back before that, mostly. An entry counts only while its member says
that it is the one.
"""

from typing import Any, Final, Generic, TypeVar, cast

from headway.core import defaults
from headway.core.odd import Entry
from headway.core.order import Line, Order

OFF: Final = 0
FRESH: Final = 1
DUE: Final = 2
NEVER: Final = 2 * defaults.TIME_MAX_MS
"""An aim that no clock reaches."""


class Member:
    """What can stand on a shelf; only the shelf writes all but its number."""

    __slots__ = (
        "aim",
        "bell",
        "call",
        "entered",
        "entry",
        "home",
        "host",
        "number",
        "rank",
        "seat",
        "thrown",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        """Unique and given in order, so that ties are broken alike in every run; anew when
        what has stopped it lets it go: of one rank, whoever was let go first goes first.
        """
        self.home: Shelf[Any] | None = None
        self.seat = OFF
        self.rank = -1
        self.aim = -1
        self.entry: Entry | None = None
        """By its rank, or by less: none but this one counts..."""
        self.entered = OFF
        """...and the seat among whose entries it is; OFF if it is in no order."""
        self.bell: Entry | None = None
        """The same by its aim, or before..."""
        self.call = NEVER
        """...and the time that says; NEVER if it is in no order."""
        self.host: Shelf[Any] | None = None
        """The shelf that has these entries, be it there or away..."""
        self.thrown = 0
        """...unless it has thrown them away since: how often it had when this came."""

    def renumber(self, number: int) -> None:
        """Whatever it was entered by is not its own any more."""
        self.number = number
        if self.entered != OFF:
            self.entry = None
            self.entered = OFF

    def lose_entries(self) -> None:
        """It is no more. They would be a cycle, which only the collector finds."""
        self.entry = self.bell = None

    def come_due(self, now_ms: int) -> None:
        """Its aim has come: it takes its new seat."""
        assert self.home is not None
        self.home.put(self, DUE, self.rank, NEVER)


M = TypeVar("M", bound=Member)
_NONE: Final = Order()
"""Stands for the orders of a shelf that never had two members; nobody writes to it."""


class Shelf(Member, Generic[M]):
    """Turns of a tenant, or tenancies of a lane: a shelf may stand on another one."""

    __slots__ = ("ahead", "due", "fresh", "size", "solo", "soonest", "throws", "top")

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.solo: M | None = None
        """The only member, while there is but one: it needs no order."""
        self.size = 0
        self.top: M | None = None
        """The first of several, as long as that is known."""
        self.due = _NONE
        """By pass: members whose aim has come."""
        self.fresh = _NONE
        """By pass: the others."""
        self.ahead = _NONE
        """By the time at which a member is due, or has more that is due..."""
        self.soonest = NEVER
        """...none of them before this."""
        self.throws = 0
        """How often all entries were thrown away. Nobody is told: they may be many."""

    def put(self, member: M, seat: int, rank: int, aim: int) -> None:
        """Seats a member, or moves it. `aim` is when it must be looked at again."""
        if member.home is not self:
            self._join(member)
        if self.solo is member:
            member.rank = rank
            member.seat = seat
            member.aim = aim
            return
        if member.rank != rank or member.seat != seat:
            entry = member.entry
            is_entered = (
                member.entered == seat and entry is not None and rank >= entry.rank
            )
            member.rank = rank
            member.seat = seat
            if not is_entered:
                # Seated first: what is compacted meanwhile goes by its new seat.
                self._enter(member, seat, rank)
            top = self.top
            if top is member:
                self.top = None
            elif top is not None and (
                seat > top.seat
                or (seat == top.seat and rank < top.rank)
                or (
                    seat == top.seat and rank == top.rank and member.number < top.number
                )
            ):
                self.top = member
        member.aim = aim
        if aim < member.call:
            self._call(member, aim)

    def off(self, member: M) -> None:
        """Takes a member away; its entries are dropped when they surface."""
        if member.home is not self:
            return
        member.home = None
        member.seat = OFF
        member.aim = NEVER
        self.size -= 1
        if self.top is member:
            self.top = None
        if self.solo is member:
            self.solo = None
        elif self.size == 0 and self.due is not _NONE:
            self.throws += 1
            for order in (self.due, self.fresh, self.ahead):
                order.clear()

    def settle(self, now_ms: int) -> None:
        """Seats anew all whose aim has come by `now_ms`."""
        if self.solo is not None:
            if self.solo.aim <= now_ms:
                self.solo.come_due(now_ms)
            return
        if now_ms < self.soonest:
            return
        ahead = self.ahead
        while (entry := ahead.first()) is not None and entry.rank <= now_ms:
            ahead.drop()
            member = entry.member
            if member.bell is entry:
                member.call = NEVER
                if member.aim == entry.rank:
                    member.come_due(now_ms)
                elif member.aim < NEVER:
                    self._call(member, member.aim)
        self.soonest = NEVER if entry is None else entry.rank

    def first(self) -> M | None:
        """The lowest pass among the due, else among the fresh; None when empty."""
        if self.solo is not None or self.size == 0:
            return self.solo
        if self.top is not None:
            return self.top
        first = self._first_of(self.due, DUE) if self.due.size else None
        if first is None:
            first = self._first_of(self.fresh, FRESH)
        self.top = first
        return first

    def lines(self) -> list[Line]:
        """In which those stand who are likely to be first soon."""
        return self.due.lines if self.due.size else self.fresh.lines

    def lowest(self) -> M | None:
        """The lowest pass of all, due or not."""
        first = self.first()
        if first is None or first.seat == FRESH or self.solo is not None:
            return first
        fresh = self._first_of(self.fresh, FRESH)
        return first if fresh is None or fresh.rank >= first.rank else fresh

    def has_due(self) -> bool:
        first = self.first()
        return first is not None and first.seat == DUE

    def next_aim(self) -> int:
        """When the next fresh member is due; NEVER when there is none."""
        if self.solo is not None:
            return self.solo.aim
        ahead = self.ahead
        while (entry := ahead.first()) is not None:
            member = entry.member
            if member.bell is not entry:
                ahead.drop()
                continue
            aim = member.aim
            if aim == entry.rank:
                return aim
            ahead.drop()
            member.call = aim
            if aim < NEVER:
                entry.rank = aim
                ahead.push(entry)
        return NEVER

    def _first_of(self, order: Order, seat: int) -> M | None:
        while (entry := order.first()) is not None:
            member = entry.member
            if member.entry is not entry:
                order.drop()
            elif member.seat != seat:
                # Its member is away.
                order.drop()
                member.entered = OFF
            elif member.rank == entry.rank:
                return cast(M, member)
            else:
                order.drop()
                entry.rank = member.rank
                order.push(entry)
        return None

    def _join(self, member: M) -> None:
        member.home = self
        member.seat = OFF
        if member.host is not self:
            # What it has elsewhere stands there still.
            member.host = self
            member.lose_entries()
            member.thrown = -1
        if member.thrown != self.throws:
            member.thrown = self.throws
            member.entered = OFF
            member.call = NEVER
        self.size += 1
        if self.size == 1:
            self.solo = member
            return
        solo = self.solo
        if solo is not None:
            # A second member comes: the first takes its places in the heaps.
            self.solo = None
            if self.due is _NONE:
                self.due, self.fresh, self.ahead = Order(), Order(), Order()
            self._enter(solo, solo.seat, solo.rank)
            if solo.aim < NEVER:
                self._call(solo, solo.aim)

    def _enter(self, member: M, seat: int, rank: int) -> None:
        entry = member.entry
        if entry is None or member.entered != OFF:
            entry = member.entry = Entry(rank, member)
        else:
            entry.rank = rank
            entry.number = member.number
        member.entered = seat
        order = self.due if seat == DUE else self.fresh
        order.push(entry)
        if order.size > 64 and order.size > 4 * self.size:
            self._compact()

    def _call(self, member: Member, aim: int) -> None:
        bell = member.bell
        if bell is None or member.call != NEVER:
            bell = member.bell = Entry(aim, member)
        else:
            bell.rank = aim
            bell.number = member.number
        member.call = aim
        if aim < self.soonest:
            self.soonest = aim
        self.ahead.push(bell)
        if self.ahead.size > 64 and self.ahead.size > 4 * self.size:
            self._compact()

    def _compact(self) -> None:
        """Drops entries that count no more, and those of members that are away."""
        for order, seat in ((self.due, DUE), (self.fresh, FRESH)):
            entered: list[Entry] = []
            for entry in order.entries():
                member = entry.member
                if member.entry is not entry:
                    continue
                if member.seat == seat:
                    entered.append(entry)
                else:
                    member.entered = OFF
            order.refill(entered)
        called: list[Entry] = []
        for entry in self.ahead.entries():
            member = entry.member
            if member.bell is not entry:
                continue
            if member.home is self:
                called.append(entry)
            else:
                member.call = NEVER
        self.ahead.refill(called)
