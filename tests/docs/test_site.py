"""The site builds, strictly, and is whole by itself: `make docs` needs no network."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from headway.core.states import TRANSITIONS
from tools import http_doc, sdk_doc, site_hooks, states_drawing

ROOT = Path(__file__).resolve().parents[2]
NOT_THERE_YET = {"dashboard.md", "postgres.md"}
"""Pages that the navigation has a place for."""
LOADING = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "srcset",
}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Loads(HTMLParser):
    """What a page loads by itself: links that a reader may follow are none of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        value = dict(attrs).get(LOADING.get(tag, ""))
        if value:
            self.found.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    done = subprocess.run(
        [*command, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        if page.name == "README.md":
            name = name.with_name("index.html")
        assert (site / name).is_file(), name
    for made in ("contributing", "changelog", "decisions/index", "examples/payments"):
        assert (site / f"{made}.html").is_file()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loads = Loads(page.read_text()).found
        assert loads
        strange = [one for one in loads if re.match(r"(?:https?:)?//", one)]
        assert strange == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//", style.read_text())


def test_no_page_asks_for_a_script_that_is_not_there(site: Path) -> None:
    """The theme would fetch one from elsewhere for diagrams in text."""
    for page in site.rglob("*.html"):
        assert 'class="mermaid"' not in page.read_text(), page.name


def test_the_search_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    pages = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    assert pages - found <= {"404.html"}


def test_drawings_are_in_the_page_and_follow_its_theme(site: Path) -> None:
    text = (site / "concepts.html").read_text()
    page = (ROOT / "docs" / "concepts.md").read_text()
    assert text.count('<figure class="drawing"') == page.count(".svg)")
    assert "<style>" not in text.partition('<figure class="drawing"')[2]


def test_navigation_has_a_place_for_what_is_not_there_yet() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    docs = ROOT / "docs"
    there = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    made = {"contributing.md", "changelog.md", *site_hooks.FOLDERS}
    missing = set(site_hooks.named(config["nav"])) - there - made
    assert missing <= NOT_THERE_YET


def test_navigation_leaves_out_what_is_not_there() -> None:
    entries = [{"A": "a.md"}, {"B": [{"C": "c.md"}]}, {"D": [{"A": "a.md"}]}]
    found = list(site_hooks.listed(entries, {"a.md"}))
    assert found == [{"A": "a.md"}, {"D": [{"A": "a.md"}]}]


def drawings() -> Iterator[Path]:
    for drawing in (ROOT / "docs" / "images").glob("*.svg"):
        if "aria-label" in drawing.read_text():
            yield drawing


def test_drawings_look_alike() -> None:
    found = list(drawings())
    assert len(found) >= 8
    for drawing in found:
        assert states_drawing.STYLE in drawing.read_text(), drawing.name


def test_drawing_of_states_is_current() -> None:
    drawn = (ROOT / states_drawing.DRAWING).read_text()
    assert drawn == states_drawing.drawing(), "run make docs"


def test_drawing_of_states_has_every_verb() -> None:
    labels = re.findall(r">([^<>]+)</text>", states_drawing.drawing())
    words = {word for label in labels for word in label.split(", ")}
    for verb, source, target in TRANSITIONS:
        assert {verb, target, source or target} <= words


def test_page_of_routes_is_current() -> None:
    page = (ROOT / http_doc.PAGE).read_text()
    assert page == http_doc.page(), "run make docs"


def test_page_of_the_sdk_is_current() -> None:
    page = (ROOT / sdk_doc.PAGE).read_text()
    assert page == sdk_doc.page(), "run make docs"


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_search_works_from_a_folder(site: Path) -> None:
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--virtual-time-budget=20000"]
    address = f"file://{site}/index.html?q=redrive"
    done = subprocess.run(
        [*command, "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "md-search-result__item" in done.stdout
