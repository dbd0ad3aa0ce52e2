"""What comes to a turn of which memory holds the first part only."""

from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.core.turn import Turn, read_to, rows_of
from tests.core.machine import Machine


def _turn(machine: Machine) -> tuple[Turn, list[int]]:
    """A turn of which the store may have more behind its one job."""
    seqs = machine.put("q", JobSpec())
    turn = machine.partition.book.jobs[seqs[0]].turn
    assert turn is not None
    turn.cut = rows_of(turn)[0][:3]
    return turn, seqs


def test_what_comes_behind_is_not_next_before_the_store_was_read() -> None:
    machine = Machine(QueueConfig(name="q"))
    turn, seqs = _turn(machine)
    seqs += machine.put("q", JobSpec())
    assert machine.starts(1) == seqs[:1]
    assert turn.head() is None
    assert turn.count == 1


def test_what_came_while_the_store_was_read_takes_its_place() -> None:
    """It is not in what was read, and would wait for ever if it were forgotten."""
    machine = Machine(QueueConfig(name="q"))
    turn, seqs = _turn(machine)
    seqs += machine.put("q", JobSpec())
    seqs += machine.put("q", JobSpec())
    assert turn.beyond is not None
    first = turn.beyond[0]
    read_to(turn, (first.first_key, first.second_key, first.seq))
    assert [job.seq for job in turn.beyond or ()] == seqs[2:]
    read_to(turn, None)
    assert not turn.beyond
    assert turn.count == 3
    assert [job.seq for job in machine.run(10)] == seqs


def test_one_that_has_left_meanwhile_does_not_come_back() -> None:
    machine = Machine(QueueConfig(name="q"))
    turn, seqs = _turn(machine)
    (gone,) = machine.put("q", JobSpec())
    turn.remove(machine.partition.book.jobs[gone])
    read_to(turn, None)
    assert [row[2] for row in rows_of(turn)] == seqs
    assert turn.count == 1
