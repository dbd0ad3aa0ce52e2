"""Schedules: ticks by the wall clock, and what becomes of missed ones."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import defaults
from headway.core.cron import Missed, Schedule, next_tick_ms, ticks_due
from headway.core.errors import BadValue
from headway.core.spec import JobSpec

LONDON = "Europe/London"


def ms(text: str, zone: str = "UTC", fold: int = 0) -> int:
    wall = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(wall.timestamp() * 1_000)


def schedule(cron: str, zone: str = "UTC", missed: Missed = Missed.ONE) -> Schedule:
    return Schedule(
        queue="q", name="s", cron=cron, zone=zone, missed=missed, spec=JobSpec()
    )


def following(entry: Schedule, after_ms: int, count: int) -> list[str]:
    """The next ticks, in UTC."""
    found = []
    for _ in range(count):
        tick_ms = next_tick_ms(entry, after_ms)
        assert tick_ms is not None
        found.append(
            datetime.fromtimestamp(tick_ms / 1_000, UTC).strftime("%d %H:%M:%S")
        )
        after_ms = tick_ms
    return found


def test_next_tick_is_strictly_after() -> None:
    entry = schedule("*/5 * * * *")
    at_ms = ms("2025-06-02T10:05")
    assert next_tick_ms(entry, at_ms - 1) == at_ms
    assert next_tick_ms(entry, at_ms) == at_ms + 300_000
    assert next_tick_ms(entry, at_ms + 1) == at_ms + 300_000


def test_six_fields_start_with_seconds() -> None:
    entry = schedule("*/20 * * * * *")
    ticks = following(entry, ms("2025-06-02T10:05"), 3)
    assert ticks == ["02 10:05:20", "02 10:05:40", "02 10:06:00"]


def test_named_time_in_a_repeated_hour_fires_once() -> None:
    ticks = following(schedule("30 1 * * *", LONDON), ms("2025-10-25T12:00"), 2)
    assert ticks == ["26 00:30:00", "27 01:30:00"]


def test_named_time_is_over_in_the_second_pass_of_the_hour() -> None:
    after_ms = ms("2025-10-26T01:10", LONDON, fold=1)
    ticks = following(schedule("30 1 * * *", LONDON), after_ms, 1)
    assert ticks == ["27 01:30:00"]


def test_named_time_in_a_spring_gap_fires_once_at_its_end() -> None:
    ticks = following(schedule("30 1 * * *", LONDON), ms("2025-03-29T12:00"), 2)
    assert ticks == ["30 01:00:00", "31 00:30:00"]


def test_several_named_times_in_one_gap_become_one_tick() -> None:
    entry = schedule("0,20,40 1,2 * * *", LONDON)
    ticks = following(entry, ms("2025-03-29T12:00"), 4)
    assert ticks == ["30 01:00:00", "30 01:20:00", "30 01:40:00", "31 00:00:00"]


def test_named_time_with_seconds_follows_the_same_rules() -> None:
    entry = schedule("15 30 1 * * *", LONDON)
    assert following(entry, ms("2025-10-25T12:00"), 2) == ["26 00:30:15", "27 01:30:15"]
    assert following(entry, ms("2025-03-29T12:00"), 1) == ["30 01:00:00"]


def test_star_follows_the_real_clock_through_both_passes() -> None:
    ticks = following(schedule("*/30 * * * *", LONDON), ms("2025-10-25T23:30"), 5)
    expected = [
        "26 00:00:00",
        "26 00:30:00",
        "26 01:00:00",
        "26 01:30:00",
        "26 02:00:00",
    ]
    assert ticks == expected


def test_star_follows_the_real_clock_over_a_gap() -> None:
    ticks = following(schedule("*/30 * * * *", LONDON), ms("2025-03-30T00:15"), 3)
    assert ticks == ["30 00:30:00", "30 01:00:00", "30 01:30:00"]


def test_half_hour_change_loses_no_tick() -> None:
    zone = "Australia/Lord_Howe"
    after_ms = ms("2025-10-05T00:30", zone)
    assert next_tick_ms(schedule("0 */5 * * *", zone), after_ms) == ms(
        "2025-10-05T05:00", zone
    )


@settings(max_examples=120, deadline=None)
@given(
    cron=st.sampled_from(
        ["*/7 * * * *", "30 1 * * *", "0 * * * *", "*/10 1 * * *", "5,50 0-3 * * *"]
    ),
    zone=st.sampled_from([LONDON, "Australia/Lord_Howe", "America/New_York", "UTC"]),
    day=st.sampled_from(
        ["2025-03-09", "2025-03-30", "2025-04-06", "2025-10-05", "2025-10-26"]
    ),
    offset_s=st.integers(-86_400, 86_400),
)
def test_newest_tick_looking_back_is_the_last_one_looking_forward(
    cron: str, zone: str, day: str, offset_s: int
) -> None:
    now_ms = ms(day) + offset_s * 1_000
    since_ms = now_ms - 30 * defaults.HOUR_MS
    forward = ticks_due(schedule(cron, zone, Missed.ALL), since_ms, now_ms, most=9_999)
    assert forward == sorted(set(forward))
    assert ticks_due(schedule(cron, zone), since_ms, now_ms) == forward[-1:]


@pytest.mark.parametrize("zone", [LONDON, "Australia/Lord_Howe", "America/New_York"])
@pytest.mark.parametrize("cron", ["*/7 * * * *", "0 */5 * * *", "*/10 1 * * *"])
@pytest.mark.parametrize(
    "day", ["2025-03-30", "2025-04-06", "2025-10-05", "2025-11-02"]
)
def test_star_ticks_match_a_clock_watched_minute_by_minute(
    zone: str, cron: str, day: str
) -> None:
    since_ms, now_ms = ms(day) - defaults.DAY_MS, ms(day) + defaults.DAY_MS
    minute, hour = cron.split()[:2]
    expected = []
    for at_ms in range(since_ms + 60_000, now_ms + 1, 60_000):
        wall = datetime.fromtimestamp(at_ms / 1_000, ZoneInfo(zone))
        if matches(minute, wall.minute) and matches(hour, wall.hour):
            expected.append(at_ms)
    entry = schedule(cron, zone, Missed.ALL)
    assert ticks_due(entry, since_ms, now_ms, most=9_999) == expected


def matches(field: str, value: int) -> bool:
    if field.startswith("*"):
        return value % int(field[2:] or 1) == 0
    return value == int(field)


def test_all_gives_every_tick_in_portions_oldest_first() -> None:
    entry = schedule("* * * * *", missed=Missed.ALL)
    last_ms, now_ms = ms("2025-06-02T10:00"), ms("2025-06-02T14:00:30")
    seen: list[int] = []
    while portion := ticks_due(entry, last_ms, now_ms, most=100):
        assert len(portion) <= 100
        seen += portion
        last_ms = portion[-1]
    assert seen == list(range(ms("2025-06-02T10:01"), now_ms, 60_000))


def test_one_gives_only_the_newest() -> None:
    last_ms, now_ms = ms("2025-06-02T10:00"), ms("2025-06-02T14:00:30")
    entry = schedule("*/7 * * * *")
    assert ticks_due(entry, last_ms, now_ms) == [ms("2025-06-02T14:00")]


def test_newest_tick_of_a_repeated_hour_is_that_of_its_second_pass() -> None:
    entry = schedule("*/10 1 * * *", LONDON)
    due = ticks_due(entry, ms("2025-10-26T00:00"), ms("2025-10-26T12:00"))
    assert due == [ms("2025-10-26T01:50", LONDON, fold=1)]


def test_a_tick_at_now_is_due_and_one_at_last_is_not() -> None:
    entry, noon_ms = schedule("0 12 * * *"), ms("2025-06-02T12:00")
    assert ticks_due(entry, noon_ms - 1, noon_ms) == [noon_ms]
    assert ticks_due(entry, noon_ms, noon_ms + 1) == []
    assert ticks_due(entry, noon_ms - 2, noon_ms - 1) == []


@pytest.mark.parametrize(
    ("age_ms", "is_run"), [(0, True), (60_000, True), (60_001, False)]
)
def test_skip_runs_a_tick_only_while_it_is_fresh(age_ms: int, is_run: bool) -> None:
    entry, noon_ms = schedule("0 12 * * *", missed=Missed.SKIP), ms("2025-06-02T12:00")
    due = ticks_due(entry, noon_ms - defaults.DAY_MS, noon_ms + age_ms)
    assert due == ([noon_ms] if is_run else [])


@pytest.mark.parametrize("missed", list(Missed))
@pytest.mark.parametrize("cron", ["* * * * *", "* * * * * *"])
def test_years_of_downtime_cost_nothing(cron: str, missed: Missed) -> None:
    entry, now_ms = schedule(cron, LONDON, missed), ms("2025-06-02T12:00")
    due = ticks_due(entry, 0, now_ms)
    assert len(due) == (100 if missed is Missed.ALL else 1)


def test_clock_that_went_back_gives_nothing() -> None:
    entry = schedule("* * * * *", missed=Missed.ALL)
    assert ticks_due(entry, ms("2025-06-02T12:00"), ms("2025-06-02T11:00")) == []


def test_paused_schedule_has_nothing_due() -> None:
    entry = msgspec.structs.replace(schedule("* * * * *"), is_paused=True)
    assert ticks_due(entry, 0, ms("2025-06-02T12:00")) == []


def test_leap_day_is_found_years_ahead() -> None:
    tick_ms = next_tick_ms(schedule("0 0 29 2 *"), ms("2025-06-02"))
    assert tick_ms == ms("2028-02-29")


@pytest.mark.parametrize("missed", list(Missed))
@pytest.mark.parametrize("cron", ["0 0 */30 * MON#3", "0 0 */15 2 MON#5"])
def test_days_that_never_come_have_no_tick(cron: str, missed: Missed) -> None:
    entry = schedule(cron, LONDON, missed)
    assert next_tick_ms(entry, ms("2025-06-02")) is None
    assert ticks_due(entry, 0, ms("2025-06-02")) == []


def test_end_of_time_has_no_next_tick() -> None:
    for zone in ("UTC", "Asia/Kathmandu", "America/New_York"):
        for cron in ("0 0 29 2 *", "* * * * *"):
            entry = schedule(cron, zone)
            assert next_tick_ms(entry, defaults.TIME_MAX_MS) is None


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("cron", {"cron": ""}),
        ("cron", {"cron": "* * * *"}),
        ("cron", {"cron": "61 * * * *"}),
        ("cron", {"cron": "0 0 30 2 *"}),
        ("cron", {"cron": "1," * 70 + "1 * * * *"}),
        ("zone", {"zone": "Mars/Olympus"}),
        ("name", {"name": ""}),
        ("queue", {"queue": "q" * 129}),
    ],
)
def test_schedule_refuses_nonsense(key: str, values: dict[str, str]) -> None:
    with pytest.raises(BadValue) as caught:
        msgspec.structs.replace(schedule("* * * * *"), **values)
    assert caught.value.key == key


FIELDS = st.lists(
    st.sampled_from(["*", "*/7", "0", "1-5", "L", "LW", "MON#2", "5L", "1,L"])
    | st.text("0123456789*/,-#LWMONSUJA?\u00b2\n", max_size=6),
    min_size=4,
    max_size=7,
)


@settings(max_examples=400, deadline=None)
@given(FIELDS)
def test_any_text_is_a_schedule_or_a_bad_value(fields: list[str]) -> None:
    try:
        entry = schedule(" ".join(fields))
    except BadValue:
        return
    after_ms = ms("2025-06-02")
    tick_ms = next_tick_ms(entry, after_ms)
    assert tick_ms is None or tick_ms > after_ms


def test_schedule_survives_the_wire() -> None:
    entry = schedule("30 1 * * *", LONDON, Missed.ALL)
    assert msgspec.json.decode(msgspec.json.encode(entry), type=Schedule) == entry


def test_daily_tick_keeps_its_time_of_day_for_a_year() -> None:
    entry, at_ms = schedule("0 9 * * *", LONDON), ms("2025-01-01")
    first = datetime.fromisoformat("2025-01-01T09:00")
    for day in range(365):
        at_ms = next_tick_ms(entry, at_ms) or 0
        assert at_ms == ms((first + timedelta(days=day)).isoformat(), LONDON)
