"""What is known to be in the tables, bundle by bundle and job by job."""

from headway.store.sqlite.known import KNOWN_MAX, STRANGER, Known


def members(*seqs: int) -> list[tuple[int, int, bytes]]:
    return [(seq, 0, b"") for seq in seqs]


def test_jobs_of_whole_bundles_are_known_by_their_bundle() -> None:
    known = Known()
    known.know(members(*range(20, 30)), 20, is_whole=True)
    known.know(members(*range(5, 8)), 5, is_whole=True)
    known.read([1, 40])
    assert [known.bundle_of(seq) for seq in (1, 5, 7, 20, 29, 40)] == [
        0,
        5,
        5,
        20,
        20,
        0,
    ]
    assert known.strangers([0, 1, 4, 5, 8, 19, 20, 29, 30, 41]) == {0, 4, 8, 19, 30, 41}


def test_a_bundle_that_some_have_left_is_known_job_by_job() -> None:
    known = Known()
    known.know(members(3, 4, 6), 3, is_whole=True)
    known.know(members(11, 12), 10, is_whole=False)
    assert known.strangers(range(3, 13)) == {5, 7, 8, 9, 10}
    known.leave(3, [3, 6])
    known.leave(10, [11])
    assert known.strangers(range(3, 13)) == {3, *range(5, 12)}
    assert known.bundle_of(12) == 10


def test_who_has_left_a_bundle_is_a_stranger_and_the_others_are_not() -> None:
    known = Known()
    known.know(members(*range(1, 6)), 1, is_whole=True)
    known.leave(1, [1, 3])
    assert [known.bundle_of(seq) for seq in range(1, 6)] == [
        STRANGER,
        1,
        STRANGER,
        1,
        1,
    ]
    known.know(members(2, 4, 5), 1, is_whole=False)
    known.leave(1, [2, 4, 5])
    assert known.strangers(range(1, 6)) == set(range(1, 6))


def test_a_bundle_that_ends_at_once_is_forgotten_as_a_whole() -> None:
    known = Known()
    known.know(members(*range(1, 6)), 1, is_whole=True)
    assert known.bundle_of(3) == 1
    known.leave(1, range(1, 6))
    assert known.strangers(range(1, 6)) == set(range(1, 6))
    assert len(known) == 0


def test_a_bundle_that_was_not_whole_stays_known_job_by_job() -> None:
    """Somebody else's lease among its seqs may end, and it look whole when it is read."""
    known = Known()
    known.know(members(1, 2, 3), 1, is_whole=False)
    known.know(members(1, 2, 3), 1, is_whole=True)
    known.leave(1, [1, 2, 3])
    assert known.strangers([1, 2, 3]) == {1, 2, 3}


def test_rows_are_forgotten_one_by_one() -> None:
    known = Known()
    known.read([1, 2, 3])
    known.forget([2, 7])
    assert known.strangers([1, 2, 3]) == {2}


def test_no_more_is_remembered_than_there_is_room_for() -> None:
    known = Known()
    known.know(members(1, 2), 1, is_whole=True)
    known.read(range(10, 9 + KNOWN_MAX))
    assert known.bundle_of(2) == 1
    known.read([5, 6])
    assert known.strangers([1, 2, 10, 5]) == {1, 2, 10}
