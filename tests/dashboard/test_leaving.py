"""A page that was left can't be pressed, and what it still waits for changes nothing."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Request, Route, expect

from tests.dashboard.conftest import Open, serving
from tests.dashboard.stage import Stage
from tests.dashboard.tab import PATIENCE_MS, Tab

LATER = "() => new Promise(done => setTimeout(() => requestAnimationFrame(done)))"
"""Whatever an answer brings about has happened by then."""
FAR_MS = 60_000


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with serving(tmp_path_factory.mktemp("leaving") / "data") as served:
        stage = Stage(served)
        stage.enqueue("slow", {"kind": "a"})
        stage.enqueue("quick", {"kind": "b"})
        yield stage


class Held:
    """Answers of one address come when they are let go."""

    def __init__(self, tab: Tab, path: str) -> None:
        self._tab = tab
        self._path = path
        self._routes: list[Route] = []
        self._is_over = False
        tab.page.route(f"**{path}", self._hold)

    def _hold(self, route: Route) -> None:
        if self._is_over:
            route.continue_()
        else:
            self._routes.append(route)

    def wait(self) -> None:
        """Until somebody asks for it."""
        while not self._routes:
            self._tab.page.evaluate(LATER)

    def let_go(self) -> None:
        """Until the page has had what it asked for."""
        tab = self._tab
        self._is_over = True
        with tab.page.expect_event("requestfinished", self._is_it()):
            for route in self._routes:
                route.continue_()
        tab.page.evaluate(LATER)

    def _is_it(self) -> Callable[[Request], bool]:
        return lambda request: request.url.endswith(self._path)


def leave(tab: Tab, path: str) -> None:
    tab.page.evaluate("hash => { location.hash = hash }", path)


def test_while_the_next_page_loads_the_last_can_only_be_looked_at(
    stage: Stage, tabs: Open
) -> None:
    tab = tabs(stage.served, "/#/queue/quick")
    held = Held(tab, "/v1/queues/slow")
    leave(tab, "#/queue/slow")
    held.wait()
    main = tab.main()
    expect(main).to_contain_text("quick")
    expect(main).to_have_attribute("aria-busy", "true")
    pause = tab.page.locator("main button", has_text="Pause…")
    place = pause.bounding_box()
    assert place is not None
    tab.page.mouse.click(place["x"] + 5, place["y"] + 5)
    pause.evaluate("button => button.focus()")
    tab.page.keyboard.press("Enter")
    tab.page.evaluate(LATER)
    expect(tab.page.locator("dialog")).to_have_count(0)
    held.let_go()
    tab.shows("slow")
    assert not main.evaluate("main => main.inert || main.hasAttribute('aria-busy')")
    tab.button("Pause…").click()
    expect(tab.page.locator("dialog h2")).to_have_text("Pause slow?")
    # A question goes with its page, too.
    leave(tab, "#/queue/quick")
    expect(tab.page.locator("dialog")).to_have_count(0)


def test_a_late_answer_does_not_change_the_page_that_came_after(
    stage: Stage, tabs: Open
) -> None:
    tab = tabs(stage.served, "/#/node")
    held = Held(tab, "/v1/queues/slow")
    leave(tab, "#/queue/slow")
    held.wait()
    tab.go("/#/queue/quick")
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.clock.install()
    held.let_go()
    expect(tab.main()).to_contain_text("quick")
    assert tab.page.title() == "quick · Headway"
    # The page that was left follows nothing, however long the other is looked at.
    tab.page.clock.run_for(FAR_MS)
    assert [url for url in asked if "/v1/queues/slow" in url] == []


def test_a_question_that_comes_too_late_is_not_asked(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served, "/#/queue/slow")
    held = Held(tab, "/v1/queues/slow/purge")
    tab.button("Purge…").click()
    held.wait()
    tab.go("/#/queue/quick")
    held.let_go()
    expect(tab.page.locator("dialog")).to_have_count(0)
    tab.button("Purge…").click()
    expect(tab.page.locator("dialog h2")).to_have_text("Purge quick?")


def test_the_way_past_the_menu_leads_to_the_page(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served, "/#/queue/quick")
    tab.page.locator(".skip").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.main()).to_be_focused(timeout=PATIENCE_MS)
    assert tab.page.url.endswith("#/queue/quick")
    tab.shows("quick")
