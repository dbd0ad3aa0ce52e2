"""What handlers return, for those who asked: on a server, in a file, and in tests."""

import asyncio
import copy
import json
import pickle
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

import headway
from headway import testing
from headway.core.errors import NoResult, UnknownJob
from headway.worker.outcomes import WaitFor
from headway.worker.results import (
    Enqueued,
    JobCancelled,
    JobDied,
    ResultNotKept,
    ResultTimeout,
    ResultUnreadable,
)
from tests.worker.handlers import app as apart_app
from tests.worker.handlers import measured
from tests.worker.places import Place, ServedPlace, until, working

PATIENCE = "60s"


@dataclass
class Receipt:
    number: int
    tags: set[str]


class Odd:
    """Nothing knows how to write it."""


class Explosive:
    def model_dump(self, mode: str) -> Any:
        raise ZeroDivisionError("while it shows itself")


def make(url: str) -> headway.App:
    app = headway.App(url)

    @app.job(queue="q", result="1h", retry=headway.GiveUp())
    def charge(what: str) -> Any:
        match what:
            case "odd":
                return Odd()
            case "explosive":
                return Explosive()
            case "large":
                return "x" * 300_000
            case "twice":
                return msgspec.Raw(b'{"key": 1, "key": 2}')
            case "fails":
                raise LookupError("no such card")
            case _:
                return what

    @app.job(queue="q", result="1h")
    async def receipt(number: int) -> Receipt:
        return Receipt(number, {"paid"})

    @app.job(queue="q")
    def plain() -> int:
        return 1

    @app.job(queue="q", result="1h")
    def asks(key: str) -> str | WaitFor:
        return headway.wait_for(key, "10m")

    @app.job(queue="q", result="1h")
    def lies() -> int:
        return "text"  # type: ignore[return-value]

    return app


def of(app: headway.App, kind: str) -> Any:
    return app.handlers["q", kind]


def test_result_is_what_the_handler_returned(place: Place) -> None:
    app = make(place.url)
    with working(app):
        assert of(app, "charge").enqueue("ada").result(PATIENCE) == "ada"
        receipt = of(app, "receipt").enqueue(7)
        assert receipt.result(PATIENCE) == Receipt(7, {"paid"})
        again = of(app, "receipt").enqueued(str(receipt))
        assert again.result(0) == Receipt(7, {"paid"})


def test_result_is_awaited(place: Place) -> None:
    app = make(place.url)

    async def main() -> list[Any]:
        jobs = [await of(app, "receipt").aenqueue(number) for number in range(3)]
        try:
            return list(await asyncio.gather(*(job.aresult(PATIENCE) for job in jobs)))
        finally:
            await app.ports.aclose()

    with working(app):
        found = asyncio.run(main())
    assert [one.number for one in found] == [0, 1, 2]


def test_nothing_is_kept_unless_it_is_asked_for(place: Place) -> None:
    app = make(place.url)
    plain = of(app, "plain")
    with working(app):
        with pytest.raises(NoResult):
            plain.enqueue().result(PATIENCE)
        assert plain.options(result="1h").enqueue().result(PATIENCE) == 1
        with pytest.raises(UnknownJob):
            plain.enqueued("elsewhere").result(0)


@pytest.mark.parametrize("what", ["odd", "explosive", "large"])
def test_a_result_that_cannot_be_kept_completes_its_job(
    place: Place, what: str
) -> None:
    app = make(place.url)
    with working(app):
        good, bad = of(app, "charge").enqueue_many([("good",), (what,)])
        with pytest.raises(ResultNotKept, match="is done, but"):
            bad.result(PATIENCE)
        assert good.result(PATIENCE) == "good"
    assert place.dead("q") == []


def test_a_result_that_a_server_refuses_completes_its_job(tmp_path: Path) -> None:
    """A body that says a key twice is not read: with it go all acks beside it."""
    with ServedPlace(tmp_path / "data") as place:
        app = make(place.url)
        good, bad = of(app, "charge").enqueue_many([("good",), ("twice",)])
        with working(app):
            with pytest.raises(ResultNotKept, match="was refused"):
                bad.result(PATIENCE)
            assert good.result(PATIENCE) == "good"


