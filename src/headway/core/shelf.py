"""A shelf: members in order of pass, those that are due apart from the rest.

Orders with lazy changes: passes and aims mostly rise, so an entry stays where it is when
its member's key does, and is moved when it surfaces. It stays when its member leaves, too:
who comes and goes is back before that, mostly. An entry counts only while its member says
that it is the one.
"""

from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from headway.core import defaults
from headway.core.order import Line, Order

Entry: TypeAlias = "tuple[int, int, Member]"

OFF: Final = 0
FRESH: Final = 1
DUE: Final = 2
NEVER: Final = 2 * defaults.TIME_MAX_MS
"""An aim that no clock reaches."""


class Member:
    """What can stand on a shelf; only the shelf writes all but its number."""

    __slots__ = (
        "aim",
        "call",
        "entered",
        "home",
        "host",
        "mark",
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
        self.mark = -1
        """The rank of the entry that counts, its own or less..."""
        self.entered = OFF
        """...and the seat among whose entries that is; OFF if there is none."""
        self.call = NEVER
        """The aim of the entry that counts: its own or less; NEVER if there is none."""
        self.host: Shelf[Any] | None = None
        """The shelf that has these entries, be it there or away..."""
        self.thrown = 0
        """...unless it has thrown them away since: how often it had when this came."""

    def renumber(self, number: int) -> None:
        """Whatever it was entered by is not its own any more."""
        self.number = number
        self.entered = OFF

    def come_due(self, now_ms: int) -> None:
        """Its aim has come: it takes its new seat."""
        assert self.home is not None
        self.home.put(self, DUE, self.rank, NEVER)


M = TypeVar("M", bound=Member)
_NONE: Final = Order()
"""Stands for the orders of a shelf that never had two members; nobody writes to it."""


class Shelf(Member, Generic[M]):
    """Turns of a tenant, or tenancies of a lane: a shelf may stand on another one."""

    __slots__ = ("ahead", "due", "fresh", "size", "solo", "throws", "top")

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
        """By the time at which a member is due, or has more that is due."""
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
            is_entered = member.entered == seat and rank >= member.mark
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
        ahead = self.ahead
        while (member := ahead.first()) is not None and ahead.rank <= now_ms:
            aim = ahead.rank
            ahead.drop()
            if member.host is self and member.call == aim:
                member.call = NEVER
                if member.aim == aim:
                    member.come_due(now_ms)
                elif member.aim < NEVER:
                    self._call(member, member.aim)

    def first(self) -> M | None:
        """The lowest pass among the due, else among the fresh; None when empty."""
        if self.solo is not None or self.size == 0:
            return self.solo
        if self.top is not None:
            return self.top
        first = self._first_of(self.due, DUE)
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
        while (member := ahead.first()) is not None:
            aim = ahead.rank
            if member.host is not self or member.call != aim:
                ahead.drop()
                continue
            later = member.aim
            if later == aim:
                return later
            ahead.drop()
            member.call = later
            if later < NEVER:
                ahead.push(later, member)
        return NEVER

    def _first_of(self, order: Order, seat: int) -> M | None:
        while (member := order.first()) is not None:
            mark = order.rank
            is_own = (
                member.host is self
                and member.entered == seat
                and member.mark == mark
                and member.number == order.number
            )
            if not is_own:
                order.drop()
            elif member.seat != seat:
                # Its member is away.
                order.drop()
                member.entered = OFF
            elif (rank := member.rank) == mark:
                return cast(M, member)
            else:
                order.drop()
                member.mark = rank
                order.push(rank, member)
        return None

    def _join(self, member: M) -> None:
        member.home = self
        member.seat = OFF
        if member.host is not self or member.thrown != self.throws:
            member.host = self
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
        member.mark = rank
        member.entered = seat
        order = self.due if seat == DUE else self.fresh
        order.push(rank, member)
        if order.size > 64 and order.size > 4 * self.size:
            self._compact()

    def _call(self, member: Member, aim: int) -> None:
        member.call = aim
        self.ahead.push(aim, member)
        if self.ahead.size > 64 and self.ahead.size > 4 * self.size:
            self._compact()

    def _compact(self) -> None:
        """Drops stale entries and those of members that are away, and all but one of a
        member's equal ones.
        """
        for order, seat in ((self.due, DUE), (self.fresh, FRESH)):
            entered: dict[int, Entry] = {}
            for entry in order.entries():
                mark, number, member = entry
                if member.host is not self or member.entered != seat:
                    continue
                if member.mark == mark and member.number == number:
                    if member.seat == seat:
                        entered[number] = entry
                    else:
                        member.entered = OFF
            _refill(order, entered)
        called: dict[int, Entry] = {}
        for entry in self.ahead.entries():
            aim, _, member = entry
            if member.host is self and member.call == aim:
                if member.home is self:
                    called[member.number] = entry
                else:
                    member.call = NEVER
        _refill(self.ahead, called)


def _refill(order: Order, entries: dict[int, Entry]) -> None:
    order.clear()
    for rank, _, member in sorted(entries.values()):
        order.push(rank, member)
