"""Handlers fail and time out: each harms its own job only, and logic says what next."""

import asyncio
import threading
from typing import Any

import pytest

import headway
from tests.worker.places import PATIENCE_S, Place, is_empty, until, working


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("is_async", [False, True])
def test_failing_handler_is_tried_again_and_buried_with_its_traceback(
    place: Place, error: type[BaseException], is_async: bool
) -> None:
    app = headway.App(place.url)
    tries: list[int] = []

    def failing(number: int) -> None:
        tries.append(headway.current_job().attempt)
        raise error(f"number {number}")

    async def awaited(number: int) -> None:
        failing(number)

    handler = app.job(kind="bad", retry=headway.Fixed(0), attempts=3)(
        awaited if is_async else failing
    )

    @app.job
    def good() -> None:
        tries.append(0)

    handler.enqueue(17)
    good.enqueue()
    with working(app):
        until(lambda: place.counts("default")["dead"] == 1)
        until(is_empty(place, "default"))
    assert sorted(tries) == [0, 1, 2, 3]
    (dead,) = place.dead("default")
    assert dead.text.startswith(f"{error.__name__}: number 17\nTraceback")
    assert "in failing" in dead.text
    assert "headway/worker" not in dead.text


def test_what_no_handler_can_take_is_buried_with_the_reason(place: Place) -> None:
    old = headway.App(place.url)
    new = headway.App(place.url)

    @old.job(queue="q", kind="gone")
    def gone() -> None:
        raise AssertionError

    @old.job(queue="q", kind="changed")
    def before(number: str) -> None:
        raise AssertionError

    @new.job(queue="q", kind="changed")
    def after(number: int) -> None:
        raise AssertionError

    gone.enqueue()
    before.enqueue("seventeen")
    old.close()
    with working(new):
        until(lambda: place.counts("q")["dead"] == 2)
    found = {dead.kind: dead for dead in place.dead("q")}
    assert "no handler for kind 'gone'" in found["gone"].text
    assert "does not fit the handler" in found["changed"].text
    assert {dead.attempt for dead in found.values()} == {1}


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (headway.Bury("the card is lost"), "the card is lost\nValueError: no"),
        (headway.GiveUp, "ValueError: no"),
        (headway.GiveUp(), "ValueError: no"),
    ],
)
def test_retry_logic_can_end_it(place: Place, verdict: Any, text: str) -> None:
    app = headway.App(place.url)

    @app.job(queue="q", retry=lambda job, error, attempt: verdict)
    def failing() -> None:
        raise ValueError("no")

    failing.enqueue()
    with working(app):
        until(lambda: place.counts("q")["dead"] == 1)
    (dead,) = place.dead("q")
    assert dead.text.startswith(text)
    assert dead.attempt == 1


def test_retry_logic_can_change_the_arguments(place: Place) -> None:
    app = headway.App(place.url)
    seen: list[tuple[str, str]] = []

    def logic(job: Any, error: BaseException, attempt: int) -> headway.Retry:
        seen.append((str(error), f"attempt {attempt}"))
        return headway.Retry(in_="0s", payload={"server": "backup"})

    @app.job(queue="q", retry=logic)
    async def send(server: str) -> None:
        if server == "main":
            raise ConnectionError(server)
        seen.append((server, "sent"))

    send.enqueue("main")
    with working(app):
        until(lambda: len(seen) == 2)
        until(is_empty(place, "q"))
    assert seen == [("main", "attempt 1"), ("backup", "sent")]
    assert place.counts("q")["dead"] == 0


def test_retry_logic_that_fails_is_told_and_the_strategy_holds(place: Place) -> None:
    app = headway.App(place.url)

    def logic(job: Any, error: BaseException, attempt: int) -> headway.Retry:
        raise LookupError("in the logic")

    @app.job(queue="q", retry=logic, attempts=1)
    def failing() -> None:
        raise ValueError("in the handler")

    failing.enqueue()
    with working(app):
        until(lambda: place.counts("q")["dead"] == 1)
    (dead,) = place.dead("q")
    assert "in the handler" in dead.text
    assert "in the logic" in dead.text


def test_awaited_handler_is_cancelled_at_its_timeout(place: Place) -> None:
    app = headway.App(place.url)
    ended: list[str] = []

    @app.job(queue="q", timeout="100ms", retry=headway.GiveUp())
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    endless.enqueue()
    with working(app):
        until(lambda: place.counts("q")["dead"] == 1)
        until(lambda: bool(ended))
    (dead,) = place.dead("q")
    assert dead.text == "timed out: ran for longer than 100ms"


def test_blocking_handler_that_times_out_is_replaced(place: Place) -> None:
    app = headway.App(place.url)
    release = threading.Event()
    seen: list[str] = []

    @app.job(queue="q", timeout="100ms", retry=headway.GiveUp())
    def stuck() -> None:
        release.wait(PATIENCE_S)

    @app.job(queue="q")
    def next_one() -> None:
        seen.append("ran")

    stuck.enqueue()
    with working(app, concurrency=1):
        until(lambda: place.counts("q")["dead"] == 1)
        next_one.enqueue()
        until(lambda: seen == ["ran"])
        release.set()
    (dead,) = place.dead("q")
    assert dead.text.startswith("timed out: ran for longer than 100ms; its thread")


def test_failure_that_the_queue_refuses_does_not_hold_others_up(place: Place) -> None:
    """One logic asks for a delay that no queue grants: its job comes back later."""
    app = headway.App(place.url)
    tries: list[str] = []

    def logic(job: Any, error: BaseException, attempt: int) -> headway.Retry:
        return headway.Retry(in_="1000000000000d" if str(error) == "odd" else "0s")

    @app.job(queue="q", retry=logic, attempts=2)
    def failing(text: str) -> None:
        tries.append(text)
        raise ValueError(text)

    failing.enqueue_many([("odd",), ("plain",)])
    with working(app, lease="2s"):
        until(lambda: place.counts("q")["dead"] == 2)
    assert sorted(tries) == ["odd", "odd", "plain", "plain"]
