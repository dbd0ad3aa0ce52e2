"""Durations as people write them, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.defaults import DURATION_MAX_MS
from headway.core.durations import format_ms, parse_ms, readable_ms
from headway.core.errors import BadValue


@pytest.mark.parametrize(
    ("written", "expected_ms"),
    [
        ("5s", 5_000),
        ("500ms", 500),
        ("1.5s", 1_500),
        ("2m", 120_000),
        ("1h", 3_600_000),
        ("1d", 86_400_000),
        ("0.25h", 900_000),
        ("5 s", 5_000),
        ("0s", 0),
        (0, 0),
        (1_234, 1_234),
    ],
)
def test_written_durations_are_milliseconds(
    written: str | int, expected_ms: int
) -> None:
    assert parse_ms(written, "slo") == expected_ms


@pytest.mark.parametrize(
    "written",
    [
        "",
        "5",
        "s",
        "5 minutes",
        "-5s",
        -1,
        "1.5ms",
        "0.0001s",
        "1e3s",
        "inf",
        "nan",
        "\u0665s",
        "5s\n",
        " 5s",
        5.0,
        float("nan"),
        float("inf"),
        True,
        None,
        [],
        {},
        2**63,
        "9" * 15 + "d",
        "9" * 5_000 + "s",
        f"{DURATION_MAX_MS + 1}ms",
    ],
)
def test_nonsense_is_refused_with_its_key_and_value(written: object) -> None:
    with pytest.raises(BadValue) as refusal:
        parse_ms(written, "queues[0].slo")
    assert refusal.value.key == "queues[0].slo"
    assert refusal.value.value is written


@given(st.integers(0, DURATION_MAX_MS))
def test_formatting_loses_nothing(duration_ms: int) -> None:
    assert parse_ms(format_ms(duration_ms), "key") == duration_ms


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        found_ms = parse_ms(text, "key")
    except BadValue:
        return
    assert 0 <= found_ms <= DURATION_MAX_MS


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [
        (30_000, "30s"),
        (300_000, "5m"),
        (90_000, "90s"),
        (999, "999ms"),
        (61_234, "61.234s"),
        (86_400_000, "1d"),
    ],
)
def test_format_picks_the_largest_exact_unit(duration_ms: int, expected: str) -> None:
    assert format_ms(duration_ms) == expected


@pytest.mark.parametrize(
    ("duration_ms", "expected"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (4_512, "4.5 s"),
        (59_949, "59.9 s"),
        (59_951, "1 min"),
        (79_123, "1 min 19 s"),
        (3_599_600, "1 h"),
        (7_500_000, "2 h 05 min"),
        (200_000_000, "2 d 08 h"),
    ],
)
def test_readable_durations_are_rounded(duration_ms: int, expected: str) -> None:
    assert readable_ms(duration_ms) == expected


@given(st.integers(0, 10 * DURATION_MAX_MS))
def test_every_duration_is_readable(duration_ms: int) -> None:
    assert readable_ms(duration_ms)[0].isdigit()
