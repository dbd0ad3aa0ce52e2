"""Spans of local time of day, and when they open and close.

Also how a wall-clock time becomes an instant, which cron shares.
"""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, Self
from zoneinfo import ZoneInfo

import msgspec

from headway.core import defaults
from headway.core.errors import BadValue

DAY_MINUTES: Final = 1_440
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = date(1970, 1, 1)
_LAST_DAY: Final = (date.max - _FIRST_DAY).days - 2
"""Later days could leave the calendar when their ends become instants."""
_HORIZON_DAYS: Final = 400
_MILLISECOND: Final = timedelta(milliseconds=1)
_SPAN: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")

Spans = tuple[tuple[int, int], ...]


class Window(msgspec.Struct, frozen=True, cache_hash=True):
    """From one minute of the local day up to another, across midnight if need be.

    It opens when the wall clock first reads its start or later, and closes when the
    wall clock has read a time before its end for the last time. So a boundary that a
    spring gap leaves out falls on the end of the gap (a window inside the gap does not
    open that day), and in a repeated autumn hour a start takes the first pass and an
    end the second: 01:30-01:45 then stays open from the first 01:30 to the second 01:45.
    """

    start_minute: int
    end_minute: int
    """At or below the start it means the next day; 1440 is midnight."""
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if not 0 <= self.start_minute < DAY_MINUTES:
            raise BadValue("start_minute", self.start_minute, "must be from 0 to 1439")
        if not 1 <= self.end_minute <= DAY_MINUTES:
            raise BadValue("end_minute", self.end_minute, "must be from 1 to 1440")
        if self.start_minute == self.end_minute:
            raise BadValue("end_minute", self.end_minute, "the window has no length")
        zone_of(self.zone)

    @classmethod
    def parse(cls, text: str, zone: str = "UTC") -> Self:
        """Reads "22:00-06:00"; as an end, 00:00 and 24:00 are both midnight."""
        found = _SPAN.fullmatch(text.strip())
        if found is None:
            raise BadValue("window", text, "must look like 22:00-06:00")
        start_hour, start_minute, end_hour, end_minute = map(int, found.groups())
        if start_minute > 59 or end_minute > 59 or start_hour > 23:
            raise BadValue("window", text, "no such time of day")
        start, end = start_hour * 60 + start_minute, end_hour * 60 + end_minute
        if end > DAY_MINUTES:
            raise BadValue("window", text, "no such time of day")
        if start == end:
            raise BadValue("window", text, "no length; a whole day is 00:00-24:00")
        return cls(start, end or DAY_MINUTES, zone)


