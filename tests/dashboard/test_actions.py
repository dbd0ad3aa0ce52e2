"""Everything that can be done is asked for first, done, and written down."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.dashboard.conftest import Open, serving
from tests.dashboard.stage import BIG, SCHEDULE, Stage
from tests.dashboard.tab import Tab


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with serving(tmp_path_factory.mktemp("actions") / "data") as served:
        yield Stage(served)


def acts(stage: Stage) -> list[tuple[str, str, str]]:
    """What was done, to which queue, and why; the newest first."""
    found = stage.ask("GET", "/v1/acts")["acts"]
    return [(one["what"], one["queue"], one["reason"]) for one in found]


def state(stage: Stage, job: str) -> str:
    return str(stage.ask("GET", f"/v1/jobs/{job}")["state"])


def test_a_queue_is_paused_blocked_purged_and_let_go(stage: Stage, tabs: Open) -> None:
    stage.enqueue("mail", {"kind": "a"}, {"kind": "b"})
    tab = tabs(stage.served, "/#/queue/mail")
    tab.button("Pause…").click()
    tab.answer("Pause", reason="a partner is down")
    tab.says("mail is paused")
    tab.shows("a partner is down")
    tab.button("Block…").click()
    tab.answer("Block", reason="mine")
    tab.shows("Blocked by anybody")
    assert stage.ask("GET", "/v1/queues/mail")["is_blocked"]
    tab.button("Resume").click()
    tab.button("Unblock").click()
    expect(tab.button("Block…")).to_be_visible()
    tab.button("Purge…").click()
    expect(tab.page.locator("dialog")).to_contain_text("2 jobs")
    tab.answer("Purge", reason="a mistake")
    tab.says("The purge has begun")
    tab.shows("finished")
    assert stage.ask("GET", "/v1/queues/mail")["counts"]["ready"] == 0
    assert acts(stage) == [
        ("dead_purge", "mail", "a mistake"),
        ("queues_unblock", "mail", ""),
        ("queues_resume", "mail", ""),
        ("queues_block", "mail", "mine"),
        ("queues_pause", "mail", "a partner is down"),
    ]


def test_rules_of_a_queue_and_of_a_tenant_are_changed(stage: Stage, tabs: Open) -> None:
    stage.enqueue("mail", {"tenant": "acme"}, {"tenant": "globex"})
    tab = tabs(stage.served, "/#/queue/mail")
    tab.button("Change…").click()
    tab.answer("Change", rules='{"slo": "7s"}')
    tab.says("The new rules hold")
    assert stage.ask("GET", "/v1/queues/mail")["rules"]["slo"] == "7s"
    tab.button("Rules of acme").click()
    tab.answer("Set", weight="3", cap="2")
    tab.says("The rules of acme hold")
    (told,) = stage.ask("GET", "/v1/queues/mail/tenants")["tenants"]
    assert (told["tenant"], told["weight"], told["cap"]) == ("acme", 3, 2)
    tab.button("Change…").click()
    tab.page.locator("dialog [name=rules]").fill('{"slo": "long"}')
    tab.page.locator("dialog").get_by_role("button", name="Change").click()
    expect(tab.page.locator("dialog [role=alert]")).to_contain_text("slo")
    tab.button("Leave it").click()
    expect(tab.page.locator("dialog")).to_have_count(0)


def test_a_job_is_cancelled_only_when_that_is_said_twice(
    stage: Stage, tabs: Open
) -> None:
    (job,) = stage.enqueue("mail", {"kind": "a"})
    stage.indexed()
    tab = tabs(stage.served, f"/#/job/{job}")
    tab.button("Cancel…").click()
    tab.button("Leave it").click()
    tab.button("Cancel…").click()
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("dialog")).to_have_count(0)
    assert state(stage, job) == "ready"
    tab.button("Cancel…").click()
    tab.answer("Cancel the job", reason="not wanted")
    tab.says("It is cancelled")
    tab.shows("cancelled")
    assert acts(stage) == [("jobs_cancel", "mail", "not wanted")]


def test_a_dead_letter_is_edited_and_redriven_to_the_last_digit(
    stage: Stage, tabs: Open
) -> None:
    stage.die(1)
    stage.indexed()
    (job,) = stage.dead
    tab = tabs(stage.served, f"/#/job/{job}")
    tab.shows(str(BIG))
    tab.button("Edit and redrive…").click()
    text = tab.page.locator("dialog [name=payload]")
    assert f'"n": {BIG}' in text.input_value()
    tab.answer(
        "Redrive", payload=f'{{"n": {BIG}, "to": "ada"}}', reason="a typing error"
    )
    tab.shows("changed since it was sent")
    tab.shows("redriven, with fresh attempts")
    (given,) = stage.lease("deadly")
    assert given["payload"] == {"n": BIG, "to": "ada"}
    assert given["attempt"] == 1
    assert acts(stage) == [("dead_redrive_one", "deadly", "a typing error")]


def test_dead_letters_go_by_group_by_filter_and_one_by_one(
    stage: Stage, tabs: Open
) -> None:
    stage.die(4)
    stage.indexed()
    tab = tabs(stage.served, f"/#/job/{stage.dead[0]}")
    tab.button("Discard…").click()
    tab.answer("Discard", reason="one")
    tab.says("It is being discarded")
    tab.go(f"/#/job/{stage.dead[1]}")
    # Or it would be the button of the page before, of a job that is gone.
    tab.shows(stage.dead[1])
    tab.button("Redrive…").click()
    tab.answer("Redrive")
    tab.says("It is back in its queue")
    stage.indexed()
    tab.go("/#/dead/deadly")
    tab.row("<img").get_by_role("button", name="Redrive…").click()
    expect(tab.page.locator("dialog h2")).to_have_text("Redrive 2 dead letters?")
    tab.answer("Redrive", rate="1000")
    tab.says("It has begun")
    tab.shows("There are none")
    stage.die(1)
    tab.go("/#/dead/deadly?text=nothing%20has%20this")
    tab.shows("There are none")
    tab.go("/#/dead/deadly")
    tab.button("Discard all…").click()
    expect(tab.page.locator("dialog h2")).to_have_text("Discard 1 dead letter?")
    tab.answer("Discard")
    tab.shows("There are none")
    assert stage.ask("GET", "/v1/queues/deadly")["counts"]["dead"] == 0
    done = [what for what, _, _ in acts(stage)]
    assert done == ["dead_discard", "dead_redrive", "dead_redrive_one", "dead_discard"]


def test_an_operation_that_takes_its_time_is_stopped(stage: Stage, tabs: Open) -> None:
    stage.enqueue("mail", {"kind": "a"}, {"kind": "b"})
    stage.ask("POST", "/v1/queues/mail/purge", {"rate": 0.001})
    tab = tabs(stage.served, "/#/queue/mail")
    tab.button("Stop…").click()
    tab.answer("Stop", reason="too many")
    tab.says("It has stopped")
    assert acts(stage)[0] == ("operations_stop", "mail", "too many")


def test_a_waiting_job_is_answered_by_hand(stage: Stage, tabs: Open) -> None:
    stage.set()
    tab = tabs(stage.served, "/#/waiting")
    tab.button(f"Reply to {stage.waiting}").click()
    tab.answer("Reply", payload='{"approved": true}')
    tab.says("The reply is given")
    tab.shows("No job waits for a reply")
    (went_on,) = stage.lease("asking")
    assert went_on["reply"] == {"approved": True}
    assert acts(stage)[0] == ("work_reply", "asking", "by hand")


def test_a_schedule_is_paused_run_and_removed(stage: Stage, tabs: Open) -> None:
    stage.set()
    tab = tabs(stage.served, "/#/schedules")
    tab.button("Pause").click()
    expect(tab.row(SCHEDULE)).to_contain_text("paused")
    tab.button("Resume").click()
    tab.button("Run now…").click()
    tab.answer("Run now")
    tab.says("It is job p1_")
    assert stage.ask("GET", "/v1/queues/ticking")["counts"]["ready"] == 1
    tab.button("Remove…").click()
    tab.answer("Remove", reason="over")
    tab.shows("There is no schedule")
    done = [what for what, _, _ in acts(stage)]
    assert done[:4] == [
        "schedules_drop",
        "schedules_run_now",
        "schedules_resume",
        "schedules_pause",
    ]


def test_what_if_draws_what_would_come_of_it(stage: Stage, tabs: Open) -> None:
    tab: Tab = tabs(stage.served, "/#/what-if")
    tab.page.get_by_label("Minutes").fill("1")
    tab.page.get_by_label("Worker slots").fill("40")
    tab.button("Simulate").click()
    tab.shows("Every promise would be kept")
    expect(tab.page.locator("main svg.chart")).to_be_visible()
    tab.page.get_by_label("Worker slots").fill("5")
    tab.button("Simulate").click()
    tab.shows("of the promises would be kept")
    tab.page.locator("summary").click()
    tab.page.get_by_label("The scenario as TOML").fill("duration = 'long'")
    tab.button("Simulate").click()
    expect(tab.page.get_by_role("alert")).to_contain_text("duration")
