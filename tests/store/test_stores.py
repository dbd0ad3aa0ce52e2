"""What every store does: jobs, their order, and who may write."""

from random import Random

import pytest

from headway.store.errors import Contradiction, Fenced, NotOpen
from headway.store.port import DEAD, HELD, SCHEDULED, START, Batch, Position
from tests.store.places import Place
from tests.store.rows import Owner, after, batch, job, segment, seqs

TURNS = [
    b"",
    b"\x00",
    b"\x00\x00",
    b"a",
    b"a\x00",
    b"a\xff",
    b"b",
    b"\xff",
    b"\xff\xff",
]


def test_committed_jobs_survive_a_reopen(place: Place, owner: Owner) -> None:
    rows = [job(1, body=b""), job(2, lane=7, turn=b"\x00\xff", first=-5, second=9)]
    owner.put(*rows)
    owner.store.close()
    again = Owner(place.open())
    assert sorted(again.store.jobs([1, 2])) == rows


def test_nothing_is_read_or_written_before_take_over(place: Place) -> None:
    store = place.open()
    with pytest.raises(NotOpen):
        store.commit(batch(puts=[job(1)]), 0)
    with pytest.raises(NotOpen):
        store.jobs([1])
    with pytest.raises(NotOpen):
        store.jobs([])
    with pytest.raises(NotOpen):
        store.turns(0, None, 0, 0)


def test_nothing_is_read_or_written_after_close(owner: Owner) -> None:
    owner.store.close()
    owner.store.close()
    with pytest.raises(NotOpen):
        owner.put(job(1))
    with pytest.raises(NotOpen):
        owner.store.last_segment()
    with pytest.raises(NotOpen):
        owner.store.take_over()


def test_epochs_strictly_rise_over_handles_and_reopens(place: Place) -> None:
    epochs = []
    for _ in range(3):
        store = place.open()
        epochs += [store.take_over(), store.take_over()]
        store.close()
    assert epochs == sorted(set(epochs))
    assert epochs[0] > 0


def test_a_replaced_owner_can_write_nothing(place: Place, owner: Owner) -> None:
    owner.put(job(1), job(2))
    owner.commit(batch(segment=segment(1), facts=[("limit", b"k", b"v")]))
    owner.commit(batch(segment=segment(2), keys=[("q", "key", 1, b"f", 10)]))
    owner.commit(batch(results=[(9, 50, b"left")]))
    newer = Owner(place.open_beside())
    for late in every_kind_of_write():
        with pytest.raises(Fenced):
            owner.commit(late)
    store = newer.store
    assert sorted(store.jobs([1, 2, 3])) == [job(1), job(2)]
    assert store.facts("limit") == [(b"k", b"v")]
    assert store.find_keys([("q", "key")]) == [("q", "key", 1, b"f", 10)]
    assert store.history(1, 1000) == [segment(1), segment(2)]
    assert store.results([1, 9]) == [(9, 50, b"left")]


def every_kind_of_write() -> list[Batch]:
    return [
        batch(),
        batch(puts=[job(3)]),
        batch(moves=[(5, b"x", 0, 0, None, 1)]),
        batch(ends=[1]),
        batch(facts=[("limit", b"k", None)]),
        batch(keys=[("q", "key", 9, b"g", 11)]),
        batch(keys_before_ms=100),
        batch(segment=segment(3)),
        batch(history_before=2),
        batch(results=[(1, 50, b"late")]),
        batch(results_over=(99, 9)),
    ]


def test_an_owner_that_takes_over_again_is_fenced_from_its_past(owner: Owner) -> None:
    newer = owner.store.take_over()
    with pytest.raises(Fenced) as raised:
        owner.put(job(1))
    assert (raised.value.epoch, raised.value.newest) == (owner.epoch, newer)
    owner.store.commit(batch(puts=[job(1)]), newer)
    assert owner.store.jobs([1]) == [job(1)]


def test_an_epoch_from_the_future_is_refused(owner: Owner) -> None:
    with pytest.raises(Fenced):
        owner.store.commit(batch(puts=[job(1)]), owner.epoch + 1)
    assert owner.store.jobs([1]) == []


@pytest.mark.parametrize(
    "broken",
    [
        batch(puts=[job(2), job(1)]),
        batch(puts=[job(2), job(2)]),
        batch(puts=[job(2)], moves=[(0, b"", 0, 0, None, 9)]),
        batch(puts=[job(2)], ends=[9]),
        batch(puts=[job(2)], ends=[1, 1]),
        batch(puts=[job(2)], segment=segment(3)),
        batch(puts=[job(2)], segment=segment(1)),
        batch(puts=[job(2)], segment=segment(2, count=0)),
        batch(puts=[job(2)], results=[(7, 5, b"again")]),
        batch(puts=[job(2)], results=[(8, 5, b"one"), (8, 6, b"two")]),
    ],
    ids=range(10),
)
def test_a_batch_that_cannot_be_true_changes_nothing(
    owner: Owner, broken: Batch
) -> None:
    owner.commit(batch(puts=[job(1)], segment=segment(1), results=[(7, 5, b"left")]))
    with pytest.raises(Contradiction):
        owner.commit(broken)
    assert owner.store.jobs([1, 2, 9]) == [job(1)]
    assert owner.store.results([7, 8]) == [(7, 5, b"left")]
    assert owner.store.last_segment() == segment(1)
    owner.commit(batch(puts=[job(2)], segment=segment(2)))
    assert sorted(owner.store.jobs([1, 2])) == [job(1), job(2)]


