"""What the dashboard does not do: run others' words, act for other sites, exceed tokens."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

from headway.server.dashboard.files import POLICY, all_files
from tests.dashboard.conftest import Open, serving
from tests.dashboard.stage import Stage
from tests.server.process import Served, make_token

CHANGING = ("Pause…", "Block…", "Purge…", "Change…", "Resume", "Unblock")
FORBIDDEN = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("safety") / "data"
    make_token(data, "admin-0", "admin")
    with serving(data) as started:
        yield started


@pytest.fixture(scope="module")
def stage(served: Served) -> Stage:
    admin = served.make_token("stage", "admin")
    served.until(200, "/v1/me", admin)
    return Stage(served, admin).set()


def token(served: Served, name: str, *scopes: str) -> str:
    made = served.make_token(name, *scopes)
    served.until(200, "/v1/me", made)
    return made


def test_no_file_makes_markup_of_text() -> None:
    scripts = [one for name, one in all_files().items() if name.endswith(".js")]
    assert len(scripts) > 15
    for script in scripts:
        for word in FORBIDDEN:
            assert word.encode() not in script.content
        assert len(script.content.splitlines()) <= 400


def test_the_page_has_no_inline_script_or_style_and_says_so(served: Served) -> None:
    answer = served.ask("GET", "/")
    assert answer.status == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert b"<style" not in answer.body
    assert b"style=" not in answer.body
    assert answer.body.count(b"<script") == answer.body.count(b"<script src=") + (
        answer.body.count(b'<script type="module" src=')
    )


def test_files_are_sent_once_while_they_are_the_same(served: Served) -> None:
    first = served.ask("GET", "/dashboard/app.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = served.ask("GET", "/dashboard/app.js", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert served.ask("GET", "/dashboard/app.js", if_none_match='"x"').status == 200
    for name in ("nothing.js", "..%2ffiles.py", "%2e%2e%2ffiles.py", ".", "index"):
        assert served.ask("GET", f"/dashboard/{name}").status == 404


def test_a_token_is_asked_for_kept_in_the_tab_and_forgotten(
    served: Served, stage: Stage, tabs: Open
) -> None:
    good = token(served, "reader-1", "read")
    tab = tabs(served)
    expect(tab.page.get_by_label("Token")).to_be_visible()
    tab.page.get_by_label("Token").fill("hw_wrong")
    tab.button("Sign in").click()
    expect(tab.page.get_by_role("alert")).to_contain_text("not known")
    tab.page.get_by_label("Token").fill(good)
    tab.button("Sign in").click()
    tab.shows("Every promise is being kept")
    expect(tab.page.locator("#side")).to_contain_text("reader-1")
    assert tab.page.evaluate("document.cookie") == ""
    assert good not in tab.page.evaluate("JSON.stringify(localStorage)")
    assert good not in tab.page.url
    tab.page.reload()
    tab.shows("Every promise is being kept")
    tab.button("Sign out").click()
    expect(tab.page.get_by_label("Token")).to_be_visible()
    assert tab.page.evaluate("sessionStorage.length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_sign_in_and_questions_are_for_everybody(
    theme: str, served: Served, stage: Stage, tabs: Open
) -> None:
    tab = tabs(served, theme=theme, is_lax=True)
    expect(tab.page.get_by_label("Token")).to_be_visible()
    found = tab.barriers()
    admin = token(served, f"admin-{theme}", "admin")
    tab = tabs(served, "/#/queue/limited", theme=theme, is_lax=True, token=admin)
    tab.button("Pause…").click()
    expect(tab.page.locator("dialog[open] h2")).to_have_text("Pause limited?")
    assert found + tab.barriers() == []


def test_a_token_that_is_revoked_is_asked_for_again(
    served: Served, stage: Stage, tabs: Open
) -> None:
    from headway.server.tokens import TokenFile

    tab = tabs(served, token=token(served, "brief", "read"))
    tab.shows("Every promise is being kept")
    TokenFile(served.data).revoke("brief")
    expect(tab.page.get_by_label("Token")).to_be_visible()


def test_a_token_that_may_not_read_is_told_so(served: Served, tabs: Open) -> None:
    made = served.make_token("worker-only", "work")
    served.until(403, "/v1/me", made)
    tab = tabs(served, token=made)
    expect(tab.page.get_by_role("alert")).to_contain_text("read is not allowed")


def test_buttons_that_a_token_may_not_use_are_not_offered(
    served: Served, stage: Stage, tabs: Open
) -> None:
    reader = token(served, "reader-2", "read")
    tab = tabs(served, "/#/queue/limited", token=reader)
    tab.shows("Limits")
    for name in CHANGING:
        tab.hides(name)
    for path in ("/#/dead/deadly", f"/#/job/{stage.dead[0]}", "/#/schedules"):
        tab.go(path)
        expect(tab.main().get_by_role("button", name="…")).to_have_count(0)
    expect(tab.page.locator("#side")).not_to_contain_text("What if")
    # The server decides by itself, whatever a page offers.
    asked = served.ask("POST", "/v1/queues/limited/pause", token=reader)
    assert asked.status == 403
    manager = token(served, "manager", "read", "manage:limited")
    tab = tabs(served, "/#/queue/limited", token=manager)
    expect(tab.button("Pause…")).to_be_visible()
    tab.hides("Block…")
    tab.go("/#/queue/held")
    tab.shows("Paused")
    for name in CHANGING:
        tab.hides(name)


def test_a_token_of_one_queue_sees_that_queue_alone(
    served: Served, stage: Stage, tabs: Open
) -> None:
    one = token(served, "limited-only", "read:limited")
    tab = tabs(served, token=one)
    tab.shows("Every promise is being kept")
    tab.go("/#/queues")
    expect(tab.page.locator("main tbody tr")).to_have_count(1)
    tab.shows("limited")
    told = served.ask("GET", "/v1/live", token=one).json
    assert {lane["queue"] for lane in told["lanes"]} == {"limited"}
    assert told["counts"]["dead"] == 0
    assert told["slots"] is None
    assert served.ask("GET", "/v1/node", token=one).status == 403
    assert served.ask("GET", "/v1/acts", token=one).status == 403
    trends = served.ask("GET", "/v1/trends", token=one).json
    assert {lane["queue"] for lane in trends["lanes"]} <= {"limited"}
    assert trends["slots"] == []


class Elsewhere(BaseHTTPRequestHandler):
    """Another site's page that means harm."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *_: object) -> None:
        return None


