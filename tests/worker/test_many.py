"""Many calls at once: streamed, batch by batch, and gone on with where they failed."""

import asyncio
import io
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import headway
from headway import testing
from headway.client.errors import Unreachable
from headway.core.errors import BadValue, QueueFull
from headway.core.spec import JobSpec
from headway.wire.values import BATCH_MAX
from headway.worker import many
from headway.worker.many import EnqueuedMany, EnqueueFailed
from headway.worker.results import Enqueued
from tests.worker.places import Place

MANY = 20_000


def make(url: str) -> tuple[headway.App, Any]:
    app = headway.App(url)

    @app.job(queue="q")
    def one(number: int) -> None:
        """Nobody runs it."""

    return app, one


def test_many_calls_of_a_generator_are_sent_as_they_come(place: Place) -> None:
    app, one = make(place.url)
    taken = accepted = 0
    ahead: list[int] = []

    def calls() -> Iterator[tuple[int]]:
        nonlocal taken
        for number in range(MANY):
            taken += 1
            ahead.append(taken - accepted)
            yield (number,)

    def told(count: int) -> None:
        nonlocal accepted
        accepted = count

    jobs = one.enqueue_many(calls(), progress=told)
    app.close()
    assert len(jobs) == accepted == MANY
    assert max(ahead) <= BATCH_MAX + 1
    assert place.counts("q")["ready"] == MANY
    assert len(set(jobs)) == MANY


def test_ids_of_many_jobs_take_little_room() -> None:
    jobs: EnqueuedMany[None] = EnqueuedMany(_text)
    for first in range(1, 1_000_000, 1_000):
        jobs.add([f"p1_{number}" for number in range(first, first + 1_000)])
    assert len(jobs._runs) == 1
    assert (jobs[0], jobs[999_999], jobs[-1]) == ("p1_1", "p1_1000000", "p1_1000000")
    assert jobs[5:8] == ["p1_6", "p1_7", "p1_8"]
    with pytest.raises(IndexError):
        jobs[1_000_000]


@pytest.mark.parametrize(
    "ids",
    [
        ["p1_9", "p1_10", "p1_11", "p1_3", "p1_4", "p1_4", "p2_5"],
        ["7", "8", "x", "y1", "y02", "y03", "y", "", "9"],
        ["a1_0", "a1_1", "a1_00", "a1_99999999999999999999", "a1_2"],
        ["é٣", "é٤", "\n1", "\n2"],
    ],
)
def test_ids_come_back_as_they_were(ids: list[str]) -> None:
    jobs: EnqueuedMany[None] = EnqueuedMany(_text)
    jobs.add(ids[:2])
    jobs.add(ids[2:])
    assert list(jobs) == ids
    assert [jobs[place - len(ids)] for place in range(len(ids))] == ids
    assert isinstance(jobs[0], Enqueued)


def _text(job: str) -> Enqueued[None]:
    return Enqueued(job, bytes, lambda: pytest.fail("nobody asks"))


def test_calls_may_come_from_an_async_generator(place: Place) -> None:
    app, one = make(place.url)

    async def calls() -> AsyncIterator[dict[str, int]]:
        for number in range(2_500):
            yield {"number": number}

    async def main() -> int:
        told: list[int] = []
        jobs = await one.aenqueue_many(calls(), progress=told.append)
        assert told == [1_000, 2_000, 2_500]
        await app.aclose()
        return len(jobs)

    assert asyncio.run(main()) == 2_500
    assert place.counts("q")["ready"] == 2_500


class Broken:
    """A port whose answers are lost from some batch on, once it has sent that one."""

    def __init__(self, port: Any, good: int) -> None:
        self._port = port
        self._good = good

    def enqueue(self, queue: str, specs: Sequence[JobSpec]) -> list[str]:
        ids: list[str] = self._port.enqueue(queue, specs)
        self._good -= 1
        if self._good < 0:
            raise Unreachable("the answer was lost")
        return ids


