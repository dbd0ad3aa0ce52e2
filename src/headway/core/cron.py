"""Schedules: cron entries, their ticks, and what becomes of missed ones."""

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec
from cronsim import CronSim, CronSimError

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.spec import JobSpec
from headway.core.windows import instants_ms, local, reached_ms, zone_of

CRON_LENGTH_MAX: Final = 128
LATE_MS: Final = defaults.MINUTE_MS
"""A tick that is older than this was missed."""
_SOME_DAY: Final = datetime(2000, 1, 1)  # noqa: DTZ001 wall time
_SECOND: Final = timedelta(seconds=1)


class Missed(StrEnum):
    """What to do about ticks that nobody was there to see."""

    SKIP = "skip"
    ONE = "one"
    """One run, for the newest of them."""
    ALL = "all"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be enqueued at every tick of a cron expression.

    An expression has five fields, or six with seconds in front, read by the wall clock
    of `zone`. Where minute and hour are both named (`30 1 * * *`) a tick happens once
    a day whatever the clock does: at the first pass through a repeated hour, and at the
    end of a gap that leaves it out. Where one of them starts with a star the real clock
    counts: twice through a repeated hour, and nothing in a gap.
    """

    queue: str
    name: str
    cron: str
    zone: str = "UTC"
    missed: Missed = Missed.ONE
    is_paused: bool = False
    spec: JobSpec

    def __post_init__(self) -> None:
        for key, text in (("queue", self.queue), ("name", self.name)):
            if not 1 <= len(text) <= defaults.NAME_LENGTH_MAX:
                rule = f"must have 1 to {defaults.NAME_LENGTH_MAX} characters"
                raise BadValue(key, text, rule)
        if len(self.cron) > CRON_LENGTH_MAX:
            raise BadValue("cron", self.cron, f"at most {CRON_LENGTH_MAX} characters")
        try:
            CronSim(self.cron, _SOME_DAY)
        except CronSimError as error:
            raise BadValue("cron", self.cron, str(error)) from error
        zone_of(self.zone)


def next_tick_ms(schedule: Schedule, after_ms: int) -> int | None:
    """The first tick strictly after a moment; None if there never is one."""
    zone = zone_of(schedule.zone)
    best_ms: int | None = None
    for wall in _walls(after_ms, zone):
        for tick_ms in _ticks_ms(schedule.cron, wall, zone):
            if tick_ms > after_ms:
                best_ms = tick_ms if best_ms is None else min(best_ms, tick_ms)
                break
    return best_ms


def ticks_due(
    schedule: Schedule, last_ms: int, now_ms: int, most: int = 100
) -> list[int]:
    """The ticks in (last, now] that are to be run, oldest first; none while paused.

    ALL gives at most `most`: called again with the last of them, it gives the rest.
    ONE gives the newest, SKIP the newest if it is no more than a minute old.
    """
    if schedule.is_paused or last_ms >= now_ms:
        return []
    if schedule.missed is Missed.ALL:
        return _all_ticks_ms(schedule, last_ms, now_ms, most)
    newest_ms = _newest_tick_ms(schedule, now_ms)
    if newest_ms is None or newest_ms <= last_ms:
        return []
    is_missed = now_ms - newest_ms > LATE_MS
    return [] if schedule.missed is Missed.SKIP and is_missed else [newest_ms]


def _all_ticks_ms(
    schedule: Schedule, last_ms: int, now_ms: int, most: int
) -> list[int]:
    ticks: list[int] = []
    while len(ticks) < most:
        tick_ms = next_tick_ms(schedule, last_ms)
        if tick_ms is None or tick_ms > now_ms:
            break
        ticks.append(tick_ms)
        last_ms = tick_ms
    return ticks


def _newest_tick_ms(schedule: Schedule, now_ms: int) -> int | None:
    """Searches backwards, so its cost does not grow with the time missed."""
    zone = zone_of(schedule.zone)
    best_ms: int | None = None
    for wall in _walls(now_ms, zone):
        for tick_ms in _ticks_ms(schedule.cron, wall, zone, is_reverse=True):
            if tick_ms <= now_ms:
                best_ms = tick_ms if best_ms is None else max(best_ms, tick_ms)
                break
    return best_ms


def _walls(at_ms: int, zone: tzinfo) -> set[datetime]:
    """The wall-clock times from which to search.

    Within a repeated hour the ticks of both passes lie around a moment, so the search
    starts from what the clock reads and from what it would read in the other pass.
    """
    try:
        here = local(at_ms, zone)
    except OverflowError:  # past the end of the calendar
        return set()
    wall = here.replace(tzinfo=None, fold=0)
    first_ms, last_ms = instants_ms(wall, zone)
    other = timedelta(milliseconds=last_ms - first_ms)
    if not other:
        return {wall}
    return {wall, wall + other if here.fold else wall - other}


def _ticks_ms(
    cron: str, wall: datetime, zone: tzinfo, *, is_reverse: bool = False
) -> Iterator[int]:
    """Instants of ticks from a wall-clock time on, rising, or falling in reverse.

    The library only sees wall-clock times: given a zone, it drops ticks where an
    offset changes by half an hour and may answer with a tick before the start.
    """
    if not _is_possible(cron):
        return
    start = wall.replace(microsecond=0) + _SECOND if is_reverse else wall
    is_fixed = not any(field.startswith("*") for field in cron.split()[-5:-3])
    try:
        for tick in CronSim(cron, start, reverse=is_reverse):
            if is_fixed:
                yield reached_ms(tick, zone)
                continue
            first_ms, last_ms = instants_ms(tick, zone)
            if first_ms <= last_ms:
                yield from (last_ms, first_ms) if is_reverse else (first_ms, last_ms)
    except OverflowError:  # the end of the calendar
        return


@lru_cache(maxsize=4_096)
def _is_possible(cron: str) -> bool:
    """Whether any day matches; finding none takes the library tens of milliseconds.

    Every day that ever comes, comes again within its search of 50 years.
    """
    return next(CronSim(cron, _SOME_DAY), None) is not None
