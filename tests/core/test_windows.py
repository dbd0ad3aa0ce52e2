"""Windows: opening and closing across midnight and clock changes."""

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import defaults
from headway.core.errors import BadValue
from headway.core.windows import DAY_MINUTES, Window, WindowSet

ZONES = (
    "UTC",
    "Europe/London",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
)
CHANGES = {
    "UTC": (date(2025, 3, 30),),
    "Europe/London": (date(2025, 3, 30), date(2025, 10, 26)),
    "America/New_York": (date(2025, 3, 9), date(2025, 11, 2)),
    "Australia/Lord_Howe": (date(2025, 4, 6), date(2025, 10, 5)),
    "Asia/Kathmandu": (date(2025, 10, 26),),
}


def ms(text: str, zone: str = "UTC", fold: int = 0) -> int:
    wall = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(wall.timestamp() * 1_000)


def one(text: str, zone: str = "UTC") -> WindowSet:
    return WindowSet((Window.parse(text, zone),))


@lru_cache(maxsize=64)
def walls(zone: str, around: date) -> tuple[tuple[int, datetime], ...]:
    """What the zone's clock reads at every minute of ten days."""
    start = datetime(around.year, around.month, around.day, tzinfo=UTC)
    start -= timedelta(days=5)
    instants = (start + timedelta(minutes=n) for n in range(10 * DAY_MINUTES))
    return tuple(
        (
            int(at.timestamp() * 1_000),
            at.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0),
        )
        for at in instants
    )


def open_minutes(window: Window, around: date) -> set[int]:
    """The oracle: looks at a clock minute by minute and never converts a wall time."""
    clock = walls(window.zone, around)
    found: set[int] = set()
    for shift in range(-4, 4):
        midnight = datetime.combine(around, time()) + timedelta(days=shift)
        start = midnight + timedelta(minutes=window.start_minute)
        end = midnight + timedelta(minutes=window.end_minute)
        if end <= start:
            end += timedelta(days=1)
        from_ms = next(at_ms for at_ms, wall in clock if wall >= start)
        last_ms = max(at_ms for at_ms, wall in clock if wall < end)
        found.update(range(from_ms, last_ms + 1, 60_000))
    return found


@st.composite
def windows(draw: st.DrawFn) -> tuple[WindowSet, date]:
    zone = draw(st.sampled_from(ZONES))
    around = draw(st.sampled_from(CHANGES[zone]))
    # Small hours are where clocks change.
    minute = st.integers(0, 200) | st.integers(0, DAY_MINUTES - 1)
    found = []
    for _ in range(draw(st.integers(1, 3))):
        start, end = draw(minute), draw(minute) + 1
        if start == end:
            end = end % DAY_MINUTES + 1
        found.append(Window(start, end, zone))
    return WindowSet(tuple(found)), around


@settings(max_examples=60, deadline=None)
@given(windows())
def test_open_minutes_match_a_clock_watched_minute_by_minute(
    case: tuple[WindowSet, date],
) -> None:
    window_set, around = case
    expected: set[int] = set()
    for window in window_set.windows:
        expected |= open_minutes(window, around)
    middle = ms(around.isoformat())
    span = range(middle - 2 * defaults.DAY_MS, middle + 2 * defaults.DAY_MS, 60_000)
    for at_ms in span:
        assert window_set.is_open(at_ms) == (at_ms in expected)
        assert window_set.is_open(at_ms + 59_999) == (at_ms in expected)


@settings(max_examples=200, deadline=None)
@given(case=windows(), offset_ms=st.integers(-2 * 86_400_000, 2 * 86_400_000))
def test_opening_and_closing_agree_with_is_open(
    case: tuple[WindowSet, date], offset_ms: int
) -> None:
    window_set, around = case
    at_ms = ms(around.isoformat()) + offset_ms
    opens_ms = window_set.opens_ms(at_ms)
    assert opens_ms >= at_ms
    assert window_set.is_open(opens_ms)
    if window_set.is_open(at_ms):
        assert opens_ms == at_ms
    else:
        assert not window_set.is_open(opens_ms - 1)
        for between_ms in range(at_ms, opens_ms, 600_000):
            assert not window_set.is_open(between_ms)
    closes_ms = window_set.closes_ms(opens_ms)
    assert closes_ms > opens_ms
    last_ms = min(closes_ms, opens_ms + 4 * defaults.DAY_MS)
    for between_ms in range(opens_ms, last_ms, 600_000):
        assert window_set.is_open(between_ms)
    if closes_ms != defaults.TIME_MAX_MS:
        assert window_set.is_open(closes_ms - 1)
        assert not window_set.is_open(closes_ms)


