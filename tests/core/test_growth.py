"""What stands in long lines, and among many tenants, is found where it belongs."""

from heapq import heappop, heappush
from random import Random

import msgspec
import pytest

from headway.core.commands import Configure, Redrive
from headway.core.config import Concurrency, QueueConfig
from headway.core.fairness import Tenancy
from headway.core.job import Job
from headway.core.odd import Entry
from headway.core.order import Order
from headway.core.queue import EMPTIES, Queue
from headway.core.shelf import Member
from headway.core.spec import JobSpec
from headway.core.strand import Strand
from headway.core.turn import Turn
from headway.core.windows import Window, WindowSet
from tests.core.machine import MINUTE_MS, Machine, specs

QUEUE = QueueConfig(name="q")
MORNING = WindowSet((Window(0, 60),))


def _only_turn(machine: Machine, seq: int) -> Turn:
    turn = machine.partition.book.jobs[seq].turn
    assert turn is not None
    return turn


def test_one_that_left_from_the_middle_comes_back_by_its_new_time() -> None:
    """Its old place in the line still names it, and must not count."""
    machine = Machine(QUEUE)
    first, brief, last = machine.put(
        "q", JobSpec(), JobSpec(lifetime_ms=1_000), JobSpec()
    )
    machine.pass_ms(2_000)
    machine.ask(Redrive(brief))
    (newest,) = machine.put("q", JobSpec())
    assert machine.starts(9) == [first, last, brief, newest]


def test_one_that_left_twice_is_started_once() -> None:
    machine = Machine(QUEUE)
    first, brief, last = machine.put(
        "q", JobSpec(), JobSpec(lifetime_ms=1_000), JobSpec()
    )
    for _ in range(2):
        machine.pass_ms(2_000)
        machine.ask(Redrive(brief))
    assert machine.starts(9) == [first, last, brief]
    assert machine.starts(9) == []


def test_a_line_keeps_no_job_that_was_started() -> None:
    machine = Machine(QUEUE)
    seqs = machine.put("q", *specs(200))
    jobs = [machine.partition.book.jobs[seq] for seq in seqs]
    turn = _only_turn(machine, seqs[0])
    for started, job in enumerate(jobs, start=1):
        assert machine.starts(1) == [job.seq]
        assert job.behind is None
        assert turn.front is (jobs[started] if started < 200 else None)
    assert turn.back is None


def test_one_that_left_both_its_line_and_its_place_beside_it_is_in_line_no_more() -> (
    None
):
    """A row out of order that was left behind is no reason to forget the line."""
    machine = Machine(QUEUE)
    turn = Turn(*_place(machine), 1_000_000)
    first, odd, last = (Job(seq, JobSpec(), "q", 0) for seq in (1, 2, 3))
    turn.add((0, 5), first)
    turn.add((0, 4), odd)
    turn.add((0, 3), last)
    turn.remove(odd)
    turn.add((0, 6), odd)
    turn.remove(last)
    assert odd.is_in_line
    turn.remove(odd)
    turn.add((0, 7), odd)
    heads = []
    while (job := turn.head()) is not None:
        heads.append(job)
        turn.remove(job)
    assert heads == [first, odd]


def _place(machine: Machine) -> tuple[Strand, Tenancy]:
    (seq,) = machine.put("q", JobSpec())
    turn = _only_turn(machine, seq)
    return turn.strand, turn.tenancy


@pytest.mark.parametrize("seed", range(20))
def test_an_order_is_that_of_a_heap(seed: int) -> None:
    """Strides of some weights, joined by those who were away, and by dear ones."""
    _check_order(seed)


@pytest.mark.interpreted
@pytest.mark.parametrize("short", [-1, 8])
@pytest.mark.parametrize("seed", range(10))
def test_an_order_of_long_lines_is_that_of_a_heap(
    monkeypatch: pytest.MonkeyPatch, seed: int, short: int
) -> None:
    monkeypatch.setattr("headway.core.order.SHORT", short)
    _check_order(seed)


