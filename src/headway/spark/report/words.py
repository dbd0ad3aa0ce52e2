"""Numbers as people read them. Nothing is rounded up to whole success."""

import math
from datetime import UTC, datetime

from headway.core.durations import readable_ms
from headway.spark.report.source import DAY_S, HOUR_S, MINUTE_S

NONE = "\u2013"


def count(number: float) -> str:
    return f"{number:,.0f}"


def short(number: float) -> str:
    """At most four characters, for small cells: 950, 1.2k, 35k, 1.2M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            scaled = number / size
            digits = 1 if scaled < 9.95 and round(scaled, 1) % 1 else 0
            return f"{scaled:.{digits}f}{unit}"
    return f"{number:.0f}"


def percent(part: float, whole: float) -> str:
    """Rounded down: 100 % is said of all, and of nothing less."""
    if not whole:
        return NONE
    share = 100 * part / whole
    if share >= 100:
        return "100 %"
    digits = 1 if share < 99 else 2 if share < 99.9 else 3
    return f"{math.floor(share * 10**digits) / 10**digits:g} %"


def share(part: float) -> str:
    """Of a part between 0 and 1, to the nearest tenth of a percent."""
    return f"{100 * part:.1f} %"


def duration(ms: float | None) -> str:
    return NONE if ms is None else readable_ms(max(0, round(ms)))


def tiny_duration(ms: float) -> str:
    """For cells of a heat map: tenths of a second are exact enough."""
    return short_duration(ms) if ms < 95 or ms >= 950 else f"{ms / 1_000:.1f}s"


def short_duration(ms: float) -> str:
    """At most four characters: 15ms, 1.2s, 4m, 3h, 2d."""
    for size, unit in (
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ):
        if ms >= size:
            scaled = ms / size
            digits = 1 if scaled < 9.95 and round(scaled, 1) % 1 else 0
            return f"{scaled:.{digits}f}{unit}"
    return f"{ms:.0f}ms"


def moment(at_s: int) -> str:
    return f"{_at(at_s):%Y-%m-%d %H:%M}"


def moment_in(at_s: int, size_s: int) -> str:
    """As exact as parts of this size are."""
    return f"{_at(at_s):%Y-%m-%d}" if size_s >= DAY_S else moment(at_s)


def between(since_s: int, until_s: int, size_s: int) -> str:
    """`2026-11-15 18:04 to 18:09`; what is the same is said once."""
    first, last = moment_in(since_s, size_s), moment_in(until_s, size_s)
    if size_s >= DAY_S:
        last = moment_in(until_s - 1, size_s)
    if first == last:
        return first
    if size_s < DAY_S and first[:10] == last[:10]:
        last = last[11:]
    return f"{first} to {last}"


def tick(at_s: int, span_s: int) -> str:
    """On an axis that spans so much."""
    form = (
        "%H:%M" if span_s <= DAY_S else "%d %b %Hh" if span_s <= 4 * DAY_S else "%d %b"
    )
    return f"{_at(at_s):{form}}"


def bucket(size_s: int) -> str:
    """What one part of a trend is: a minute, 5 minutes, an hour, …"""
    for unit_s, one, many in (
        (DAY_S, "a day", "days"),
        (HOUR_S, "an hour", "hours"),
        (MINUTE_S, "a minute", "minutes"),
    ):
        if size_s % unit_s == 0:
            return one if size_s == unit_s else f"{size_s // unit_s} {many}"
    raise AssertionError(size_s)


def of(number: int, one: str, many: str | None = None) -> str:
    """`1 lane`, `3 lanes`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def _at(at_s: int) -> datetime:
    return datetime.fromtimestamp(at_s, tz=UTC)