def test_boundaries_are_exact_to_the_millisecond() -> None:
    nine_to_five = one("09:00-17:00")
    start_ms, end_ms = ms("2025-06-02T09:00"), ms("2025-06-02T17:00")
    assert not nine_to_five.is_open(start_ms - 1)
    assert nine_to_five.is_open(start_ms)
    assert nine_to_five.is_open(end_ms - 1)
    assert not nine_to_five.is_open(end_ms)
    assert nine_to_five.opens_ms(end_ms) == ms("2025-06-03T09:00")
    assert nine_to_five.closes_ms(start_ms) == end_ms
    assert nine_to_five.closes_ms(end_ms) == end_ms


def test_window_runs_across_midnight() -> None:
    night = one("22:00-06:00", "America/New_York")
    late_ms = ms("2025-06-02T23:30", "America/New_York")
    early_ms = ms("2025-06-03T05:59", "America/New_York")
    assert night.is_open(late_ms)
    assert night.is_open(early_ms)
    assert night.closes_ms(late_ms) == ms("2025-06-03T06:00", "America/New_York")
    noon_ms = ms("2025-06-03T12:00", "America/New_York")
    assert night.opens_ms(noon_ms) == ms("2025-06-03T22:00", "America/New_York")


def test_long_night_west_of_greenwich_is_seen_two_utc_days_later() -> None:
    window = one("23:00-22:00", "America/New_York")
    at_ms = ms("2025-06-04T01:00")
    assert window.is_open(at_ms)
    assert window.closes_ms(at_ms) == ms("2025-06-04T02:00")


def test_start_in_a_spring_gap_moves_to_the_end_of_the_gap() -> None:
    window = one("01:30-04:00", "Europe/London")
    before_ms = ms("2025-03-30T00:00")
    assert window.opens_ms(before_ms) == ms("2025-03-30T01:00")
    assert window.closes_ms(ms("2025-03-30T01:00")) == ms("2025-03-30T03:00")


def test_end_in_a_spring_gap_moves_to_the_end_of_the_gap() -> None:
    window = one("00:15-01:30", "Europe/London")
    assert window.closes_ms(ms("2025-03-30T00:15")) == ms("2025-03-30T01:00")


def test_window_inside_a_spring_gap_does_not_open_that_day() -> None:
    window = one("01:15-01:45", "Europe/London")
    opens_ms = window.opens_ms(ms("2025-03-30T00:00"))
    assert opens_ms == ms("2025-03-31T01:15", "Europe/London")


def test_half_hour_gap_of_lord_howe() -> None:
    window = one("02:10-02:50", "Australia/Lord_Howe")
    opens_ms = window.opens_ms(ms("2025-10-05T00:00", "Australia/Lord_Howe"))
    assert opens_ms == ms("2025-10-05T02:30", "Australia/Lord_Howe")
    assert window.closes_ms(opens_ms) - opens_ms == 20 * defaults.MINUTE_MS


def test_repeated_hour_counts_from_first_start_to_last_end() -> None:
    window = one("01:30-01:45", "Europe/London")
    opens_ms = window.opens_ms(ms("2025-10-26T00:00"))
    assert opens_ms == ms("2025-10-26T01:30", "Europe/London", fold=0)
    closes_ms = window.closes_ms(opens_ms)
    assert closes_ms == ms("2025-10-26T01:45", "Europe/London", fold=1)
    assert closes_ms - opens_ms == 75 * defaults.MINUTE_MS


def test_end_at_the_start_of_the_repeated_hour_does_not_take_that_hour_in() -> None:
    window = one("00:00-01:00", "Europe/London")
    opens_ms = window.opens_ms(ms("2025-10-25T22:30"))
    assert window.closes_ms(opens_ms) - opens_ms == defaults.HOUR_MS


def test_end_at_the_end_of_the_repeated_hour_takes_both_passes_in() -> None:
    window = one("00:00-02:00", "Europe/London")
    opens_ms = window.opens_ms(ms("2025-10-25T22:30"))
    assert window.closes_ms(opens_ms) - opens_ms == 3 * defaults.HOUR_MS


def test_zone_with_odd_minutes_opens_on_its_own_clock() -> None:
    window = one("09:00-10:00", "Asia/Kathmandu")
    assert window.opens_ms(ms("2025-06-02T00:00")) == ms("2025-06-02T03:15")


