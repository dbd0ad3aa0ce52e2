"""The chart: complete, well formed, and safe whatever things are called."""

import builtins
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.config import QueueConfig
from headway.sim.chart import (
    ChartError,
    check_chart,
    percent,
    picture_of,
    write_chart,
)
from headway.sim.chart_page import page
from headway.sim.chart_scale import span_label, time_axis, wait_axis
from headway.sim.chart_svg import spaced
from headway.sim.measure import Ending, Measure
from headway.sim.result import Outcomes, Result
from headway.sim.scenario import Load, Scenario, Service, Steady, Workers

HOSTILE = "</script><script>alert(\"1\")</script><b a='x'>&amp;\x1b[31m\x00"
SLOS_MS = (5_000, 30_000, 3_600_000)


def run_of(
    names: tuple[str, ...] = ("payment", "default", "webhook"),
    policy: str = "headway",
    title: str = "A title",
    slos_ms: tuple[int, ...] = SLOS_MS,
) -> Result:
    load = Load(
        name="x",
        queue=names[0],
        arrivals=Steady(per_second=1),
        service=Service(mean_ms=1_000),
    )
    scenario = Scenario(
        name="test",
        title=title,
        duration_ms=100_000,
        workers=(Workers(slots=5), Workers(slots=5, at_ms=50_000)),
        queues=tuple(QueueConfig(name=name) for name in names),
        loads=(load,),
    )
    measure = Measure(scenario)
    for n in range(1_500):
        at_ms = scenario.epoch_ms + n * 100
        measure.arrived(at_ms, 1_000)
        if n % 500 < 400 or n % 29 == 0:
            place = n % len(names)
            key = (names[place], slos_ms[place % len(slos_ms)], "", 0)
            measure.started(key, at_ms, n * (place + 1) * 7)
    return measure.result(
        Ending(
            policy=policy,
            seed=1,
            digest="0123",
            ended_ms=scenario.epoch_ms + 150_000,
            simulated_jobs=1_500,
            simulated_jobs_per_second=1.0,
            limits={},
            outcomes=Outcomes(done=1_500),
        )
    )


