"""Units that come free wake one who waits: if it does not take them, another must."""

import pytest

from headway.core.commands import (
    Ack,
    Cancel,
    Command,
    Purge,
    SetKind,
    SetTenant,
)
from headway.core.config import Concurrency, Limit, QueueConfig, Shares
from headway.core.spec import JobSpec
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

FIRST = {"region": "east"}
LIMITS: list[Limit] = [
    Concurrency("c", 1, "region"),
    Shares("s", 2, "region", {"east": 50}),
    Shares("s", 1, "region", {"east": 100}, is_lending=True),
]
LEAVES: list[Command | None] = [
    Cancel(2),
    Purge("q", "a"),
    SetTenant("q", "a", is_paused=True),
    SetTenant("q", "a", cap=0),
    SetKind("q", "a", is_paused=True),
    SetKind("q", "a", cap=0),
    None,
]
"""What the woken one may suffer before a worker comes; None: its window closes."""


@pytest.mark.parametrize("limit", LIMITS, ids=["limit", "share", "lending"])
@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("is_before", [False, True])
def test_a_wake_is_passed_on_when_the_woken_one_does_not_start(
    limit: Limit, leave: Command | None, is_before: bool
) -> None:
    """Invariant 29; work conservation: the unit is free and somebody waits for it."""
    machine = Machine(QueueConfig(name="q", limits=(limit,), lease_ms=90 * MINUTE_MS))
    machine.put("q", JobSpec(tenant="z", labels=FIRST))
    (running,) = machine.lease()
    windows = WindowSet((Window(0, 10),)) if leave is None else None
    machine.put("q", JobSpec(tenant="a", kind="a", labels=FIRST, windows=windows))
    machine.put("q", JobSpec(tenant="b", kind="b", labels=FIRST))
    assert machine.starts() == []
    commands = [Ack([running.token])]
    if leave is None:
        machine.now_ms += (5 if is_before else 20) * MINUTE_MS
        machine.decide(*commands)
        machine.now_ms += 20 * MINUTE_MS
    elif is_before:
        machine.decide(leave, *commands)
    else:
        machine.decide(*commands, leave)
    assert machine.starts() == [3]


def test_a_wake_is_passed_on_when_a_big_one_expires_with_what_it_waited_for() -> None:
    """Invariant 29: job 3 is woken by the end of job 1, and is dead itself by then."""
    limit = Concurrency("c", 3, "tenant")
    machine = Machine(QueueConfig(name="q", limits=(limit,), slos_ms=(1_000,)))
    machine.put("q", JobSpec(tenant="a", lifetime_ms=8_000))
    machine.lease()
    machine.put("q", JobSpec(tenant="a", cost=3, lifetime_ms=8_000))
    machine.put("q", JobSpec(tenant="a", slo_ms=1_000, cost=2))
    assert machine.starts() == [3]
    machine.put("q", JobSpec(tenant="a", slo_ms=1_000))
    assert machine.starts() == []
    machine.pass_ms(8_000)
    assert machine.starts() == [4]


@pytest.mark.parametrize("count", [2, 30])
def test_every_unit_is_used_whoever_drops_out(count: int) -> None:
    """Invariant 29: half of those who wait are cancelled just when units come free."""
    machine = Machine(QueueConfig(name="q", limits=(Concurrency("c", 4),)))
    machine.put("q", *specs(4))
    running = machine.lease(4)
    machine.put("q", *[JobSpec(tenant=f"t{n}") for n in range(2 * count)])
    assert machine.starts() == []
    machine.decide(
        Ack([job.token for job in running]),
        *(Cancel(5 + 2 * n) for n in range(count)),
    )
    assert len(machine.starts()) == min(4, count)