def test_skipped_day_has_no_opening() -> None:
    window = one("09:00-17:00", "Pacific/Apia")
    after_ms = ms("2011-12-29T17:00", "Pacific/Apia")
    assert window.opens_ms(after_ms) == ms("2011-12-31T09:00", "Pacific/Apia")


def test_touching_and_overlapping_windows_close_as_one() -> None:
    texts = ("08:00-12:00", "12:00-13:00", "12:30-18:00")
    joined = WindowSet(tuple(Window.parse(text) for text in texts))
    assert joined.closes_ms(ms("2025-06-02T09:00")) == ms("2025-06-02T18:00")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "texts",
    [("00:00-24:00",), ("06:00-22:00", "22:00-06:00"), ("12:01-12:00", "12:00-12:01")],
)
def test_whole_day_never_closes(zone: str, texts: tuple[str, ...]) -> None:
    whole = WindowSet(tuple(Window.parse(text, zone) for text in texts))
    for around in CHANGES[zone]:
        start_ms = ms(around.isoformat())
        for at_ms in range(start_ms, start_ms + defaults.DAY_MS, 300_000):
            assert whole.is_open(at_ms)
            assert whole.closes_ms(at_ms) == defaults.TIME_MAX_MS


def test_zones_that_complete_each_other_for_good_never_close() -> None:
    halves = (
        Window.parse("00:00-12:00"),
        Window.parse("17:45-05:45", "Asia/Kathmandu"),
    )
    assert WindowSet(halves).closes_ms(ms("2025-06-02T09:00")) == defaults.TIME_MAX_MS


def test_zones_that_complete_each_other_in_winter_close_in_spring() -> None:
    halves = (Window.parse("00:00-12:00"), Window.parse("12:00-24:00", "Europe/London"))
    closes_ms = WindowSet(halves).closes_ms(ms("2025-12-01T09:00"))
    assert closes_ms == ms("2026-03-29T23:00")


def test_end_of_time_is_no_error() -> None:
    window = one("09:00-10:00", "Asia/Kathmandu")
    assert window.opens_ms(defaults.TIME_MAX_MS) == defaults.TIME_MAX_MS
    assert not window.is_open(defaults.TIME_MAX_MS)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("22:00-06:00", 1_320, 360),
        ("9:05-17:30", 545, 1_050),
        ("22:00-00:00", 1_320, 1_440),
        ("00:00-24:00", 0, 1_440),
    ],
)
def test_parse_reads_times_of_day(text: str, start: int, end: int) -> None:
    assert Window.parse(text, "UTC") == Window(start, end)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "9-17",
        "09:00",
        "24:00-06:00",
        "09:60-10:00",
        "09:00-24:01",
        "08:00-08:00",
        "00:00-00:00",
        "-1:00-02:00",
        "\u0660\u0669:00-10:00",
    ],
)
def test_parse_refuses_nonsense(text: str) -> None:
    with pytest.raises(BadValue, match="window"):
        Window.parse(text)


@pytest.mark.parametrize(
    ("start", "end", "key"),
    [
        (-1, 5, "start_minute"),
        (1_440, 5, "start_minute"),
        (5, 0, "end_minute"),
        (5, 1_441, "end_minute"),
        (5, 5, "end_minute"),
    ],
)
def test_window_refuses_minutes_out_of_range(start: int, end: int, key: str) -> None:
    with pytest.raises(BadValue) as caught:
        Window(start, end)
    assert caught.value.key == key


@pytest.mark.parametrize(
    "zone",
    ["", "Mars/Olympus", "Europe", "../etc/passwd", "/etc/passwd", "a\0b", "x" * 999],
)
def test_window_refuses_unknown_zones(zone: str) -> None:
    with pytest.raises(BadValue) as caught:
        Window(1, 2, zone)
    assert caught.value.key == "zone"


@pytest.mark.parametrize("count", [0, defaults.WINDOWS_MAX + 1])
def test_set_refuses_none_and_too_many(count: int) -> None:
    with pytest.raises(BadValue) as caught:
        WindowSet((Window(1, 2),) * count)
    assert caught.value.key == "windows"


def test_sets_are_equal_hashable_and_survive_the_wire() -> None:
    window_set = one("22:00-06:00", "Europe/London")
    again = msgspec.json.decode(msgspec.json.encode(window_set), type=WindowSet)
    assert again == window_set
    assert len({again, window_set}) == 1
