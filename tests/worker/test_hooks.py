"""Middleware: hooks around enqueue, run and retry, none of which can lose a job."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

import headway
from headway import testing
from headway.core.errors import BadValue
from headway.wire.work import Leased
from headway.worker.hooks import Failing, Middleware, Sending, Settlement
from tests.worker.places import Place, is_empty, until, working

told: ContextVar[str] = ContextVar("told", default="nothing")


class Noting(Middleware):
    """Writes down what it sees."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name = name
        self._notes = notes

    def enqueue(self, sending: Sending) -> Iterator[None]:
        self._notes.append(f"{self._name} sends {len(sending.specs)}")
        sending.add_headers({self._name: "was here"})
        yield
        self._notes.append(f"{self._name} sent {len(sending.ids)}")

    def run(self, job: Leased) -> Iterator[None]:
        self._notes.append(f"{self._name} starts {job.kind}")
        told.set(self._name)
        try:
            yield
        except ValueError as error:
            self._notes.append(f"{self._name} sees {error}")
            raise
        self._notes.append(f"{self._name} ends {job.kind}")


class Awaiting(Middleware):
    """The same in its async form."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    async def run(self, job: Leased) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        self._notes.append(f"awaits {job.kind}")
        yield
        await asyncio.sleep(0)
        self._notes.append(f"awaited {job.kind}")


@pytest.mark.parametrize("is_async", [False, True])
def test_hooks_stand_around_enqueue_and_run_in_their_order(
    place: Place, is_async: bool
) -> None:
    app = headway.App(place.url)
    notes: list[str] = []

    def work() -> None:
        headers = headway.current_job().headers
        notes.append(f"{told.get()} {sorted(headers)}")  # type: ignore[arg-type]

    async def awork() -> None:
        work()

    app.use(Noting("outer", notes))
    handler = app.job(kind="work", headers={"own": "1"})(awork if is_async else work)
    app.use(Awaiting(notes))
    app.use(Noting("inner", notes))
    handler.enqueue()
    with working(app):
        until(is_empty(place, "default"))
    assert notes == [
        *("outer sends 1", "inner sends 1", "inner sent 1", "outer sent 1"),
        *("outer starts work", "awaits work", "inner starts work"),
        "inner ['inner', 'outer', 'own']",
        *("inner ends work", "awaited work", "outer ends work"),
    ]


def test_every_way_to_enqueue_passes_the_hooks() -> None:
    app = headway.App("memory:")
    notes: list[str] = []
    app.use(Noting("m", notes))

    @app.job
    def work(number: int = 0) -> None:
        """Does nothing."""

    async def awaited() -> None:
        await work.aenqueue()
        await work.aenqueue_many([(1,), (2,), (3,)])

    with testing.recording(app) as recorder:
        work.options(delay="1s").enqueue()
        work.enqueue_many([(1,), (2,)])
        asyncio.run(awaited())
    counts = [int(note.rpartition(" ")[2]) for note in notes]
    assert counts == [1, 1, 2, 2, 1, 1, 3, 3]
    assert {job.spec.headers["m"] for job in recorder.jobs if job.spec.headers} == {
        "was here"
    }


class Refusing(Middleware):
    def __init__(self, when: str) -> None:
        self._when = when

    def enqueue(self, sending: Sending) -> Iterator[None]:
        if self._when == "before":
            raise PermissionError("not today")
        yield
        raise PermissionError("too late")


class Swallowing(Middleware):
    """Keeps every error to itself, or tries to."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def enqueue(self, sending: Sending) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.seen.append(type(error).__name__)

    def run(self, job: Leased) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.seen.append(type(error).__name__)


def test_error_before_an_enqueue_refuses_it() -> None:
    app = headway.App("memory:")
    swallowing = Swallowing()
    app.use(swallowing)
    app.use(Refusing("before"))
    work = app.job(kind="work")(print)
    with testing.recording(app) as recorder:
        with pytest.raises(PermissionError, match="not today"):
            work.enqueue()
        with pytest.raises(PermissionError, match="not today"):
            work.enqueue_many([(), ()])
    assert recorder.jobs == []
    assert swallowing.seen == ["PermissionError"] * 2


def test_error_after_an_enqueue_is_logged_and_its_ids_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = headway.App("memory:")
    app.use(Refusing("after"))
    work = app.job(kind="work")(print)
    with testing.recording(app) as recorder:
        assert work.enqueue() == recorder.jobs[0].id
    assert "too late" in caplog.text


def test_refusal_of_the_queue_comes_through_a_hook_that_keeps_it() -> None:
    app = headway.App("memory:")
    swallowing = Swallowing()
    app.use(swallowing)
    work = app.job(kind="work", queue="q")(print)
    with app:
        app.configure(headway.QueueConfig(name="q", max_length=1))
        work.enqueue()
        with pytest.raises(headway.RuleBroken):
            work.enqueue()
    assert len(swallowing.seen) == 1


def test_hook_changes_no_number_of_jobs() -> None:
    class Doubling(Middleware):
        def enqueue(self, sending: Sending) -> Iterator[None]:
            sending.specs = sending.specs * 2
            yield

    app = headway.App("memory:")
    app.use(Doubling())
    work = app.job(kind="work")(print)
    with testing.recording(app) as recorder, pytest.raises(BadValue):
        work.enqueue()
    assert recorder.jobs == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_error_of_a_hook_around_a_run_is_the_handlers_failure(when: str) -> None:
    class Breaking(Middleware):
        def run(self, job: Leased) -> Iterator[None]:
            if when == "before":
                raise ConnectionError("no session")
            yield
            raise ConnectionError("no session")

    app = headway.App("memory:")
    if when == "before":
        app.use(Swallowing())
    app.use(Breaking())
    ran: list[int] = []

    @app.job(retry=headway.Fixed(0), attempts=2)
    def work() -> None:
        ran.append(headway.current_job().attempt)

    with app:
        work.enqueue()
        app.work(until_empty=True)
        (dead,) = _dead(app)
    assert dead.startswith("ConnectionError: no session")
    assert ran == ([] if when == "before" else [1, 2])


