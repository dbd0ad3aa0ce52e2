"""Turns are read as one, whether their jobs are in the tables, pending, or both."""

from itertools import product
from pathlib import Path
from random import Random

import msgspec
import pytest

from headway.store.errors import Contradiction
from headway.store.port import HELD, START, Position
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.store import SqliteStore
from tests.store.model import Model
from tests.store.rows import Owner, batch, job, seqs
from tests.store.simulated import SimulatedPlace

TURNS = (b"a", b"b", b"c")
LEASED = (HELD, b"", 0, 0, b"leased")


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    """Six jobs are in the tables; what comes now is pending."""
    path = tmp_path / "jobs.db"
    first = Owner(SqliteStore(path))
    first.put(*(job(seq, turn=TURNS[seq % 3]) for seq in range(6)))
    first.store.close()
    return Owner(SqliteStore(path))


def leased(owner: Owner, *taken: int) -> None:
    owner.commit(batch(moves=[(*LEASED, seq) for seq in taken]))


@pytest.mark.parametrize("each", [1, 2])
def test_a_turn_whose_head_has_left_begins_with_the_next(
    owner: Owner, each: int
) -> None:
    leased(owner, 1)
    heads = {1: [0, 4, 2], 2: [0, 3, 4, 2, 5]}
    assert seqs(owner.store.turns(0, None, 9, each)) == heads[each]


@pytest.mark.parametrize("each", [1, 2])
def test_a_turn_that_all_have_left_is_none(owner: Owner, each: int) -> None:
    leased(owner, 0, 1)
    owner.commit(batch(ends=[3]))
    rest = {1: [4, 2], 2: [4, 2, 5]}
    assert seqs(owner.store.turns(0, None, 2, each)) == rest[each]


@pytest.mark.parametrize("each", [1, 2])
def test_a_turn_that_the_tables_do_not_know_is_in_its_place(
    owner: Owner, each: int
) -> None:
    owner.put(job(6, turn=b"aa"), job(7, turn=b"z"))
    names = [row[2] for row in owner.store.turns(0, None, 9, each)]
    assert list(dict.fromkeys(names)) == [b"a", b"aa", b"b", b"c", b"z"]
    assert [row[2] for row in owner.store.turns(0, b"a", 2, 1)] == [b"aa", b"b"]
    assert [row[2] for row in owner.store.turns(0, b"c", 9, 1)] == [b"z"]


def test_one_that_comes_before_the_others_of_its_turn_is_their_head(
    owner: Owner,
) -> None:
    owner.put(job(6, turn=b"b", first=-1))
    assert seqs(owner.store.turns(0, None, 9, 1)) == [0, 6, 2]
    assert seqs(owner.store.rows(0, b"b", START, 2)) == [6, 1]


def test_the_head_of_a_long_turn_may_have_left(owner: Owner) -> None:
    owner.put(*(job(seq, turn=b"long") for seq in range(10, 5_000)))
    path = Path(owner.store.path)  # type: ignore[attr-defined]
    owner.store.close()
    again = Owner(SqliteStore(path, SqliteOptions(pending_rows=5_000)))
    leased(again, *range(10, 4_990))
    assert seqs(again.store.turns(0, b"c", 1, 2)) == [4_990, 4_991]
    assert seqs(again.store.rows(0, b"long", START, 3)) == [4_990, 4_991, 4_992]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_has_happened_turns_are_read_as_one(seed: int) -> None:
    chance = Random(seed)
    place = SimulatedPlace(wal_bytes=20_000)
    rows = chance.choice([0, 3, 9, 40])
    place.options = msgspec.structs.replace(place.options, pending_rows=rows)
    owner, model = Owner(place.open()), Model()
    last = 0
    for _ in range(50):
        puts = [
            job(last + number, turn=chance.choice(TURNS), first=chance.randrange(3))
            for number in range(1, chance.randrange(5))
        ]
        last += len(puts)
        known = sorted(model.jobs)
        gone = chance.sample(known, min(len(known), chance.randrange(4)))
        moves = [
            (*_somewhere(chance), seq)
            for seq in chance.sample(known, min(len(known), chance.randrange(5)))
        ]
        now = batch(puts=puts, moves=moves, ends=gone)
        owner.commit(now)
        model.commit(now)
        _check_reads(owner, model, chance)
    place.close()


def _somewhere(chance: Random) -> tuple[int, bytes, int, int, bytes | None]:
    if chance.random() < 0.5:
        return LEASED
    return 0, chance.choice(TURNS), chance.randrange(3), 0, b"back"


def _check_reads(owner: Owner, model: Model, chance: Random) -> None:
    for after, limit, each in product((None, b"", b"a", b"b"), (1, 2, 3), (1, 2)):
        found = owner.store.turns(0, after, limit, each)
        assert found == model.turns(0, after, limit, each)
    for turn, limit in product(TURNS, (1, 3, 9)):
        after_row = Position(chance.randrange(-1, 3), 0, chance.randrange(60))
        for beyond in (START, after_row):
            found = owner.store.rows(0, turn, beyond, limit)
            assert found == model.rows(0, turn, beyond, limit)


def test_a_job_that_was_read_is_not_believed_in_when_it_is_over(
    tmp_path: Path,
) -> None:
    owner = Owner(SqliteStore(tmp_path / "jobs.db", SqliteOptions(pending_rows=1)))
    owner.put(job(1), job(2), job(3))
    owner.put(job(4))
    assert seqs(owner.store.rows(0, b"t", START, 9)) == [1, 2, 3, 4]
    owner.commit(batch(ends=[1, 2]))
    with pytest.raises(Contradiction):
        owner.commit(batch(ends=[1]))
    owner.commit(batch(puts=[job(5)]))
    assert seqs(owner.store.rows(0, b"t", START, 9)) == [3, 4, 5]
    for seq in (1, 2):
        with pytest.raises(Contradiction):
            owner.commit(batch(ends=[seq]))