def test_pages_of_other_sites_can_neither_act_read_nor_frame(
    tmp_path_factory: pytest.TempPathFactory, browser: Browser
) -> None:
    with serving(tmp_path_factory.mktemp("open") / "data") as mine:
        _check_other_site(mine, browser)


def _check_other_site(mine: Served, browser: Browser) -> None:
    stage = Stage(mine)
    stage.enqueue("mail", {"kind": "a"})
    site = HTTPServer(("127.0.0.1", 0), Elsewhere)
    Thread(target=site.serve_forever, daemon=True).start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{site.server_port}/")
    done = page.evaluate(
        """async url => {
          const told = [];
          for (const [method, path] of [["POST", "/v1/queues/mail/pause"],
              ["POST", "/v1/queues/mail/purge"], ["DELETE", "/v1/jobs/p1_1"]]) {
            for (const mode of ["no-cors", "cors"]) {
              try { await fetch(url + path, {method, mode, credentials: "include"}); }
              catch { told.push("refused"); }
            }
          }
          const form = document.createElement("form");
          const frame = document.createElement("iframe");
          frame.name = "there";
          document.body.append(frame, form);
          Object.assign(form, {method: "post", target: "there",
            action: url + "/v1/queues/mail/pause", enctype: "text/plain"});
          form.submit();
          await new Promise(done => { frame.onload = done; });
          try { await fetch(url + "/v1/queues"); told.push("read"); } catch { }
          return told;
        }""",
        mine.address,
    )
    assert "read" not in done
    shown = stage.ask("GET", "/v1/queues/mail")
    assert not shown["is_paused"]
    assert shown["counts"]["ready"] == 1
    framed = page.evaluate(
        """url => new Promise(done => {
          const frame = document.createElement("iframe");
          frame.onload = () => {
            try { done(frame.contentDocument === null ? "away" : "empty"); }
            catch { done("away"); }
          };
          frame.src = url;
          document.body.append(frame);
        })""",
        mine.address,
    )
    frames = [one for one in page.frames if one.url.startswith(mine.address)]
    assert framed == "away"
    assert all("Headway" not in one.content() for one in frames)
    context.close()
    site.shutdown()
    site.server_close()