def test_a_result_that_is_not_as_the_hint_says_is_told_so(place: Place) -> None:
    app = make(place.url)
    with working(app), pytest.raises(ResultUnreadable, match="int"):
        of(app, "lies").enqueue().result(PATIENCE)


def test_dead_and_cancelled_jobs_raise_what_became_of_them(place: Place) -> None:
    app = make(place.url)
    with working(app):
        with pytest.raises(JobDied, match="LookupError: no such card") as died:
            of(app, "charge").enqueue("fails").result(PATIENCE)
        assert died.value.errors[-1].reason == "failed"
        later = of(app, "charge").options(delay="1h").enqueue("later")
        place.cancel(later)
        with pytest.raises(JobCancelled):
            later.result(PATIENCE)


def test_a_wait_that_is_over_can_be_asked_again(place: Place) -> None:
    app = make(place.url)
    job = of(app, "charge").enqueue("ada")
    for timeout in (0, "20ms"):
        with pytest.raises(ResultTimeout, match="was still ready") as over:
            job.result(timeout)
        assert isinstance(over.value, TimeoutError)
        assert over.value.id == job
    with working(app):
        assert job.result() == "ada"


def test_who_waits_hears_of_it_when_the_job_ends(place: Place) -> None:
    app = make(place.url)
    job = of(app, "charge").enqueue("ada")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(job.result(PATIENCE)))
    thread.start()
    with working(app):
        thread.join(60)
    assert found == ["ada"]


def test_a_reply_is_the_result_of_a_job_that_it_completes(place: Place) -> None:
    app = make(place.url)
    with working(app):
        job = of(app, "asks").enqueue("order-1")
        until(lambda: place.counts("q")["waiting"] == 1)
        app.reply("q", "order-1", "paid")
        assert job.result(PATIENCE) == "paid"


def test_a_process_of_its_own_tells_its_result(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_NOTES", str(tmp_path / "notes"))
    app = headway.App(place.url)
    app.handlers.update(apart_app.handlers)
    own, apart_app.ports = apart_app.ports, app.ports
    try:
        with working(app, queues=("apart",)):
            assert measured.enqueue(5).result(PATIENCE) == {"number": 5}
            with pytest.raises(ResultNotKept):
                measured.enqueue(-1).result(PATIENCE)
    finally:
        apart_app.ports = own


def test_an_enqueued_job_is_the_text_of_its_id() -> None:
    with testing.in_memory(headway.App("memory:")) as app:

        @app.job(result="1h")
        def one() -> int:
            return 1

        job = one.enqueue()
        assert isinstance(job, str)
        assert {str(job): 1}[job] == 1
        assert json.loads(json.dumps([job])) == [str(job)]
        assert msgspec.json.decode(msgspec.json.encode({"job": str(job)}))
        for plain in (pickle.loads(pickle.dumps(job)), copy.deepcopy(job)):
            assert type(plain) is str
            assert plain == job


inline_app = headway.App("http://127.0.0.1:1")


@inline_app.job(result="1h")
def double(number: int) -> int:
    return 2 * number


@inline_app.job(result="1h")
async def double_later(number: int) -> int:
    return 2 * number


@inline_app.job
def unasked(number: int) -> int:
    return number


def test_inline_jobs_have_their_results_at_once() -> None:
    with testing.inline(inline_app):
        assert double.enqueue(4).result() == 8
        assert double_later.enqueue(5).result() == 10

        async def main() -> int:
            return await (await double_later.aenqueue(6)).aresult("1s")

        assert asyncio.run(main()) == 12
        with pytest.raises(NoResult):
            unasked.enqueue(1).result()


def test_recorded_jobs_have_the_results_that_the_test_gives_them() -> None:
    with testing.recording(inline_app) as recorder:
        job = double.enqueue(4)
        with pytest.raises(ResultTimeout, match="does not run here"):
            job.result()
        recorder.results[job] = 9
        assert job.result() == 9
        with pytest.raises(NoResult):
            unasked.enqueue(1).result()


def test_memory_keeps_results_as_the_others_do() -> None:
    with testing.in_memory(inline_app) as app:
        job: Enqueued[int] = double.enqueue(21)
        app.work(until_empty=True)
        assert job.result(0) == 42