class Reader(HTMLParser):
    """Checks that elements are closed as they were opened, and keeps their text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text += data + "\n"


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def drawings(html: str) -> Iterator[Xml.Element]:
    for svg in re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL):
        yield Xml.fromstring(svg)


def test_a_page_shows_every_lane_with_its_promise() -> None:
    html = page(picture_of([run_of()]))
    reader = read(html)
    (drawing,) = drawings(html)
    words = " ".join(drawing.itertext())
    for name, slo in (("payment", "5 s"), ("default", "30 s"), ("webhook", "1 h")):
        assert name in words
        assert f"{slo} promised" in words
        assert name in reader.text
    lines = [element.get("class") or "" for element in drawing.iter()]
    assert sum(line.startswith("slo ") for line in lines) == 3
    assert sum(line.startswith("curve ") for line in lines) >= 3
    assert "no more arrivals" in words


def test_a_page_stands_alone() -> None:
    html = page(picture_of([run_of()]))
    assert not re.search(r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org)", html)
    assert "Content-Security-Policy" in html


def test_a_page_follows_the_system_unless_a_theme_is_given() -> None:
    picture = picture_of([run_of()])
    assert "prefers-color-scheme:dark" in page(picture)
    assert "prefers-color-scheme" not in page(picture, "dark")
    assert "color-scheme:dark" in page(picture, "dark")


def test_hostile_names_stay_text() -> None:
    names = (HOSTILE, "x" * 128, "ünïcode 中文")
    for runs in (
        [run_of(names, policy=HOSTILE, title=HOSTILE)],
        [run_of(names, policy=policy, title=HOSTILE) for policy in (HOSTILE, "b")],
    ):
        html = page(picture_of(runs))
        reader = read(html)
        assert ("a", "x") not in reader.attributes
        assert reader.elements.count("script") in {0, 2}
        assert "\x1b" not in html
        assert "\x00" not in html
        assert '<script>alert("1")' in reader.text
        assert all(drawing is not None for drawing in drawings(html))


def test_a_comparison_has_a_panel_for_each_policy_on_the_same_axes() -> None:
    runs = [run_of(policy=policy) for policy in ("headway", "strict", "fifo")]
    html = page(picture_of(runs))
    found = list(drawings(html))
    ticks = {
        tuple(e.text for e in drawing.iter() if "tick" in (e.get("class") or ""))
        for drawing in found
    }
    assert len(found) == 3
    assert len(ticks) == 1
    for policy in ("headway", "strict", "fifo"):
        assert policy in read(html).text


def test_many_lanes_still_have_a_name_each() -> None:
    names = tuple(f"lane-{n}" for n in range(16))
    html = page(picture_of([run_of(names)]))
    (drawing,) = drawings(html)
    words = " ".join(drawing.itertext())
    assert all(name in words for name in names)


def test_a_run_in_which_nothing_started_can_be_drawn() -> None:
    load = Load(
        name="l",
        queue="q",
        arrivals=Steady(per_second=0),
        service=Service(mean_ms=1),
    )
    scenario = Scenario(
        name="empty",
        duration_ms=1,
        workers=(Workers(slots=1),),
        queues=(QueueConfig(name="q"),),
        loads=(load,),
    )
    ending = Ending(
        policy="p",
        seed=0,
        digest="",
        ended_ms=scenario.epoch_ms,
        simulated_jobs=0,
        simulated_jobs_per_second=0.0,
        limits={},
        outcomes=Outcomes(),
    )
    assert read(page(picture_of([Measure(scenario).result(ending)]))).text


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_image_is_written_in_both_themes(tmp_path: Path, theme: str) -> None:
    pytest.importorskip("matplotlib")
    names = (HOSTILE, "$x_1$", "ünïcode 中文")
    file = tmp_path / "chart.png"
    write_chart(file, [run_of(names, title="costs $5, or $6_")], theme)
    assert file.read_bytes().startswith(b"\x89PNG")
    runs = [run_of(names, policy=policy) for policy in ("a", HOSTILE, "c")]
    write_chart(file, runs, theme)
    assert file.stat().st_size > 10_000


def test_an_image_without_matplotlib_is_refused_with_a_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ChartError, match=r"pip install 'headway\[chart\]'"):
        check_chart(Path("x.png"))


@pytest.mark.parametrize("name", ["chart.pdf", "chart", "chart.html.txt"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(ChartError, match=r"must end in \.html or \.png"):
        check_chart(Path(name))


@given(
    st.lists(st.integers(1, 3_660 * 86_400_000), min_size=1, max_size=16),
    st.integers(0, 3_660 * 86_400_000),
)
def test_wait_axes_hold_everything_with_a_readable_number_of_ticks(
    slos_ms: list[int], longest_ms: int
) -> None:
    axis = wait_axis(slos_ms, longest_ms)
    places = [axis.place(value) for value in sorted([*slos_ms, longest_ms])]
    assert places == sorted(places)
    assert 0 <= places[0] <= places[-1] <= 1
    assert 1 <= len(axis.ticks) <= 16
    assert all(0 <= axis.place(at) <= 1 for at, _ in axis.ticks)


@given(st.integers(0, 10 * 3_660 * 86_400_000))
def test_time_axes_have_a_readable_number_of_ticks(end_ms: int) -> None:
    assert 1 <= len(time_axis(end_ms).ticks) <= 30


@given(st.lists(st.floats(0, 400), max_size=16))
def test_labels_keep_their_distance_and_their_order(wanted: list[float]) -> None:
    places = spaced(sorted(wanted), 20, 0, 400)
    gaps = [after - before for before, after in pairwise(places)]
    assert len(places) == len(wanted)
    assert all(gap >= 20 - 1e-9 for gap in gaps)
    assert all(0 <= place <= 400 for place in places)


def test_shares_are_cut_and_not_rounded_up() -> None:
    assert percent(1.0) == "100 %"
    assert percent(0.99999) == "99.9 %"
    assert percent(0.989) == "98.9 %"
    assert percent(0.0) == "0 %"


def test_spans_are_written_with_their_unit() -> None:
    assert [span_label(ms) for ms in (0, 500, 5_000, 1_500, 300_000)] == [
        "0",
        "500 ms",
        "5 s",
        "1.5 s",
        "5 min",
    ]
