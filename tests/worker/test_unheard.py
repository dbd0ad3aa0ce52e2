"""Attempts that end with no worker at hand: the next one asks the retry logic first."""

import asyncio
from collections.abc import Callable
from inspect import isfunction
from typing import Any

import pytest

import headway
from headway.core.errors import LeaseLost
from headway.core.spec import JobSpec
from headway.wire.work import Leased
from headway.worker.outcomes import ReplyTimedOut, TimedOut
from tests.worker.places import Place, is_empty, until, working

Seen = list[tuple[str, str, int]]
ENDINGS = [
    ("lease lost", LeaseLost),
    ("no reply", ReplyTimedOut),
    ("timed out", TimedOut),
]
endings = pytest.mark.parametrize(("how", "error"), ENDINGS)


def leave(app: headway.App, how: str, *, reply: bytes | None = None) -> None:
    """Leases the one job, and is not heard of again."""

    async def lease() -> None:
        port = app.ports.for_worker()
        lease_ms = 600_000 if how == "timed out" else 1
        if how == "no reply" or reply is not None:
            lease_ms = 600_000
        (job,) = await port.lease(["q"], 1, lease_ms=lease_ms, worker="gone")
        if how == "no reply":
            await port.wait(job.token, "key", 1)
        if reply is not None:
            await port.wait(job.token, "key", 600_000)
            await port.reply("q", "key", reply)
            await port.lease(["q"], 1, lease_ms=1)
        await port.close()

    asyncio.run(lease())


def interrupted(
    place: Place, how: str, verdict: Any, attempts: int = 5
) -> tuple[headway.App, Seen]:
    """An app whose one job's first attempt has ended so, or is about to."""
    app = headway.App(place.url)
    seen: Seen = []

    def logic(job: Leased, error: BaseException, attempt: int) -> Any:
        seen.append(("logic", type(error).__name__, attempt))
        return verdict(attempt) if isfunction(verdict) else verdict

    @app.job(queue="q", retry=logic)
    def work(route: str = "main") -> None:
        seen.append(("handler", route, headway.current_job().attempt))

    timeout_ms = 3_000 if how == "timed out" else None
    spec = JobSpec(
        kind="work",
        payload=b"{}",
        is_json=True,
        timeout_ms=timeout_ms,
        attempts_max=attempts,
    )
    app.configure(headway.QueueConfig(name="q", retry=headway.Fixed(0)))
    app.ports.blocking().enqueue("q", [spec])
    leave(app, how)
    return app, seen


@endings
@pytest.mark.parametrize("verdict", [None, headway.Retry(), headway.Retry(in_=0)])
def test_handler_runs_if_the_logic_has_nothing_against_it(
    place: Place, how: str, error: type[BaseException], verdict: Any
) -> None:
    app, seen = interrupted(place, how, verdict)
    with working(app):
        until(lambda: len(seen) == 2)
        until(is_empty(place, "q"))
    assert seen == [("logic", error.__name__, 1), ("handler", "main", 2)]
    assert place.counts("q")["dead"] == 0


@endings
@pytest.mark.parametrize("verdict", [headway.Bury("in doubt"), headway.GiveUp])
def test_logic_can_bury_it_before_it_runs_again(
    place: Place, how: str, error: type[BaseException], verdict: Any
) -> None:
    app, seen = interrupted(place, how, verdict)
    with working(app):
        until(lambda: place.counts("q")["dead"] == 1)
    assert seen == [("logic", error.__name__, 1)]
    (dead,) = place.dead("q")
    if verdict is headway.GiveUp:
        assert "lease ended" in dead.text or "time" in dead.text
    else:
        assert dead.text.startswith("in doubt\n")


@pytest.mark.parametrize("how", ["lease lost", "no reply"])
@pytest.mark.parametrize("delay", [None, "50ms"])
def test_logic_can_put_it_off_with_other_arguments_and_no_attempt_is_used(
    place: Place, how: str, delay: str | None
) -> None:
    """With two attempts the second one still runs, and the logic is asked once."""
    verdict = headway.Retry(in_=delay, payload={"route": "backup"})
    app, seen = interrupted(place, how, verdict, attempts=2)
    with working(app):
        until(lambda: len(seen) == 2)
        until(is_empty(place, "q"))
    assert seen[0][0] == "logic"
    assert seen[1:] == [("handler", "backup", 2)]
    assert place.counts("q")["dead"] == 0


def test_logic_is_asked_for_each_lost_lease_once(place: Place) -> None:
    put_off: Callable[[int], Any] = lambda attempt: headway.Retry(in_="20ms")  # noqa: E731
    app, seen = interrupted(place, "lease lost", put_off)
    with working(app):
        until(lambda: len(seen) == 2)
        until(is_empty(place, "q"))
    assert seen == [("logic", "LeaseLost", 1), ("handler", "main", 2)]


def test_logic_that_fails_lets_the_handler_run(place: Place) -> None:
    def broken(attempt: int) -> None:
        raise LookupError("in the logic")

    app, seen = interrupted(place, "lease lost", broken)
    with working(app):
        until(lambda: len(seen) == 2)
        until(is_empty(place, "q"))
    assert seen == [("logic", "LeaseLost", 1), ("handler", "main", 2)]


def test_continuation_that_was_lost_is_asked_about_and_one_that_goes_on_is_not(
    place: Place,
) -> None:
    app = headway.App(place.url)
    seen: Seen = []

    def logic(job: Leased, error: BaseException, attempt: int) -> None:
        seen.append(("logic", type(error).__name__, attempt))

    @app.job(queue="q", retry=logic)
    def work() -> object:
        seen.append(("handler", "", headway.current_job().attempt))
        return headway.wait_for("again", "10m")

    @work.on_reply
    def go_on(reply: int) -> None:
        seen.append(("goes on", str(reply), headway.current_job().attempt))

    work.enqueue()
    leave(app, "lease lost", reply=b"7")
    with working(app):
        until(is_empty(place, "q"))
        assert seen == [("logic", "LeaseLost", 1), ("goes on", "7", 2)]
        seen.clear()
        work.enqueue()
        until(lambda: place.counts("q")["waiting"] == 1)
        app.reply("q", "again", 8)
        until(is_empty(place, "q"))
    assert seen == [("handler", "", 1), ("goes on", "8", 1)]


def test_reply_after_a_lost_lease_asks_the_logic_once(place: Place) -> None:
    app = headway.App(place.url)
    seen: Seen = []

    def logic(job: Leased, error: BaseException, attempt: int) -> None:
        seen.append(("logic", type(error).__name__, attempt))

    @app.job(queue="q", retry=logic)
    def work() -> object:
        seen.append(("handler", "", headway.current_job().attempt))
        return headway.wait_for("key", "10m")

    @work.on_reply
    def go_on(reply: int) -> None:
        seen.append(("goes on", str(reply), headway.current_job().attempt))

    work.enqueue()
    leave(app, "lease lost")
    with working(app):
        until(lambda: place.counts("q")["waiting"] == 1)
        app.reply("q", "key", 8)
        until(is_empty(place, "q"))
    assert [one[0] for one in seen] == ["logic", "handler", "goes on"]
    assert seen[-1] == ("goes on", "8", 2)
