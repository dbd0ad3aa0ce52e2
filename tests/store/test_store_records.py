"""What every store does beside jobs: facts, idempotency keys and history."""

import pytest

from headway.store.errors import HistoryGone
from tests.store.places import Place
from tests.store.rows import Owner, batch, segment


def test_facts_are_kept_by_kind_and_key(place: Place, owner: Owner) -> None:
    owner.commit(
        batch(facts=[("a", b"\xff", b"1"), ("a", b"", b""), ("b", b"", b"other")])
    )
    owner.store.close()
    again = Owner(place.open())
    assert again.store.facts("a") == [(b"", b""), (b"\xff", b"1")]
    assert again.store.facts("b") == [(b"", b"other")]
    assert again.store.facts("c") == []


def test_a_fact_can_be_overwritten_and_forgotten(owner: Owner) -> None:
    owner.commit(batch(facts=[("a", b"k", b"1"), ("a", b"l", b"1")]))
    owner.commit(batch(facts=[("a", b"k", b"2"), ("a", b"none", None)]))
    assert owner.store.facts("a") == [(b"k", b"2"), (b"l", b"1")]
    owner.commit(batch(facts=[("a", b"k", None)]))
    assert owner.store.facts("a") == [(b"l", b"1")]


def test_of_several_facts_about_one_key_the_last_counts(owner: Owner) -> None:
    owner.commit(batch(facts=[("a", b"k", b"1"), ("a", b"k", None), ("a", b"k", b"2")]))
    assert owner.store.facts("a") == [(b"k", b"2")]
    owner.commit(batch(facts=[("a", b"k", b"3"), ("a", b"k", None)]))
    assert owner.store.facts("a") == []


def test_keys_are_found_by_queue_and_key(place: Place, owner: Owner) -> None:
    one, two = ("mail", "k", 1, b"f", 10), ("text", "k", 2, b"g", 20)
    odd = ("mail", "ключ\x00'", 3, b"", 30)
    owner.commit(batch(keys=[one, two, odd]))
    owner.store.close()
    again = Owner(place.open())
    wanted = [("mail", "k"), ("mail", "none"), ("mail", odd[1]), ("mail", "k")]
    assert sorted(again.store.find_keys(wanted)) == [one, odd]
    assert again.store.find_keys([]) == []


def test_a_key_that_comes_again_replaces_the_old_one(owner: Owner) -> None:
    owner.commit(batch(keys=[("q", "k", 1, b"f", 10)]))
    owner.commit(batch(keys=[("q", "k", 2, b"g", 50), ("q", "k", 3, b"h", 60)]))
    owner.commit(batch(keys_before_ms=40))
    assert owner.store.find_keys([("q", "k")]) == [("q", "k", 3, b"h", 60)]


def test_keys_before_a_time_are_forgotten(owner: Owner) -> None:
    owner.commit(batch(keys=[("q", str(at), at, b"", at) for at in range(10)]))
    owner.commit(batch(keys=[("q", "late", 10, b"", 3)], keys_before_ms=4))
    names = [*(str(at) for at in range(10)), "late"]
    found = owner.store.find_keys([("q", name) for name in names])
    assert sorted(key[2] for key in found) == [4, 5, 6, 7, 8, 9]


def test_history_begins_with_the_segment_that_holds_the_number(owner: Owner) -> None:
    parts = [segment(1, 5), segment(6, 1), segment(7, 3)]
    assert owner.store.history(1, 100) == []
    assert owner.store.last_segment() is None
    for part in parts:
        owner.commit(batch(segment=part))
    assert owner.store.history(0, 100) == parts
    assert owner.store.history(1, 100) == parts
    assert owner.store.history(5, 100) == parts
    assert owner.store.history(6, 100) == parts[1:]
    assert owner.store.history(9, 100) == parts[2:]
    assert owner.store.history(10, 100) == []
    assert owner.store.history(99, 100) == []
    assert owner.store.last_segment() == parts[2]


def test_an_answer_of_history_is_bounded_in_bytes_but_not_empty(owner: Owner) -> None:
    parts = [segment(1, blob=b""), segment(2, blob=b"x" * 60), segment(3, blob=b"yyy")]
    for part in parts:
        owner.commit(batch(segment=part))
    assert owner.store.history(1, 0) == parts[:1]
    assert owner.store.history(1, 59) == parts[:1]
    assert owner.store.history(1, 60) == parts[:2]
    assert owner.store.history(2, 1) == parts[1:2]
    assert owner.store.history(1, 63) == parts


def test_history_goes_on_after_a_reopen(place: Place, owner: Owner) -> None:
    owner.commit(batch(segment=segment(1, 4)))
    owner.store.close()
    again = Owner(place.open())
    assert again.store.last_segment() == segment(1, 4)
    again.commit(batch(segment=segment(5)))
    assert again.store.history(1, 1000) == [segment(1, 4), segment(5)]


def test_only_whole_segments_are_dropped(owner: Owner) -> None:
    for part in (segment(1, 5), segment(6, 5), segment(11, 5)):
        owner.commit(batch(segment=part))
    owner.commit(batch(history_before=5))
    assert owner.store.history(1, 1000)[0] == segment(1, 5)
    owner.commit(batch(history_before=6))
    assert owner.store.history(6, 1000) == [segment(6, 5), segment(11, 5)]
    owner.commit(batch(history_before=15))
    assert owner.store.history(11, 1000) == [segment(11, 5)]


def test_dropped_history_is_told_apart_from_no_history(owner: Owner) -> None:
    for first in (1, 2, 3):
        owner.commit(batch(segment=segment(first)))
    owner.commit(batch(history_before=3))
    with pytest.raises(HistoryGone) as raised:
        owner.store.history(2, 1000)
    assert raised.value.oldest == 3
    with pytest.raises(HistoryGone):
        owner.store.history(0, 1000)
    assert owner.store.history(3, 1000) == [segment(3)]


def test_the_newest_segment_is_never_dropped(place: Place, owner: Owner) -> None:
    owner.commit(batch(segment=segment(1, 2)))
    owner.commit(batch(segment=segment(3, 2), history_before=1_000))
    assert owner.store.last_segment() == segment(3, 2)
    owner.store.close()
    again = Owner(place.open())
    again.commit(batch(segment=segment(5), history_before=1_000))
    assert again.store.history(5, 1000) == [segment(5)]


def test_results_are_kept_until_they_are_dropped(place: Place, owner: Owner) -> None:
    left = [(seq, 10 * seq, b"%d" % seq) for seq in range(1, 6)]
    assert owner.store.first_over_ms() is None
    owner.commit(batch(results=left))
    owner.store.close()
    again = Owner(place.open())
    assert sorted(again.store.results([1, 3, 3, 77])) == [left[0], left[2]]
    assert again.store.results([]) == []
    assert again.store.first_over_ms() == 10


def test_results_that_are_over_go_a_few_at_a_time_and_the_oldest_first(
    owner: Owner,
) -> None:
    owner.commit(
        batch(results=[(1, 30, b""), (2, 10, b""), (3, 20, b""), (4, 20, b"")])
    )
    owner.commit(batch(results_over=(9, 100)))
    assert owner.store.first_over_ms() == 10
    owner.commit(batch(results_over=(20, 2)))
    assert sorted(owner.store.results([1, 2, 3, 4])) == [(1, 30, b""), (4, 20, b"")]
    owner.commit(batch(results_over=(30, -1)))
    assert owner.store.first_over_ms() == 20
    owner.commit(batch(results_over=(30, 100)))
    assert owner.store.results([1, 2, 3, 4]) == []
