"""Every page shows what the server knows, as text, to everybody, in both themes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.dashboard.conftest import Open, serving
from tests.dashboard.stage import (
    EVIL,
    KEY,
    KIND,
    REASON,
    SCHEDULE,
    TENANT,
    WORKER,
    Stage,
)
from tests.endtoend.processes import free_port

PAGES = {
    "overview": ("/#/", ["limited", "held", "Lanes"]),
    "queues": ("/#/queues", ["limited", "deadly", "paused"]),
    "queue": ("/#/queue/limited", [TENANT, "partner", "1 of 1", "Purge"]),
    "held": ("/#/queue/held", ["Paused by anybody", REASON]),
    "job": ("/#/job/{waits}", ["At a limit", "held by", "{runs}", EVIL, KIND]),
    "dead job": ("/#/job/{dead}", ["dead letter", EVIL, "to the dead letters"]),
    "search": ("/#/search?queue=limited&all=yes", ["{waits}", TENANT, KIND]),
    "running": ("/#/running", ["{runs}", WORKER, TENANT]),
    "holders": (
        "/#/running?queue=limited&holding=partner&value=",
        ["Who holds partner", "{runs}"],
    ),
    "waiting": ("/#/waiting", ["{asks}", KEY]),
    "dead": ("/#/dead", ["deadly"]),
    "dead queue": ("/#/dead/deadly", ["What they died of", "{dead}", TENANT]),
    "schedules": ("/#/schedules", [SCHEDULE, "Europe/London", KIND]),
    "acts": ("/#/acts", ["paused it", REASON, "anybody"]),
    "node": ("/#/node", ["Partition p1", "Index of jobs"]),
    "nodes": ("/#/nodes", ["One server, and no cluster", "alone", "served"]),
    "what if": ("/#/what-if", ["Worker slots"]),
}

PATIENT = {"tenant": "acme", "slo": "1h"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with serving(tmp_path_factory.mktemp("pages") / "data") as served:
        yield Stage(served).set()


def filled(stage: Stage, text: str) -> str:
    names = {
        "{runs}": stage.limited[0],
        "{waits}": stage.limited[1],
        "{dead}": stage.dead[0],
        "{asks}": stage.waiting,
    }
    for name, value in names.items():
        text = text.replace(name, value)
    return text


def test_every_page_tells_what_there_is_as_text(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served)
    for path, texts in PAGES.values():
        tab.go(filled(stage, path))
        for text in texts:
            tab.shows(filled(stage, text))
        shown = tab.main().inner_text()
        assert "NaN" not in shown, path
        assert "undefined" not in shown, path
        assert tab.page.evaluate("window.hacked === undefined"), path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_for_everybody(theme: str, stage: Stage, tabs: Open) -> None:
    """As axe sees it, which runs inside the page and so needs a lax policy."""
    tab = tabs(stage.served, theme=theme, is_lax=True)
    found: list[str] = []
    for name, (path, texts) in PAGES.items():
        tab.go(filled(stage, path))
        tab.shows(filled(stage, texts[0]))
        found += [f"{name}: {line}" for line in tab.barriers()]
    assert found == []


def test_a_phone_scrolls_down_and_not_sideways(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served, width=390)
    for path, _ in PAGES.values():
        tab.go(filled(stage, path))
        wide = tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, path


def test_the_overview_says_first_whether_promises_are_kept(
    stage: Stage, tabs: Open
) -> None:
    tab = tabs(stage.served)
    expect(tab.page.locator("h1")).to_have_text("Every promise is being kept")
    stage.enqueue("hasty", {"slo": 1, "kind": "late"})
    expect(tab.page.locator("h1")).to_contain_text(
        "hasty has broken its promise of 1 ms"
    )
    stage.ask("POST", "/v1/queues/hasty/purge")
    tab.shows("Nothing is late any more")


def test_from_trouble_to_its_cause_in_three_clicks(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served)
    tab.main().get_by_role("link", name="limited", exact=True).first.click()
    tab.page.get_by_role(
        "link", name=f"Why is {stage.limited[1]} not running?", exact=True
    ).click()
    tab.shows("limit 'partner' is used up: 1 of 1")
    tab.main().get_by_role("link", name=stage.limited[0], exact=True).click()
    expect(tab.page.locator("h1")).to_contain_text("running")


def test_keys_lead_to_every_page_and_announce_it(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served)
    tab.page.keyboard.press("Tab")
    focused = tab.page.locator(":focus")
    expect(focused).to_have_text("Skip to the page")
    for _ in range(3):
        tab.page.keyboard.press("Tab")
    expect(focused).to_have_text("Queues")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("h1:focus")).to_have_text("Queues")


def test_queues_are_filtered_and_sorted_by_the_server(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served, "/#/queues")
    tab.page.get_by_label("Name contains").fill("DEAD")
    tab.button("Show").click()
    expect(tab.page.locator("main tbody tr")).to_have_count(1)
    tab.shows("deadly")
    tab.page.get_by_label("Name contains").fill("")
    tab.page.get_by_label("Order").select_option("name")
    tab.button("Show").click()
    expect(tab.page.locator("main tbody tr").first).to_contain_text("asking")


def test_a_search_finds_by_tenant_and_turns_the_pages(stage: Stage, tabs: Open) -> None:
    stage.enqueue("many", *[PATIENT | {"kind": f"k{n}"} for n in range(60)])
    stage.indexed()
    tab = tabs(stage.served, "/#/search")
    tab.page.get_by_role("textbox", name="Queue").fill("many")
    tab.page.get_by_role("textbox", name="Tenant").fill("acme")
    tab.main().get_by_role("button", name="Search").click()
    expect(tab.page.locator("main tbody tr")).to_have_count(50)
    tab.button("Next").click()
    expect(tab.page.locator("main tbody tr")).to_have_count(10)
    tab.button("Back").click()
    expect(tab.page.locator("main tbody tr")).to_have_count(50)


def test_a_refusal_is_told_where_it_was_asked(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served, "/#/search?tenant=acme&all=yes")
    expect(tab.page.get_by_role("alert")).to_contain_text("queue")
    tab.go("/#/job/p1_999999")
    tab.shows("It is not here")
    tab.go("/#/nowhere")
    tab.shows("There is no such page")


def test_the_theme_can_be_turned_and_stays(stage: Stage, tabs: Open) -> None:
    tab = tabs(stage.served)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(ground)
    tab.page.get_by_role("button", name="Switch between light and dark").click()
    dark = tab.page.evaluate(ground)
    assert dark != light
    tab.page.reload()
    tab.page.wait_for_selector("main[data-page] h1")
    assert tab.page.evaluate(ground) == dark


def test_a_server_that_comes_back_is_found_again(
    tmp_path_factory: pytest.TempPathFactory, tabs: Open
) -> None:
    data = tmp_path_factory.mktemp("restart") / "data"
    port = ("--port", str(free_port()))
    with serving(data, *port) as first:
        tab = tabs(first)
        live = tab.page.locator("[data-live]")
        expect(live).to_have_attribute("data-live", "live")
    expect(live).to_have_attribute("data-live", "reconnecting")
    with serving(data, *port):
        expect(live).to_have_attribute("data-live", "live")