def test_a_failure_midway_says_how_many_and_goes_on_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, one = make(place.url)
    real = app.ports.blocking()
    monkeypatch.setattr(app.ports, "blocking", lambda: Broken(real, 2))
    with pytest.raises(EnqueueFailed, match=r"^2000 jobs were accepted") as failed:
        one.enqueue_many((n,) for n in range(4_500))
    assert failed.value.count == len(failed.value.accepted) == 2_000
    assert isinstance(failed.value.__cause__, Unreachable)
    assert place.counts("q")["ready"] == 3_000  # The third batch came in, unheard.
    monkeypatch.undo()
    jobs = one.enqueue_many(((n,) for n in range(4_500)), resume=failed.value)
    app.close()
    assert len(jobs) == len(set(jobs)) == 4_500
    assert place.counts("q")["ready"] == 4_500


def test_a_first_batch_whose_answer_is_lost_can_be_resumed_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, one = make(place.url)
    real = app.ports.blocking()
    monkeypatch.setattr(app.ports, "blocking", lambda: Broken(real, 0))
    with pytest.raises(EnqueueFailed) as failed:
        one.enqueue_many([(1,), (2,)])
    assert failed.value.count == 0
    monkeypatch.undo()
    assert len(one.enqueue_many([(1,), (2,)], resume=failed.value)) == 2
    app.close()
    assert place.counts("q")["ready"] == 2


def test_named_calls_can_be_sent_again_as_a_whole(place: Place) -> None:
    app, one = make(place.url)
    named = one.options(key="import-7")
    assert list(named.enqueue_many([(1,), (2,)])) == list(
        named.enqueue_many([(1,), (2,)])
    )
    by_number = one.options(key=lambda number: f"number-{number}")
    first = by_number.enqueue_many([(1,), (2,)])
    assert by_number.enqueue(2) == first[1]
    app.close()
    assert place.counts("q")["ready"] == 4


def test_what_is_refused_before_anything_was_accepted_is_told_as_it_is(
    place: Place,
) -> None:
    app, one = make(place.url)
    app.configure(headway.QueueConfig(name="q", max_length=1_500))
    for wrong in ([("text",)], [5]):
        with pytest.raises(BadValue):
            one.enqueue_many(wrong)
    with pytest.raises(EnqueueFailed) as failed:
        one.enqueue_many((n,) for n in range(3_000))
    assert failed.value.count == 1_000
    assert isinstance(failed.value.__cause__, QueueFull)
    with pytest.raises(EnqueueFailed, match=r"^1000 jobs"):
        one.enqueue_many(
            [*((n,) for n in range(1_000)), ("text",)], resume=failed.value
        )
    with pytest.raises(QueueFull):
        one.enqueue_many((n,) for n in range(900))
    app.close()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_bar_is_shown_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := Screen())
    app, one = make("memory:")
    with testing.recording(app):
        one.enqueue_many([(n,) for n in range(1_200)], progress=True)
    assert ("1200/1200" in screen.getvalue()) == is_terminal
    assert bool(screen.getvalue()) == is_terminal


def test_large_payloads_make_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "BATCH_BYTES", 1_000)
    app = headway.App("memory:")

    @app.job
    def text(what: str) -> None:
        """Nobody runs it."""

    told: list[int] = []
    with testing.recording(app):
        text.enqueue_many([("x" * 600,)] * 5, progress=told.append)
    assert told == [2, 4, 5]


@pytest.mark.long
def test_a_million_calls_become_a_million_jobs(tmp_path: Path) -> None:
    app, one = make(f"sqlite:///{tmp_path / 'jobs.db'}")
    jobs = one.enqueue_many((n,) for n in range(1_000_000))
    app.close()
    assert len(jobs) == 1_000_000
    with headway.open(tmp_path / "jobs.db") as queue:
        assert queue.counts("q").ready == 1_000_000
