"""The orders `time` and `priority`, row by row; tenants do not matter there."""

import random

import msgspec
import pytest

from headway.core.commands import Ack, Nack, Release
from headway.core.config import Concurrency, Order, QueueConfig
from headway.core.spec import JobSpec
from tests.core.machine import MINUTE_MS, START_MS, Machine

TABLE = [
    ("10:32", 700),
    ("10:33", 50),
    ("10:33", 100),
    ("10:40", 1),
    ("10:40", 7),
]
"""Sorted by scheduled time, then by priority."""
BY_PRIORITY = [3, 4, 1, 2, 0]


def at_ms(clock: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    return START_MS + (60 * hours + minutes) * MINUTE_MS


def queue(order: Order) -> QueueConfig:
    return QueueConfig(name="q", order=order, lease_ms=600 * MINUTE_MS)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("order", "rows"), [(Order.TIME, [0, 1, 2, 3, 4]), (Order.PRIORITY, BY_PRIORITY)]
)
def test_the_table_row_for_row(order: Order, rows: list[int], seed: int) -> None:
    """In whichever order the jobs were stored, and whoever they belong to."""
    machine = Machine(queue(order))
    shuffled = list(range(5))
    random.Random(seed).shuffle(shuffled)
    seqs: dict[int, int] = {}
    for row in shuffled:
        clock, priority = TABLE[row]
        spec = JobSpec(
            run_at_ms=at_ms(clock), priority=priority, tenant=f"t{(row + seed) % 3}"
        )
        (seqs[row],) = machine.put("q", spec)
    machine.pass_ms(11 * 60 * MINUTE_MS)
    assert machine.starts() == [seqs[row] for row in rows]


def test_nothing_starts_before_its_time_whatever_its_priority() -> None:
    """Invariant 20: at 10:35 there are three."""
    machine = Machine(queue(Order.PRIORITY))
    for clock, priority in TABLE:
        machine.put("q", JobSpec(run_at_ms=at_ms(clock), priority=priority))
    machine.pass_ms(at_ms("10:35") - START_MS)
    assert machine.starts() == [2, 3, 1]


@pytest.mark.parametrize("order", [Order.TIME, Order.PRIORITY])
@pytest.mark.parametrize("has_strands", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_any_jobs_start_in_the_order_of_their_keys(
    order: Order, has_strands: bool, seed: int
) -> None:
    """Also where a limit tells them apart, and with jobs that come back."""
    draw = random.Random(seed)
    config = queue(order)
    if has_strands:
        limit = Concurrency("c", 1_000, "region")
        config = msgspec.structs.replace(config, limits=(limit,))
    machine = Machine(config)
    for _ in range(80):
        machine.put(
            "q",
            JobSpec(
                priority=draw.randrange(5),
                run_at_ms=START_MS + 1_000 * draw.randrange(5),
                tenant=draw.choice("abc"),
                labels={"region": draw.choice("xyz")},
            ),
        )
    machine.pass_ms(10_000)
    jobs = machine.partition.book.jobs
    keys = {
        seq: (
            (job.run_at_ms, job.priority, seq)
            if order is Order.TIME
            else (job.priority, job.run_at_ms, seq)
        )
        for seq, job in jobs.items()
    }
    started: list[int] = []
    while len(started) < 80:
        (job,) = machine.lease()
        if draw.random() < 0.2:
            machine.ask(Release([job.token]))
            continue
        started.append(job.seq)
        machine.ask(Ack([job.token]))
    assert started == sorted(keys, key=keys.__getitem__)


def test_a_retry_takes_the_place_of_its_new_time() -> None:
    """In the order of time; in that of priority it stays before lower ones."""
    for order, expected in ((Order.TIME, [2, 3, 1]), (Order.PRIORITY, [1, 2, 3])):
        machine = Machine(queue(order))
        machine.put("q", JobSpec(priority=1), JobSpec(priority=2), JobSpec(priority=3))
        (job,) = machine.lease()
        machine.ask(Nack(job.token, retry_in_ms=1_000))
        machine.pass_ms(1_000)
        assert machine.starts() == expected
