"""Names as long as callers may choose them: no index sets a bound to them."""

from headway.store.port import START
from tests.store.places import Place
from tests.store.rows import Owner, batch, job, seqs


def test_turns_of_any_length_are_told_apart(place: Place, owner: Owner) -> None:
    shared = b"t" * 5_000
    turns = [b"a", shared, shared + b"1", shared + b"2", b"u" * 1_024, b"u" * 1_025]
    owner.put(*(job(seq, turn=turn) for seq, turn in enumerate(turns)))
    for seq, turn in enumerate(turns):
        assert owner.store.rows(0, turn, START, 9) == [job(seq, turn=turn)]
    read: list[bytes] = []
    while found := owner.store.turns(0, read[-1] if read else None, 2, 1):
        read += [row[2] for row in found]
    assert sorted(read) == turns
    owner.commit(batch(moves=[(0, b"a", 0, 0, None, 1), (0, shared, 0, 0, None, 0)]))
    assert seqs(owner.store.rows(0, b"a", START, 9)) == [1]
    assert owner.store.jobs([0])[0][2] == shared


def test_facts_of_any_length_are_told_apart(owner: Owner) -> None:
    keys = [b"k" * length for length in (0, 64, 65, 5_000, 5_001)]
    owner.commit(batch(facts=[("reply", key, b"v") for key in keys]))
    assert owner.store.facts("reply") == [(key, b"v") for key in keys]
    owner.commit(batch(facts=[("reply", keys[3], None), ("reply", keys[4], b"w")]))
    assert owner.store.facts("reply")[3:] == [(keys[4], b"w")]


def test_idempotency_keys_of_any_length_are_told_apart(owner: Owner) -> None:
    names = [("q", "k" * 5_000), ("q", "k" * 5_001), ("qk", "k" * 4_999), ("a", "b\0")]
    names += [("a\0b", ""), ("", "q"), ("ü" * 128, "\U0001f600" * 1_024)]
    keys = [(*name, seq, b"f", 1) for seq, name in enumerate(names)]
    owner.commit(batch(keys=keys))
    assert sorted(owner.store.find_keys(names)) == sorted(keys)