def test_hook_that_keeps_an_error_does_not_complete_the_job() -> None:
    app = headway.App("memory:")
    swallowing = Swallowing()
    app.use(swallowing)

    @app.job(retry=headway.GiveUp())
    def work() -> None:
        raise ValueError("bad")

    with app:
        work.enqueue()
        app.work(until_empty=True)
        (dead,) = _dead(app)
    assert dead.startswith("ValueError: bad")
    assert swallowing.seen == ["ValueError"]


def test_timeout_of_a_thread_is_seen_by_hooks() -> None:
    app = headway.App("memory:")
    swallowing = Swallowing()
    app.use(swallowing)
    gate = threading.Event()

    @app.job(timeout="10ms", retry=headway.GiveUp())
    def work() -> None:
        gate.wait()

    with app:
        work.enqueue()
        app.work(until_empty=True)
    gate.set()
    assert swallowing.seen == ["TimedOut"]


def test_hook_around_a_retry_sees_what_was_decided(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Any] = []

    class Watching(Middleware):
        def retry(self, failing: Failing) -> Iterator[None]:
            seen.append(failing.failure)
            yield
            bury = failing.failure is not None and failing.failure.bury
            seen.append((str(failing.error), failing.job.attempt, bury))

    class Broken(Middleware):
        def retry(self, failing: Failing) -> Iterator[None]:
            if failing.job.attempt == 1:
                raise KeyError("before")
            yield
            raise KeyError("after")

    app = headway.App("memory:")
    app.use(Watching())
    app.use(Broken())

    def after(job: Leased, error: BaseException, attempt: int) -> Any:
        return headway.Retry(in_=0) if attempt < 3 else headway.Bury("enough")

    @app.job(retry=after)
    def work() -> None:
        raise ValueError("bad")

    with app:
        work.enqueue()
        app.work(until_empty=True)
        (dead,) = _dead(app)
    assert dead.startswith("enough\nValueError: bad")
    assert seen[::2] == [None] * 3
    assert seen[1::2] == [("bad", 1, False), ("bad", 2, False), ("bad", 3, True)]
    assert caplog.text.count("a hook of a retry failed") == 3


def test_middleware_says_something_and_hooks_are_generators() -> None:
    class Plain:
        def enqueue(self, sending: Sending) -> Iterator[None]:
            sending.add_headers({"half": "of it"})
            yield

        def run(self, job: Leased) -> None:
            """No generator."""

    app = headway.App("memory:")
    work = app.job(kind="work")(print)
    with pytest.raises(BadValue, match="generator"):
        app.use(Plain())  # type: ignore[arg-type]
    with testing.recording(app) as recorder:
        work.enqueue()
    assert recorder.jobs[0].spec.headers is None
    with pytest.raises(BadValue, match="none of enqueue"):
        app.use(Middleware())


def test_hook_around_a_settlement_sees_what_is_told_and_stops_none_of_it(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[str, int]] = []

    class Watching(Middleware):
        def settle(self, settlement: Settlement) -> Iterator[None]:
            seen.append((settlement.verb, len(settlement.tokens)))
            yield

    class Broken(Middleware):
        def settle(self, settlement: Settlement) -> Iterator[None]:
            if settlement.verb == "ack":
                raise KeyError("before")
            yield
            raise KeyError("after")

    app = headway.App(place.url)
    app.use(Broken())
    app.use(Watching())

    @app.job
    def done() -> None:
        """Is done."""

    @app.job(retry=headway.GiveUp())
    def failing() -> None:
        raise ValueError

    @app.job
    def asking() -> Any:
        return headway.wait_for("k", timeout="1h")

    with working(app):
        done.enqueue()
        failing.enqueue()
        asking.enqueue()
        until(lambda: place.counts("default")["waiting"] == 1)
        app.reply("default", "k", 1)
        until(is_empty(place, "default"))
    assert sorted(set(seen)) == [("ack", 1), ("nack", 1), ("wait", 1)]
    assert place.counts("default")["dead"] == 1
    assert caplog.text.count("a hook of a settlement failed") >= 3


def test_example_of_the_guide_carries_an_id_into_the_handler() -> None:
    guide = (Path(__file__).resolve().parents[2] / "docs" / "sdk.md").read_text()
    (example,) = [
        block.split("```")[0]
        for block in guide.split("```python\n")[1:]
        if "class Requests" in block.split("```")[0]
    ]
    app = headway.App("memory:")
    request_id = ContextVar("request_id", default="none")
    exec(
        compile(example, "sdk.md", "exec"),
        {"__name__": "shop", "app": app, "request_id": request_id},
    )
    seen: list[str] = []
    work = app.job(kind="work")(lambda: seen.append(request_id.get()))
    with app:
        request_id.set("r-17")
        work.enqueue()
        request_id.set("another")
        app.work(until_empty=True)
    assert seen == ["r-17"]


def _dead(app: headway.App) -> list[str]:
    """The errors of all dead letters of the app's queue in memory."""
    link = app.ports.blocking().link  # type: ignore[attr-defined]
    jobs = headway.Headway(link).operate.dead("default").jobs
    return [job.errors[-1].text for job in jobs]
