"""P8, invariant 21: each tick enqueues one job at most, whenever the server is killed."""

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.core import events
from headway.core.cron import Missed, Schedule
from headway.core.spec import JobSpec
from headway.server.settings import STORE
from tests.endtoend.account import read
from tests.worker.places import ServedPlace, until

SECOND_MS = 1_000
POLICIES = {f"often-{missed.value}": missed for missed in Missed}
NEAR_S = 0.06
"""So close to a tick, before or after it, the server is killed."""


def put(url: str) -> None:
    """Schedules of every policy; said again after each start, they stay the same."""
    with headway.App(url) as app:
        for name, missed in POLICIES.items():
            spec = JobSpec(kind=name)
            entry = Schedule(
                queue="q", name=name, cron="* * * * * *", missed=missed, spec=spec
            )
            app.ports.blocking().schedule(entry)


def kill_near_a_tick(place: ServedPlace, chance: random.Random) -> None:
    offset_s = chance.uniform(-NEAR_S, NEAR_S)
    threading.Event().wait((offset_s - time.time()) % 1.0)
    place.served.kill()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [5, pytest.param(60, marks=pytest.mark.long)])
def test_each_tick_enqueues_one_job_whenever_the_server_is_killed(
    tmp_path: Path, kills: int
) -> None:
    chance = random.Random(21)
    for _ in range(kills):
        with ServedPlace(tmp_path / "data") as place:
            put(place.url)
            before = place.counts("q")["ready"]
            until(lambda: place.counts("q")["ready"] > before)  # noqa: B023
            kill_near_a_tick(place, chance)
    with ServedPlace(tmp_path / "data"):
        pass  # What is left of the last kill is dealt with.
    happened = [
        event
        for _, chapter in read(tmp_path / "data" / STORE).chapters
        for event in chapter
    ]
    check(happened)


def check(happened: list[Any]) -> None:
    ticked = [event for event in happened if isinstance(event, events.Ticked)]
    ticks = Counter((event.schedule, event.tick_ms) for event in ticked)
    assert max(ticks.values()) == 1, "a tick came twice"
    enqueued = Counter(
        event.seq for event in happened if isinstance(event, events.Enqueued)
    )
    assert enqueued == Counter(event.seq for event in ticked if event.seq)
    for name, missed in POLICIES.items():
        times_ms = [event.tick_ms for event in ticked if event.schedule == name]
        assert times_ms == sorted(times_ms), name
        assert all(tick_ms % SECOND_MS == 0 for tick_ms in times_ms)
        if missed is Missed.ALL:
            every = range(times_ms[0], times_ms[-1] + SECOND_MS, SECOND_MS)
            assert times_ms == list(every), "a tick was left out"


def test_the_account_of_ticks_can_fail() -> None:
    def story(*ticks_s: int) -> list[Any]:
        found: list[Any] = []
        for seq, tick_s in enumerate(ticks_s, 1):
            who = (seq, 0, "q", 30_000, "", "often-all")
            at_ms = tick_s * SECOND_MS
            found.append(events.Enqueued(at_ms, *who, at_ms, 100, 1))
            for name in POLICIES:
                given = seq if name == "often-all" else 0
                found.append(events.Ticked(at_ms, "q", name, at_ms, given))
        return found

    check(story(1, 2, 3))
    for wrong in (story(1, 2, 2), story(1, 3), story(1, 2)[1:]):
        with pytest.raises(AssertionError):
            check(wrong)
