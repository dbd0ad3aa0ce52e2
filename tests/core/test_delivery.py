"""The delivery decision graph over its full table: nine answers, all combinations."""

import itertools
from typing import NamedTuple

import msgspec
import pytest

from headway.core.commands import Configure, Judge, SetKind, SetTenant, Verdict
from headway.core.config import Concurrency, QueueConfig
from headway.core.delivery import Delivery, Limited, check
from headway.core.entitlement import Ledger
from headway.core.job import Job
from headway.core.spec import JobSpec
from headway.core.turn import Turn
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine

FIRST_HOUR = WindowSet((Window(0, 60),))


class Case(NamedTuple):
    """What stands against a start, in the order of the graph."""

    is_moved: bool
    is_closed: bool
    is_paused: bool
    is_exempt: bool
    is_asked: bool
    is_full: bool
    is_over: bool


CASES = [Case(*flags) for flags in itertools.product([False, True], repeat=7)]


class OverLedger(Ledger):
    """Says of everybody that it is over its share."""

    def is_over(self, account: object, now_ms: int) -> bool:
        return True


def expected(case: Case) -> Delivery | str:
    """The graph, read off its drawing."""
    if case.is_moved:
        return Delivery.MOVE
    if case.is_closed:
        return Delivery.CLOSED
    if case.is_paused:
        return Delivery.PAUSED
    if case.is_exempt:
        return Delivery.START
    if case.is_asked:
        return Delivery.ASK
    if case.is_full:
        return "limited"
    return Delivery.OVER if case.is_over else Delivery.START


def made(case: Case) -> tuple[Machine, Turn, Job]:
    """A queue in which just that stands against the one ready job."""
    config = QueueConfig(
        name="q",
        lease_ms=600 * MINUTE_MS,
        windows=FIRST_HOUR,
        has_throttler=case.is_asked,
        limits=(Concurrency("c", 1, "region"),),
    )
    machine = Machine(config)
    spec = JobSpec(tenant="a", labels={"region": "east"})
    if case.is_full:
        machine.put("q", msgspec.structs.replace(spec, tenant="b"))
        machine.lease()
        machine.ask(Judge(1, Verdict.START))
        machine.lease()
        assert len(machine.partition.book.leases) == 1
    (seq,) = machine.put("q", msgspec.structs.replace(spec, is_critical=case.is_exempt))
    job = machine.partition.book.jobs[seq]
    turn = job.turn
    assert turn is not None
    if not case.is_closed:
        turn.strand.closes_ms = FIRST_HOUR.closes_ms(machine.now_ms)
    if case.is_paused:
        machine.ask(SetTenant("q", "a", is_paused=True))
    if case.is_moved:
        machine.ask(Configure(msgspec.structs.replace(config, limits=())))
    return machine, turn, job


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: "".join(map(str, map(int, case)))
)
def test_the_graph_decides_as_it_is_drawn(case: Case) -> None:
    """Invariants 22 and 26 at their source."""
    machine, turn, job = made(case)
    if case.is_closed:
        machine.now_ms += 90 * MINUTE_MS
    ledger = OverLedger() if case.is_over else Ledger()
    outcome = check(turn, job, ledger, machine.now_ms)
    if expected(case) == "limited":
        assert isinstance(outcome, Limited)
        assert outcome.gauge.limit == "c"
        assert outcome.gauge.value == "east"
    else:
        assert outcome is expected(case)


def test_an_empty_turn_is_gone() -> None:
    machine, turn, _ = made(Case(*[False] * 7))
    assert check(turn, None, Ledger(), machine.now_ms) is Delivery.GONE


@pytest.mark.interpreted
def test_a_job_without_a_tenant_is_never_over_its_share() -> None:
    machine = Machine(QueueConfig(name="q"))
    machine.put("q", JobSpec())
    job = machine.partition.book.jobs[1]
    assert job.turn is not None
    outcome = check(job.turn, job, OverLedger(), machine.now_ms)
    assert outcome is Delivery.START


@pytest.mark.parametrize(
    ("limits", "rule", "who"),
    [
        ((Concurrency("c", 0),), None, "queue"),
        ((Concurrency("c", 0, "region"),), None, "turn"),
        ((Concurrency("c", 0, "kind"),), None, "turn"),
        ((Concurrency("c", 0, "tenant"),), None, "turn"),
        ((), SetTenant("q", "a", cap=0), "turn"),
        ((), SetKind("q", "k", cap=0), "turn"),
    ],
)
def test_the_smallest_part_that_stops_together_waits(
    limits: tuple[Concurrency, ...], rule: SetTenant | SetKind | None, who: str
) -> None:
    """Queue or turn: nothing that is not stopped is put aside with it."""
    machine = Machine(QueueConfig(name="q", limits=limits))
    if rule is not None:
        machine.ask(rule)
    machine.put("q", JobSpec(tenant="a", kind="k", labels={"region": "east"}))
    job = machine.partition.book.jobs[1]
    turn = job.turn
    assert turn is not None
    outcome = check(turn, job, Ledger(), machine.now_ms)
    assert isinstance(outcome, Limited)
    gate = machine.partition.book.queues["q"].gate
    assert outcome.member is (gate if who == "queue" else turn)
