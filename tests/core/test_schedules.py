"""Schedules at work: each tick enqueues at most one job (P8, invariant 21)."""

from collections import Counter

import msgspec
import pytest

from headway.core import events
from headway.core.commands import Changed, DropSchedule, Hold, PutSchedule, SetHold
from headway.core.config import QueueConfig
from headway.core.cron import Missed, Schedule
from headway.core.errors import UnknownQueue
from headway.core.spec import JobSpec
from tests.core.machine import MINUTE_MS, START_MS, Machine

QUEUE = QueueConfig(name="q")
HOURLY = Schedule(queue="q", name="hourly", cron="0 * * * *", spec=JobSpec(kind="tick"))
HOUR_MS = 60 * MINUTE_MS


def changed(schedule: Schedule, **fields: object) -> Schedule:
    return msgspec.structs.replace(schedule, **fields)


def ticks(machine: Machine) -> list[int]:
    """The ticks that were dealt with, in hours after the start."""
    ticked = [event for event in machine.events if isinstance(event, events.Ticked)]
    counts = Counter((event.schedule, event.tick_ms) for event in ticked)
    assert max(counts.values(), default=1) == 1, "invariant 21"
    assert all(event.tick_ms <= event.at_ms for event in ticked), "invariant 20"
    return [(event.tick_ms - START_MS) // HOUR_MS for event in ticked]


def test_every_tick_enqueues_one_job() -> None:
    """Invariants 20 and 21."""
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(HOURLY))
    machine.pass_ms(5 * HOUR_MS)
    assert ticks(machine) == [1, 2, 3, 4, 5]
    assert len(machine.starts()) == 5
    assert {event.kind for event in machine.leased()} == {"tick"}


@pytest.mark.parametrize(
    ("missed", "expected"),
    [(Missed.ONE, [5]), (Missed.ALL, [1, 2, 3, 4, 5]), (Missed.SKIP, [])],
)
def test_missed_ticks_follow_the_policy(missed: Missed, expected: list[int]) -> None:
    """Invariant 21: nobody decided anything for five hours and a half."""
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(changed(HOURLY, missed=missed)))
    machine.now_ms += 5 * HOUR_MS + 30 * MINUTE_MS
    machine.decide()
    assert ticks(machine) == expected
    machine.pass_ms(HOUR_MS)
    assert ticks(machine) == [*expected, 6]


def test_hundreds_of_missed_ticks_are_all_caught_up() -> None:
    """Invariant 21: more than one list holds."""
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(changed(HOURLY, missed=Missed.ALL)))
    machine.now_ms += 350 * HOUR_MS
    machine.decide()
    assert ticks(machine) == list(range(1, 351))


def test_a_tick_is_dealt_with_once_however_often_its_schedule_is_put() -> None:
    """Invariant 21."""
    machine = Machine(QUEUE)
    for hour in range(1, 4):
        machine.ask(PutSchedule(changed(HOURLY, missed=Missed.ALL)))
        machine.now_ms = START_MS + hour * HOUR_MS
        machine.decide(PutSchedule(HOURLY), PutSchedule(changed(HOURLY, zone="UTC")))
        machine.decide(DropSchedule("q", "hourly"), PutSchedule(HOURLY))
    assert ticks(machine) == [1, 2, 3]


def test_ticks_of_a_pause_are_not_missed() -> None:
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(changed(HOURLY, missed=Missed.ALL, is_paused=True)))
    machine.pass_ms(3 * HOUR_MS + MINUTE_MS)
    machine.ask(PutSchedule(changed(HOURLY, missed=Missed.ALL)))
    machine.pass_ms(HOUR_MS)
    assert ticks(machine) == [4]


def test_a_dropped_schedule_ticks_no_more() -> None:
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(HOURLY))
    machine.pass_ms(HOUR_MS)
    answer = machine.ask(DropSchedule("q", "hourly"))
    assert isinstance(answer, Changed)
    assert answer.count == 1
    again = machine.ask(DropSchedule("q", "hourly"))
    assert isinstance(again, Changed)
    assert again.count == 0
    machine.pass_ms(5 * HOUR_MS)
    assert ticks(machine) == [1]
    assert machine.partition.next_ms() is not None


def test_a_full_queue_skips_the_tick_and_says_so() -> None:
    machine = Machine(changed_queue(max_length=2))
    machine.ask(PutSchedule(HOURLY))
    machine.pass_ms(4 * HOUR_MS)
    ticked = [event for event in machine.events if isinstance(event, events.Ticked)]
    assert [event.seq for event in ticked] == [1, 2, 0, 0]
    assert len(machine.run(10)) == 2
    machine.pass_ms(HOUR_MS)
    assert ticks(machine) == [1, 2, 3, 4, 5]


def changed_queue(**fields: object) -> QueueConfig:
    return msgspec.structs.replace(QUEUE, **fields)


def test_a_held_queue_still_takes_its_ticks() -> None:
    """Invariant 26: they are enqueued, and do not start."""
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(HOURLY))
    machine.ask(SetHold("q", Hold.PAUSE, is_on=True))
    machine.pass_ms(2 * HOUR_MS)
    assert ticks(machine) == [1, 2]
    assert machine.starts() == []


def test_a_schedule_needs_its_queue() -> None:
    machine = Machine(QUEUE)
    stray = machine.ask(PutSchedule(changed(HOURLY, queue="nowhere")))
    assert isinstance(stray, UnknownQueue)


@pytest.mark.parametrize(
    ("zone", "cron", "hours"),
    [
        ("UTC", "30 1 * * *", 24),
        ("Europe/Berlin", "30 2 * * *", 24),
        ("Australia/Lord_Howe", "45 1 * * *", 24),
    ],
)
def test_a_daily_tick_comes_once_a_day_through_every_change_of_clocks(
    zone: str, cron: str, hours: int
) -> None:
    """Invariant 21: 400 days, with both changes in them."""
    machine = Machine(QUEUE)
    machine.ask(PutSchedule(changed(HOURLY, cron=cron, zone=zone, missed=Missed.ALL)))
    machine.now_ms += 400 * hours * HOUR_MS
    machine.decide()
    assert 399 <= len(ticks(machine)) <= 401