class WindowSet(msgspec.Struct, frozen=True, cache_hash=True):
    """Open while any of its windows is."""

    windows: tuple[Window, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.windows) <= defaults.WINDOWS_MAX:
            rule = f"must be from 1 to {defaults.WINDOWS_MAX} windows"
            raise BadValue("windows", len(self.windows), rule)

    def is_open(self, at_ms: int) -> bool:
        """Whether a window is open at this moment."""
        for start_ms, end_ms in _spans(self, at_ms // defaults.DAY_MS):
            if start_ms <= at_ms < end_ms:
                return True
        return False

    def opens_ms(self, at_ms: int) -> int:
        """The first open moment from `at_ms` on, which may be `at_ms` itself."""
        for start_ms, end_ms in _spans(self, at_ms // defaults.DAY_MS):
            if at_ms < end_ms:
                return max(start_ms, at_ms)
        return defaults.TIME_MAX_MS

    def closes_ms(self, at_ms: int) -> int:
        """For an open moment: the first one after it at which no window is open.

        A moment that is not open is its own answer. `TIME_MAX_MS` if it never comes,
        or not within 400 days: that takes windows of several zones that complete
        each other.
        """
        if _covers_day(self):
            return defaults.TIME_MAX_MS
        end_ms = _end_ms(self, at_ms)
        return at_ms if end_ms is None else _closing_ms(self, end_ms)


def zone_of(name: str) -> tzinfo:
    """The time zone of this name, or BadValue."""
    if name == "UTC":
        return UTC
    try:
        return _zone(name)
    # Names that are paths of folders or lead outside fail as OSError or ValueError.
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise BadValue("zone", name, "no such time zone") from error


def local(at_ms: int, zone: tzinfo) -> datetime:
    """What the wall clock of the zone reads at an instant."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(zone)


def instants_ms(wall: datetime, zone: tzinfo) -> tuple[int, int]:
    """The first and the last instant at which the wall clock reads `wall`.

    They are the wrong way round for a time that a gap leaves out: the gap's end then
    lies after the second and not after the first.
    """
    first = wall.replace(tzinfo=zone, fold=0)
    last = wall.replace(tzinfo=zone, fold=1)
    return _instant_ms(first), _instant_ms(last)


def reached_ms(wall: datetime, zone: tzinfo) -> int:
    """The instant at which the wall clock first reads `wall` or later."""
    first_ms, last_ms = instants_ms(wall, zone)
    return first_ms if first_ms <= last_ms else _gap_end_ms(last_ms, first_ms, zone)


def _passed_ms(wall: datetime, zone: tzinfo) -> int:
    """The instant from which the wall clock never reads a time before `wall` again.

    Looks at the moment before, as a boundary on the very start of a repeated hour
    is passed when that hour begins for the first time.
    """
    first_ms, last_ms = instants_ms(wall - _MILLISECOND, zone)
    if first_ms > last_ms:
        return _gap_end_ms(last_ms, first_ms, zone)
    return last_ms + 1


def _gap_end_ms(before_ms: int, after_ms: int, zone: tzinfo) -> int:
    """The instant in (before, after] at which the zone's offset changed."""
    offset = local(before_ms, zone).utcoffset()
    while after_ms - before_ms > 1:
        middle_ms = (before_ms + after_ms) // 2
        if local(middle_ms, zone).utcoffset() == offset:
            before_ms = middle_ms
        else:
            after_ms = middle_ms
    return after_ms


def _instant_ms(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=1_024)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=4_096)
def _spans(windows: WindowSet, day: int) -> Spans:
    """The merged spans, as instants [start, end), that touch or follow a UTC day.

    A span reaches at most three UTC days past its local day, so the local days from
    two before to three after hold what is open on this day and what opens next.
    """
    found = [
        span
        for local_day in range(day - 2, min(day + 3, _LAST_DAY) + 1)
        for window in windows.windows
        if (span := _span(window, local_day)) is not None
    ]
    found.sort()
    merged: list[tuple[int, int]] = []
    for start_ms, end_ms in found:
        if merged and start_ms <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end_ms, merged[-1][1]))
        else:
            merged.append((start_ms, end_ms))
    return tuple(span for span in merged if span[1] > day * defaults.DAY_MS)


def _span(window: Window, local_day: int) -> tuple[int, int] | None:
    zone = zone_of(window.zone)
    midnight = datetime(1970, 1, 1) + timedelta(days=local_day)  # noqa: DTZ001 wall time
    is_next_day = window.end_minute <= window.start_minute
    end_minute = window.end_minute + DAY_MINUTES * is_next_day
    start_ms = reached_ms(midnight + timedelta(minutes=window.start_minute), zone)
    end_ms = _passed_ms(midnight + timedelta(minutes=end_minute), zone)
    return (start_ms, end_ms) if start_ms < end_ms else None


def _end_ms(windows: WindowSet, at_ms: int) -> int | None:
    for start_ms, end_ms in _spans(windows, at_ms // defaults.DAY_MS):
        if start_ms <= at_ms < end_ms:
            return end_ms
    return None


@lru_cache(maxsize=1_024)
def _closing_ms(windows: WindowSet, end_ms: int) -> int:
    """Follows a span over the edge of what one day's spans can see."""
    last_ms = end_ms + _HORIZON_DAYS * defaults.DAY_MS
    while (further_ms := _end_ms(windows, end_ms)) is not None:
        if further_ms > last_ms:
            return defaults.TIME_MAX_MS
        end_ms = further_ms
    return end_ms


@lru_cache(maxsize=1_024)
def _covers_day(windows: WindowSet) -> bool:
    """Whether the windows of one zone leave no minute of the day out."""
    minutes: dict[str, int] = {}
    whole = (1 << DAY_MINUTES) - 1
    for window in windows.windows:
        start_bit, end_bit = 1 << window.start_minute, 1 << window.end_minute
        is_next_day = window.end_minute <= window.start_minute
        span = end_bit - start_bit + whole * is_next_day
        minutes[window.zone] = minutes.get(window.zone, 0) | span
    return whole in minutes.values()
