"""The page: well formed, readable by all, and proof against what data says."""

import re
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.lakes import moment_s
from headway.cli.refused import Refused
from headway.spark.report import charts, words
from headway.spark.report.figures import Figures
from headway.spark.report.markup import tag
from headway.spark.report.page import page
from headway.spark.report.read.promises import Kept, spells
from headway.spark.report.source import BUCKETS, Span, buckets
from tests.spark.figures import AT_S, ATTACK, NAMES, hollow, whole

VOID = {"meta", "br", "hr", "col"}
SECTIONS = (
    *("promises", "week", "waits", "runs", "tenants", "limits"),
    *("failures", "schedules", "replies", "costs", "capacity"),
)


class Parsed(HTMLParser):
    """Fails where an element is not closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module", params=["whole", "hollow", "bare"])
def parsed(request: pytest.FixtureRequest) -> Parsed:
    made = {
        "whole": whole(),
        "hollow": hollow(),
        "bare": Figures(span=Span(), as_of_s=AT_S, events=0, batch=1),
    }
    return Parsed(page(made[request.param]))


def test_it_needs_nothing_and_runs_nothing(parsed: Parsed) -> None:
    names = {name for name, _ in parsed.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "use"}
    for _, attributes in parsed.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "style", "srcset", "action"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    style = resources.files("headway.spark.report").joinpath("style.css").read_text()
    assert "//" not in style
    assert "@import" not in style
    assert re.findall(r"url\((.*?)\)", style) == ["#late"]
    policy = next(
        one["content"]
        for one in parsed.named("meta")
        if one.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_headings_tables_and_charts_can_be_read_without_eyes(parsed: Parsed) -> None:
    levels = [int(name[1]) for name, _ in parsed.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(one.get("scope") in {"col", "row"} for one in parsed.named("th"))
    assert len(parsed.named("caption")) == len(parsed.named("table"))
    for one in parsed.named("svg"):
        assert one.get("aria-hidden") == "true" or (one["role"], one["aria-label"])
    ids = [one["id"] for _, one in parsed.tags if "id" in one]
    assert len(ids) == len(set(ids))
    links = {one["href"] for one in parsed.named("a")}
    assert links <= {f"#{one}" for one in ids}
    assert [one.get("lang") for one in parsed.named("html")] == ["en"]


def test_whatever_data_says_is_text() -> None:
    made = page(whole(), title=ATTACK)
    for name in NAMES:
        assert name not in made
    assert "<script" not in made
    assert "<img" not in made
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", made)
    told = Parsed(made)
    assert told.texts.count(ATTACK) > 5
    assert "script" not in {name for name, _ in told.tags}


@given(st.text() | st.text(alphabet="<>&\"'/;ab= \n\x00"))
def test_no_text_can_leave_its_element_or_attribute(text: str) -> None:
    found = Parsed(tag("p", text, title=text))
    assert len(found.tags) == 1
    shown = "".join(found.texts)
    assert shown == found.tags[0][1]["title"]
    printable = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    assert shown == printable


def test_every_section_whose_table_is_empty_says_so() -> None:
    found = Parsed(page(hollow()))
    assert [one["id"] for one in found.named("section")] == list(SECTIONS)
    said = [text for text in found.texts if text.endswith("in this time.")]
    assert len(said) >= len(SECTIONS)
    assert found.named("table") == []


def test_sections_without_a_table_are_left_out() -> None:
    figures = msgspec.structs.replace(whole(), tenants=None, costs=None, arrivals=None)
    found = Parsed(page(figures))
    shown = [one["id"] for one in found.named("section")]
    assert shown == [one for one in SECTIONS if one not in {"tenants", "costs"}]


def test_the_headline_counts_overdue_jobs_as_missed() -> None:
    told = " ".join(Parsed(page(whole())).texts)
    assert "73.6 % of 19 promises were kept." in told
    assert "3 jobs started late, and 2 past their time have not started" in told


def test_success_is_never_rounded_up() -> None:
    assert words.percent(999_999, 1_000_000) == "99.999 %"
    assert words.percent(99_999_999, 100_000_000) == "99.999 %"
    assert words.percent(989, 1_000) == "98.9 %"
    assert words.percent(7, 7) == "100 %"
    assert words.percent(0, 0) == words.NONE


@given(st.integers(0, 4_000_000_000), st.integers(0, 4_000_000_000))
def test_trends_never_have_more_parts_than_fit(first_s: int, length_s: int) -> None:
    parts = buckets(first_s, first_s + length_s)
    starts = parts.starts()
    assert 1 <= len(starts) <= BUCKETS
    assert starts[0] <= first_s < starts[0] + parts.size_s
    assert starts[-1] <= first_s + length_s < starts[-1] + parts.size_s


@given(st.lists(st.floats(0, 1e12), min_size=1))
def test_scales_of_durations_hold_all_their_values(values_ms: list[float]) -> None:
    on = charts.scale(values_ms)
    places = [on.part(ms) for ms in sorted(values_ms)]
    assert all(0 <= place <= 1 for place in places)
    assert places == sorted(places)


def test_moments_are_days_times_or_so_long_before_the_newest_event() -> None:
    assert moment_s("2h", "--from", AT_S) == AT_S - 7_200
    day_s = moment_s("2026-11-15", "--from", AT_S)
    assert moment_s("2026-11-15T18:00", "--to", 0) == day_s + 18 * 3_600 == AT_S
    assert moment_s("2026-11-15T19:00+01:00", "--to", 0) == AT_S
    with pytest.raises(Refused, match="--to soon: not a day or moment"):
        moment_s("soon", "--to", AT_S)


def test_misses_that_follow_each_other_are_one_spell() -> None:
    parts = buckets(AT_S, AT_S + 5 * 60)
    kept = [Kept(9), Kept(8, 1), Kept(5, 3, 2), Kept(9), Kept(), Kept(8, 2)]
    trends = {("mail", 5_000): dict(zip(parts.starts(), kept, strict=True))}
    first, second = spells(trends, parts)
    assert (first.since_s, first.until_s) == (AT_S + 60, AT_S + 180)
    assert first.kept == Kept(13, 4, 2)
    assert (first.worst_s, first.worst) == (AT_S + 120, Kept(5, 3, 2))
    assert (second.since_s, second.until_s) == (AT_S + 300, AT_S + 360)


def test_text_stands_out_from_its_ground_in_light_dark_and_print() -> None:
    style = resources.files("headway.spark.report").joinpath("style.css").read_text()
    light, dark, paper = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    base = dict(re.findall(r"--(\w+): (#\w+)", light))
    pairs = [
        *(("ink", ground) for ground in ("ground", "card", "faint")),
        *(("soft", ground) for ground in ("ground", "card", "faint", "h0")),
        *((grade, "card") for grade in ("good", "fair", "bad", "accent")),
        *(("d0", f"h{level}") for level in range(1, 5)),
        *(("d1", f"h{level}") for level in range(5, 8)),
    ]
    for theme in (light, dark, paper):
        colors = {**base, **dict(re.findall(r"--(\w+): (#\w+)", theme))}
        for ink, ground in pairs:
            found = contrast(colors[ink], colors[ground])
            assert found >= 4.5, (ink, ground, round(found, 2))


def contrast(one: str, other: str) -> float:
    """As WCAG counts it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else "".join(c * 2 for c in color[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