def test_jobs_are_put_then_moved_then_ended_in_one_batch(owner: Owner) -> None:
    owner.commit(
        batch(
            puts=[job(1), job(2)],
            moves=[(4, b"x", 0, 0, b"c", 1), (5, b"y", 1, 2, b"d", 1)],
            ends=[2],
        )
    )
    assert owner.store.jobs([1, 2]) == [(1, 5, b"y", 1, 2, b"d", b"body")]


def test_jobs_answers_those_that_exist_and_each_once(owner: Owner) -> None:
    owner.put(*(job(seq) for seq in range(1, 5)))
    assert sorted(seqs(owner.store.jobs([4, 2, 2, 77, -1]))) == [2, 4]
    assert owner.store.jobs([]) == []


def test_jobs_are_found_among_thousands_of_seqs(owner: Owner) -> None:
    owner.put(*(job(seq) for seq in range(0, 5_000, 2)))
    assert len(owner.store.jobs(list(range(5_000)))) == 2_500


def test_rows_come_in_the_order_of_keys_then_seq(owner: Owner) -> None:
    edge = 2**63 - 1
    keys = [(-edge, 5), (-3, -9), (-3, 0), (-3, 0), (0, -edge), (0, edge), (edge, -1)]
    ordered = [job(10 + at, first=a, second=b) for at, (a, b) in enumerate(keys)]
    shuffled = Random(1).sample(ordered, len(ordered))
    owner.put(*shuffled)
    assert owner.store.rows(0, b"t", START, 100) == ordered


def test_rows_of_equal_keys_come_by_seq(owner: Owner) -> None:
    owner.put(*(job(seq) for seq in (5, 3, 9, 1)))
    assert seqs(owner.store.rows(0, b"t", START, 10)) == [1, 3, 5, 9]
    assert seqs(owner.store.rows(0, b"t", Position(0, 0, 3), 10)) == [5, 9]


