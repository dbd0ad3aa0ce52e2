"""P9 with worker processes: replies before, after, twice and never; and many at once."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import headway
from headway.core import events
from headway.core.retry import Fixed
from tests.worker.places import PATIENCE_S, ServedPlace, is_empty, until
from tests.worker.processes import Notes, Start, enqueue
from tests.worker.stories import stories

WAITING = 1_000


@pytest.fixture
def app() -> str:
    return "tests.worker.steady:app"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServedPlace]:
    with ServedPlace(tmp_path / "data") as found:
        yield found


@pytest.fixture
def asked(place: ServedPlace) -> Iterator[headway.App]:
    """Somebody outside, who replies."""
    with headway.App(place.url) as found:
        yield found


def test_a_thousand_waiting_jobs_cost_no_slot_and_keep_their_units(
    place: ServedPlace, start: Start, notes: Notes, asked: headway.App
) -> None:
    limit = headway.Concurrency(name="partner", max=WAITING)
    asked.configure(headway.QueueConfig(name="ask", limits=(limit,)))
    enqueue(place, "ask", "ask", [{"number": n} for n in range(WAITING)])
    worker = start("--queues", "ask,free", "--concurrency", "2")
    until(lambda: place.counts("ask")["waiting"] == WAITING)
    # Two slots, a thousand jobs under way: others still run, but not past the limit.
    enqueue(place, "ask", "other", [{"number": 0}])
    enqueue(place, "free", "free", [{"number": n} for n in range(100)])
    until(is_empty(place, "free"))
    counts = place.counts("ask")
    assert (counts["waiting"], counts["ready"]) == (WAITING, 1)
    for number in range(WAITING):
        assert asked.reply("ask", f"key-{number}", number * 2) == "resolved"
    until(is_empty(place, "ask"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
    assert Counter(notes.lines()) == Counter(
        [
            *(f"answered {n} {n * 2}" for n in range(WAITING)),
            *(f"free {n}" for n in range(100)),
            "other 0",
        ]
    )
    found = [event for story in stories(place).values() for event in story]
    ended_ms = [
        e.at_ms for e in found if isinstance(e, events.Acked) and e.kind == "ask"
    ]
    (started,) = [
        e for e in found if isinstance(e, events.Leased) and e.kind == "other"
    ]
    assert len(ended_ms) == WAITING
    assert started.at_ms >= min(ended_ms), "the limit was passed"


def test_replies_come_before_after_twice_and_never(
    place: ServedPlace, start: Start, notes: Notes, asked: headway.App
) -> None:
    asked.configure(headway.QueueConfig(name="ask"))
    before, after, never = range(30), range(30, 60), range(60, 90)
    for number in before:
        assert asked.reply("ask", f"key-{number}", 1) == "early"
        assert asked.reply("ask", f"key-{number}", 2) == "repeated"
    enqueue(place, "ask", "ask", [{"number": n} for n in (*before, *after)])
    silent = [{"number": n, "timeout": "1s"} for n in never]
    enqueue(place, "ask", "ask", silent, attempts_max=3, retry=Fixed(0))
    # A worker that is killed amid it all, and one that goes on.
    first = start("--queues", "ask", "--concurrency", "2", "--lease", "1s")
    until(lambda: place.counts("ask")["waiting"] > 0)
    first.kill()
    start("--queues", "ask", "--concurrency", "2", "--lease", "1s")
    until(lambda: place.counts("ask")["dead"] == len(never))
    until(lambda: place.counts("ask")["waiting"] == len(after))
    for number in after:
        assert asked.reply("ask", f"key-{number}", 1) == "resolved"
        assert asked.reply("ask", f"key-{number}", 2) == "repeated"
    for number in never:
        assert asked.reply("ask", f"key-{number}", 1) == "late"
    until(is_empty(place, "ask"))
    assert {dead.reason for dead in place.dead("ask")} == {"no reply"}
    # At least once: a killed worker may have told nobody what it did.
    assert set(notes.lines()) == {f"answered {n} 1" for n in (*before, *after)}
    for story in stories(place).values():
        kinds = Counter(type(event) for event in story)
        waited = kinds[events.Waited]
        unanswered = sum(
            isinstance(event, events.Retried | events.Buried)
            and event.reason == "no reply"
            for event in story
        )
        assert waited == kinds[events.Replied] + unanswered