def _check_order(seed: int) -> None:
    random = Random(seed)
    order = Order()
    heap: list[tuple[int, int]] = []
    members = [Member(number) for number in range(40)]
    for member in members:
        order.push(Entry(0, member))
        heap.append((0, member.number))
    strides = [random.choice((1, 2, 3, 4, 7, 11)) for _ in members]
    for _ in range(2_000):
        first = order.first()
        assert first is not None
        rank = first.rank
        assert (rank, first.number) == heap[0]
        order.drop()
        heappop(heap)
        for member in (first.member, *random.sample(members, k=random.random() < 0.1)):
            more = strides[member.number] if random.random() < 0.95 else 0
            order.push(Entry(rank + more, member))
            heappush(heap, (rank + more, member.number))
    entries = [(entry.rank, entry.number) for entry in order.entries()]
    assert sorted(entries) == sorted(heap)
    assert order.size == len(heap)


@pytest.mark.interpreted
def test_turns_that_can_not_go_are_looked_at_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A backlog keeps the lane's base where it is: nobody's clock is behind it."""
    looks: list[Turn] = []
    collect = Queue._collect

    def look(queue: Queue, turn: Turn) -> None:
        looks.append(turn)
        collect(queue, turn)

    monkeypatch.setattr(Queue, "_collect", look)
    machine = Machine(QUEUE)
    machine.put("q", *[JobSpec(tenant=f"t{n}") for n in range(EMPTIES + 1_500)])
    machine.run(EMPTIES + 1_000)
    assert 0 < len(looks) < 100


def test_jobs_of_the_queues_window_share_a_strand_whoever_names_it() -> None:
    """Else a limit or a closing would stop one of them, and not the other."""
    config = msgspec.structs.replace(QUEUE, windows=MORNING)
    machine = Machine(config)
    own = WindowSet((Window(0, 60),))
    assert own is not MORNING
    seqs = machine.put("q", JobSpec(windows=own), JobSpec(), JobSpec(windows=own))
    turns = {machine.partition.book.jobs[seq].turn for seq in seqs}
    assert len(turns) == 1
    assert machine.starts(9) == seqs


def test_a_window_that_was_open_closes_for_what_comes_later() -> None:
    machine = Machine(msgspec.structs.replace(QUEUE, windows=MORNING))
    assert len(machine.run(9)) == 0
    machine.put("q", JobSpec())
    assert len(machine.run(9)) == 1
    machine.pass_ms(60 * MINUTE_MS)
    machine.put("q", JobSpec())
    assert machine.starts(9) == []
    machine.ask(Configure(QUEUE))
    machine.put("q", JobSpec(tenant="b"))
    assert machine.starts(9) == [3]


def test_a_limit_by_label_that_comes_and_goes_sorts_jobs_anew() -> None:
    """What is kept of the strand without labels is not used while there are some."""
    machine = Machine(QUEUE)
    machine.put("q", JobSpec())
    machine.ask(
        Configure(
            msgspec.structs.replace(QUEUE, limits=(Concurrency("c", 1, "server"),))
        )
    )
    machine.put("q", *specs(2, labels={"server": "s"}))
    assert sorted(machine.starts(9)) == [1, 2]
    machine.ask(Configure(QUEUE))
    machine.put("q", JobSpec())
    assert sorted(machine.starts(9)) == [3, 4]


def test_a_spec_says_what_it_says_in_the_order_that_intake_takes_it() -> None:
    """Fields are taken by their place there: a new one goes behind all others."""
    names = [field.name for field in msgspec.structs.fields(JobSpec)]
    assert names == [
        *("kind", "payload", "is_json", "tenant", "slo_ms", "run_at_ms", "delay_ms"),
        *("priority", "weight", "cost", "is_critical", "labels", "windows"),
        *("timeout_ms", "lifetime_ms", "attempts_max", "retry", "idempotency_key"),
        *("headers", "result_ms"),
    ]