def test_rows_go_on_strictly_after_a_position(owner: Owner) -> None:
    rows = [job(seq, first=seq // 4, second=seq // 2 % 2) for seq in range(12)]
    owner.put(*rows)
    read, position = [], START
    while found := owner.store.rows(0, b"t", position, 5):
        read += found
        position = after(found[-1])
    assert read == rows
    assert owner.store.rows(0, b"t", Position(2, -1, 99), 2) == rows[8:10]


def test_rows_of_other_turns_and_lanes_stay_out(owner: Owner) -> None:
    owner.put(*(job(seq, turn=turn) for seq, turn in enumerate(TURNS)))
    owner.put(*(job(100 + seq, 1, turn) for seq, turn in enumerate(TURNS)))
    for seq, turn in enumerate(TURNS):
        assert seqs(owner.store.rows(0, turn, START, 10)) == [seq]
    assert owner.store.rows(0, b"none", START, 10) == []
    assert owner.store.rows(9, b"a", START, 10) == []


def test_a_limit_of_nothing_reads_nothing(owner: Owner) -> None:
    owner.put(job(1))
    assert owner.store.rows(0, b"t", START, 0) == []
    assert owner.store.rows(0, b"t", START, -1) == []
    assert owner.store.turns(0, None, 0, 5) == []
    assert owner.store.turns(0, None, 5, 0) == []


def test_turns_come_in_the_order_of_their_names(owner: Owner) -> None:
    names = Random(2).sample(TURNS, len(TURNS))
    owner.put(*(job(seq, turn=turn) for seq, turn in enumerate(names)))
    owner.put(job(100, lane=-1, turn=b"a"), job(101, lane=1, turn=b"a"))
    assert [row[2] for row in owner.store.turns(0, None, 100, 1)] == TURNS


def test_turns_go_on_after_a_name(owner: Owner) -> None:
    owner.put(*(job(seq, turn=turn) for seq, turn in enumerate(TURNS)))
    read, name = [], None
    while found := owner.store.turns(0, name, 2, 1):
        read += [row[2] for row in found]
        name = read[-1]
    assert read == TURNS
    assert [row[2] for row in owner.store.turns(0, b"a\x01", 2, 1)] == [b"a\xff", b"b"]


def test_turns_give_the_first_rows_of_each(owner: Owner) -> None:
    rows = [job(seq, turn=b"%d" % (seq % 3), first=-seq) for seq in range(30)]
    owner.put(*rows)
    found = owner.store.turns(0, None, 2, 3)
    assert [(row[2], row[3]) for row in found] == [
        (b"0", -27),
        (b"0", -24),
        (b"0", -21),
        (b"1", -28),
        (b"1", -25),
        (b"1", -22),
    ]
    assert len(owner.store.turns(0, None, 100, 100)) == 30


def test_turns_of_an_empty_lane_are_none(owner: Owner) -> None:
    owner.put(job(1, lane=1), job(2, lane=3))
    assert owner.store.turns(2, None, 5, 5) == []
    assert owner.store.turns(1, b"t", 5, 5) == []


def test_a_move_takes_a_job_from_one_lane_to_another(owner: Owner) -> None:
    owner.put(job(1), job(2))
    for lane in (HELD, SCHEDULED, DEAD, 3):
        owner.commit(batch(moves=[(lane, b"m", 4, 5, b"changed", 1)]))
        moved = (1, lane, b"m", 4, 5, b"changed", b"body")
        assert owner.store.rows(lane, b"m", START, 10) == [moved]
        assert owner.store.turns(lane, None, 10, 10) == [moved]
        assert seqs(owner.store.rows(0, b"t", START, 10)) == [2]
        assert owner.store.jobs([1]) == [moved]


def test_what_is_leased_is_not_met_where_it_waited(owner: Owner) -> None:
    owner.put(
        job(1, turn=b"a"), job(2, turn=b"a"), job(3, turn=b"b"), job(4, turn=b"b")
    )
    for seq in (1, 3, 4):
        owner.commit(batch(moves=[(HELD, b"", 0, 0, b"leased", seq)]))
    owner.commit(batch(moves=[(HELD, b"", 0, 0, b"extended", 3)]))
    store = owner.store
    assert seqs(store.rows(0, b"a", START, 10)) == [2]
    assert store.rows(0, b"b", START, 10) == []
    for each in (1, 2):
        assert seqs(store.turns(0, None, 10, each)) == [2]
    held = [(seq, HELD, b"", 0, 0, b"leased", b"body") for seq in (1, 3, 4)]
    held[1] = (*held[1][:5], b"extended", b"body")
    assert store.rows(HELD, b"", START, 10) == held
    assert store.rows(HELD, b"", Position(0, 0, 1), 1) == held[1:2]
    assert store.turns(HELD, None, 10, 2) == held[:2]
    assert sorted(store.jobs([1, 2, 3, 4])) == sorted([*held, job(2, turn=b"a")])


def test_what_was_leased_is_met_where_it_is_put_back(owner: Owner) -> None:
    owner.put(job(1), job(2), job(3))
    owner.commit(batch(moves=[(HELD, b"", 0, 0, b"leased", seq) for seq in (1, 2, 3)]))
    owner.commit(batch(moves=[(0, b"t", 7, 0, b"back", 1)], ends=[2]))
    store = owner.store
    assert store.rows(0, b"t", START, 10) == [(1, 0, b"t", 7, 0, b"back", b"body")]
    assert seqs(store.rows(HELD, b"", START, 10)) == [3]
    assert sorted(seqs(store.jobs([1, 2, 3]))) == [1, 3]


def test_only_what_is_there_can_be_leased(owner: Owner) -> None:
    owner.put(job(1))
    with pytest.raises(Contradiction):
        owner.commit(batch(moves=[(HELD, b"", 0, 0, b"leased", 9)]))
    assert owner.store.rows(HELD, b"", START, 10) == []


def test_big_bodies_survive_moves_and_go_with_their_jobs(
    place: Place, owner: Owner
) -> None:
    bodies = {1: b"s" * 1024, 2: b"b" * 1025, 3: bytes(300_000)}
    owner.put(*(job(seq, body=body) for seq, body in bodies.items()))
    owner.commit(batch(moves=[(1, b"m", seq, 0, None, seq) for seq in bodies]))
    owner.store.close()
    again = Owner(place.open())
    assert {row[0]: row[6] for row in again.store.jobs([1, 2, 3])} == bodies
    assert [row[6] for row in again.store.rows(1, b"m", START, 9)] == [*bodies.values()]
    assert [row[6] for row in again.store.turns(1, None, 9, 9)] == [*bodies.values()]
    again.commit(batch(ends=[2, 3]))
    again.put(job(4, body=b"n" * 2000))
    assert seqs(again.store.rows(1, b"m", START, 9)) == [1]


def test_an_ended_job_is_gone(owner: Owner) -> None:
    owner.put(job(1), job(2), job(3))
    owner.commit(batch(ends=[1, 3]))
    assert seqs(owner.store.rows(0, b"t", START, 10)) == [2]
    assert seqs(owner.store.jobs([1, 2, 3])) == [2]
