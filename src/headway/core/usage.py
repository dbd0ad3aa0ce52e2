"""How much of limits was in use, by whom, and who was stopped: minute by minute.

Nothing is ever looked for. What a minute adds up to is counted when units are taken or
given back and when a head is stopped or let go, and told after the minute is over.
"""

from typing import TYPE_CHECKING, Final

from headway.core import events
from headway.core.job import Job
from headway.core.limits import Gauge, Parked, RateGauge, note_stop
from headway.core.part import MINUTE_MS, Hold, Part, named

if TYPE_CHECKING:
    from headway.core.use_book import UseBook

QUIET_MAX: Final = 10
"""Minutes in which nothing happened to a limit in use are told together, so many."""
PARTS_MAX: Final = 64
"""Tenants whose part of a limit is counted apart, and not together with others'."""


class Use(Part):
    """One gauge in one minute, and what the tenant that came first has of it.

    Many limits are ever used by one tenant only, and are many: they have one object. It is
    made with its gauge, as jobs line up, and not when one of them starts; it is open from
    the first start until nobody has had anything of the gauge for a minute.
    """

    __slots__ = (
        "_book",
        "alone",
        "full_ms",
        "kept",
        "line",
        "others",
        "queue",
        "rest",
        "until_ms",
    )

    def __init__(self, gauge: Gauge) -> None:
        super().__init__(gauge, None)
        self.is_open = False
        self.until_ms = 0
        """The end of its minute."""
        self.alone: tuple[Hold, ...] = (self,)
        """What a job holds that takes of no other gauge, and the usual amount."""
        self.queue = ""
        self.line = 0
        """Who is stopped now, a queue as a whole being one..."""
        self.full_ms = 0
        """...and how long anybody was."""
        self.others: dict[str, Part] | None = None
        self.rest: Part | None = None
        self.kept: events.LimitUsed | None = None
        """What is to be told of minutes in which nothing happened."""
        self._book: UseBook | None = None

    def open(self, book: "UseBook", job: Job, now_ms: int) -> None:
        """The gauge is used, after a time in which it was not, or for the first time."""
        self._book = book
        self.is_open = True
        self.tenant = job.tenant
        self.queue = job.queue
        _level(self.gauge)
        self.until_ms = now_ms - now_ms % MINUTE_MS + MINUTE_MS

    def forget(self) -> None:
        """Its gauge is no more. They would be a cycle, which only the collector finds."""
        self.gauge.use = None
        self.alone = ()

    def of(self, tenant: str) -> Part:
        """The tenant's part."""
        if tenant == self.tenant:
            return self
        others = self.others
        if others is None:
            others = self.others = {}
        part = others.get(tenant) or self.rest
        if part is None:
            if len(others) < PARTS_MAX - 1:
                part = others[tenant] = Part(self.gauge, tenant)
            else:
                part = self.rest = Part(self.gauge, None)
        return part

    def stop(self, member: Parked, tenant: str, now_ms: int) -> None:
        """`member`, whose next job is this tenant's, waits for the gauge."""
        left_ms = self.until_ms - now_ms
        part = self.of(tenant)
        part.stops += 1
        part.waiting += 1
        part.blocked_ms += left_ms
        if self.line == 0:
            self.full_ms += left_ms
        self.line += 1
        note_stop(member, part)

    def free(self, member: Parked, now_ms: int) -> None:
        """`member` waits no more, or for something else."""
        part = member.stopped
        if part is None:
            return
        if now_ms >= self.until_ms:
            self.renew(now_ms)
        left_ms = self.until_ms - now_ms
        note_stop(member, None)
        part.waiting -= 1
        part.blocked_ms -= left_ms
        self.line -= 1
        if self.line == 0:
            self.full_ms -= left_ms

    def is_quiet(self) -> bool:
        """Nothing happened in its minute that would have to be told."""
        return _is_level(self.gauge) and all(
            part.used_ms == part.units * MINUTE_MS
            and part.blocked_ms == part.waiting * MINUTE_MS
            and part.stops == 0
            for part in self.parts()
        )

    def is_idle(self) -> bool:
        """Nobody holds anything of it, or waits for it."""
        return super().is_idle() and not (self.others or self.rest)

    def renew(self, now_ms: int) -> None:
        """Its minute is over, and so may others be since then."""
        if self.is_quiet():
            self._keep(self.until_ms - MINUTE_MS, 1)
        else:
            self.tell_kept(now_ms)
            self._keep(self.until_ms - MINUTE_MS, 1)
            self.tell_kept(now_ms)
            self._settle()
        minutes = (now_ms - self.until_ms) // MINUTE_MS
        if minutes and not self.is_idle():
            self._keep(self.until_ms, minutes)
        self.until_ms += (minutes + 1) * MINUTE_MS
        if self.kept is not None and self.kept.minutes >= QUIET_MAX:
            self.tell_kept(now_ms)

    def tell_kept(self, now_ms: int) -> None:
        """Minutes that were alike are told as one."""
        kept, self.kept = self.kept, None
        if kept is not None:
            assert self._book is not None
            kept.at_ms = now_ms
            self._book.events.append(kept)

    def end(self, now_ms: int) -> None:
        """The rule that the gauge stood for is gone: what it was is told at once."""
        if now_ms >= self.until_ms:
            self.renew(now_ms)
        self.tell_kept(now_ms)
        left_ms = self.until_ms - now_ms
        for part in self.parts():
            part.used_ms -= part.units * left_ms
            part.blocked_ms -= part.waiting * left_ms
        if self.line:
            self.full_ms -= left_ms
        self._keep(self.until_ms - MINUTE_MS, 1)
        self.tell_kept(now_ms)
        self.shut()
        self.forget()

    def shut(self) -> None:
        """There is nothing to tell until somebody uses the gauge."""
        self._close(self.parts())

    def parts(self) -> list[Part]:
        parts: list[Part] = [self]
        if self.others:
            parts += self.others.values()
        if self.rest is not None:
            parts.append(self.rest)
        return parts

    def _settle(self) -> None:
        """Now it is as a minute is in which nothing happens."""
        _level(self.gauge)
        self.full_ms = MINUTE_MS if self.line else 0
        for part in self.parts():
            part.settle()
        others = self.others or {}
        gone = [part for part in others.values() if part.is_idle()]
        for part in gone:
            del others[str(part.tenant)]
        if self.rest is not None and self.rest.is_idle():
            gone.append(self.rest)
            self.rest = None
        self._close(gone)

    def _close(self, parts: list[Part]) -> None:
        """What jobs have held of these, others are not to hold."""
        for part in parts:
            part.close()
        if parts:
            assert self._book is not None
            self._book.closed += 1

    def _keep(self, minute_ms: int, minutes: int) -> None:
        """So many minutes were as its figures are now."""
        if self.kept is not None:
            self.kept.minutes += minutes
            return
        gauge = self.gauge
        parts = self.parts()
        self.kept = events.LimitUsed(
            0,
            self.queue,
            gauge.limit,
            gauge.value,
            minute_ms,
            minutes,
            gauge.max,
            _peak(gauge),
            sum(part.used_ms for part in parts),
            sum(part.stops for part in parts),
            sum(part.blocked_ms for part in parts),
            self.full_ms,
            named(parts),
        )


def _peak(gauge: Gauge) -> int:
    """The most that was in use in the minute under way."""
    if isinstance(gauge, RateGauge):
        most = gauge.owed_most
        return gauge.units_of(max(most, gauge.owed) if gauge.has_paid else most)
    return gauge.highest


def _is_level(gauge: Gauge) -> bool:
    """Whether it was never more than now; what was let pass is soon paid for."""
    if isinstance(gauge, RateGauge):
        return gauge.owed_most == 0 and not gauge.has_paid
    return gauge.highest == gauge.used


def _level(gauge: Gauge) -> None:
    """A minute begins."""
    gauge.highest = gauge.used
    if isinstance(gauge, RateGauge):
        gauge.owed_most = 0
        gauge.has_paid = False
