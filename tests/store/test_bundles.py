"""Jobs that wait one behind the other and are one row."""

from pathlib import Path

import apsw
import pytest

from headway.store.errors import Contradiction
from headway.store.port import HELD, START, Position, Row
from headway.store.sqlite import bundling, schema
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.pending import pack
from headway.store.sqlite.snapshot import Snapshot
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.store.rows import Owner, batch, job, seqs

FEW = SqliteOptions(pending_rows=0, bundle_least=4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def owner(path: Path) -> Owner:
    return Owner(SqliteStore(path, FEW))


def sort_in(owner: Owner) -> None:
    """A commit that does nothing to jobs sorts in what others have left."""
    owner.commit(batch(facts=[("", b"", b"")]))


def table(path: Path, statement: str) -> list[tuple[int, ...]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute(statement))
    finally:
        connection.close()


def shapes(path: Path) -> list[tuple[int, ...]]:
    """Of each bundle its first and last job and their number."""
    return table(path, "SELECT seq, last, count FROM bundles ORDER BY seq")


def rows(path: Path) -> list[int]:
    return [seq for (seq,) in table(path, "SELECT seq FROM jobs ORDER BY seq")]


def run(first: int, last: int, *, turn: bytes = b"t", second: int = 0) -> list[Row]:
    return [job(seq, turn=turn, second=second) for seq in range(first, last + 1)]


def everybody(owner: Owner) -> list[int]:
    return seqs(owner.store.rows(0, b"t", START, 1_000))


def test_jobs_that_follow_each_other_in_a_turn_are_one_row(
    path: Path, owner: Owner
) -> None:
    owner.put(*run(1, 6), *run(7, 9, turn=b"u"), *run(10, 13, turn=b"u", second=5))
    sort_in(owner)
    assert shapes(path) == [(1, 6, 6), (7, 13, 7)]
    assert rows(path) == []
    assert seqs(owner.store.turns(0, None, 9, 2)) == [1, 2, 7, 8]
    assert owner.store.rows(0, b"u", START, 9) == [
        *run(7, 9, turn=b"u"),
        *run(10, 13, turn=b"u", second=5),
    ]
    assert owner.store.jobs([0, 3, 13, 14]) == [job(3), job(13, turn=b"u", second=5)]
    owner.store.close()
    assert problems(path) == []


def test_too_few_too_large_and_those_out_of_line_are_rows(
    path: Path, owner: Owner
) -> None:
    owner.put(
        *run(1, 3),
        *run(4, 5, turn=b"u"),
        job(6, second=9),
        job(7, body=bytes(2_000)),
        job(8, second=2),
        *run(9, 11, second=9),
        job(12, lane=HELD, turn=b""),
    )
    sort_in(owner)
    assert shapes(path) == [(6, 11, 4)]
    assert rows(path) == [1, 2, 3, 4, 5, 7, 8, 12]
    assert everybody(owner) == [1, 2, 3, 7, 8, 6, 9, 10, 11]
    owner.store.close()
    assert problems(path) == []


def test_many_are_several_bundles(path: Path, owner: Owner) -> None:
    most = bundling.JOBS_MAX
    owner.put(*run(1, 2 * most + 5))
    sort_in(owner)
    ends = [
        (1, most, most),
        (most + 1, 2 * most, most),
        (2 * most + 1, 2 * most + 5, 5),
    ]
    assert shapes(path) == ends
    assert everybody(owner) == list(range(1, 2 * most + 6))
    owner.store.close()


def test_reading_goes_on_within_a_bundle_and_between_them(owner: Owner) -> None:
    owner.put(*run(1, 6), *run(7, 12, second=3))
    sort_in(owner)
    owner.put(*run(13, 18, second=3))
    sort_in(owner)
    read: list[int] = []
    position = START
    while found := owner.store.rows(0, b"t", position, 4):
        read += seqs(found)
        position = Position(*found[-1][3:5], found[-1][0])
    assert read == list(range(1, 19))
    assert seqs(owner.store.rows(0, b"t", Position(0, 2, 99), 3)) == [7, 8, 9]
    assert seqs(owner.store.rows(0, b"t", Position(0, 3, 12), 2)) == [13, 14]
    owner.store.close()


def test_what_comes_behind_bundles_is_one_at_once(path: Path) -> None:
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=9, bundle_least=4)))
    owner.put(*run(1, 10))
    sort_in(owner)
    owner.put(*run(11, 15), job(16, turn=b"u"))
    assert shapes(path) == [(1, 10, 10), (11, 15, 5)]
    assert rows(path) == []
    assert everybody(owner) == list(range(1, 16))
    owner.commit(batch(puts=run(17, 21), ends=[18]))
    assert shapes(path)[2:] == []
    assert everybody(owner) == [*range(1, 16), 17, 19, 20, 21]
    owner.store.close()
    assert problems(path) == []


def test_what_would_overlap_is_rows(path: Path) -> None:
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=20, bundle_least=4)))
    owner.put(*run(101, 130, second=50))
    sort_in(owner)
    owner.put(*run(131, 133, second=50))  # too few to be one at once
    owner.put(*run(134, 138, second=60))
    owner.put(*run(139, 142, second=55))  # before those that came before
    owner.put(*run(1, 5, second=70))  # by seq
    assert shapes(path) == [(101, 130, 30), (134, 138, 5)]
    owner.store.close()
    assert rows(path) == [1, 2, 3, 4, 5, 131, 132, 133, 139, 140, 141, 142]
    again = Owner(SqliteStore(path, FEW))
    ordered = [*range(101, 134), *range(139, 143), *range(134, 139), *range(1, 6)]
    assert everybody(again) == ordered
    again.store.close()
    assert problems(path) == []


def test_a_bundle_ends_with_its_last_job(path: Path, owner: Owner) -> None:
    owner.put(*run(1, 5))
    for over in ([2, 4], [1], [5, 3]):
        sort_in(owner)
        owner.commit(batch(ends=over))
    assert shapes(path) == [(1, 5, 5)]
    assert everybody(owner) == []
    sort_in(owner)
    assert shapes(path) == []
    assert table(path, "SELECT * FROM gone") == []
    owner.store.close()
    assert problems(path) == []


def test_a_leased_job_stays_in_its_bundle(path: Path, owner: Owner) -> None:
    owner.put(*run(1, 5))
    sort_in(owner)
    owner.commit(batch(moves=[(HELD, b"", 0, 0, b"leased", 2)]))
    sort_in(owner)
    held = (2, HELD, b"", 0, 0, b"leased", b"body")
    assert owner.store.rows(HELD, b"", START, 9) == [held]
    assert owner.store.jobs([2]) == [held]
    assert everybody(owner) == [1, 3, 4, 5]
    assert rows(path) == []
    owner.commit(batch(moves=[(0, b"t", 0, 0, b"again", 2)]))
    sort_in(owner)
    assert rows(path) == [2]
    assert everybody(owner) == [1, 2, 3, 4, 5]
    assert owner.store.jobs([2]) == [(2, 0, b"t", 0, 0, b"again", b"body")]
    owner.store.close()
    assert problems(path) == []


def test_a_job_that_has_left_its_bundle_is_not_taken_for_a_member(
    path: Path, owner: Owner
) -> None:
    owner.put(*run(1, 5))
    sort_in(owner)
    owner.commit(batch(moves=[(0, b"t", 0, 0, b"again", 2)]))
    sort_in(owner)
    assert everybody(owner) == [1, 2, 3, 4, 5]  # its bundle is read, too
    owner.commit(batch(moves=[(0, b"u", 0, 0, b"elsewhere", 2)]))
    sort_in(owner)
    assert owner.store.jobs([2]) == [(2, 0, b"u", 0, 0, b"elsewhere", b"body")]
    owner.commit(batch(ends=[2, 3]))
    sort_in(owner)
    assert everybody(owner) == [1, 4, 5]
    assert shapes(path) == [(1, 5, 5)]
    owner.store.close()
    assert problems(path) == []


def test_a_new_owner_knows_who_is_in_a_bundle(path: Path, owner: Owner) -> None:
    owner.put(*run(10, 15))
    sort_in(owner)
    owner.commit(batch(ends=[11]))
    owner.store.close()
    again = Owner(SqliteStore(path, FEW))
    for wrong in (
        batch(ends=[11]),
        batch(ends=[9]),
        batch(ends=[16]),
        batch(puts=[job(12)]),
        batch(moves=[(0, b"t", 0, 0, None, 11)]),
    ):
        with pytest.raises(Contradiction):
            again.commit(wrong)
    again.commit(batch(ends=[12], moves=[(0, b"u", 0, 0, b"x", 13)]))
    sort_in(again)
    assert everybody(again) == [10, 14, 15]
    assert rows(path) == [13]
    again.put(job(11))
    assert everybody(again) == [10, 11, 14, 15]
    again.store.close()
    assert problems(path) == []


def test_a_batch_that_fails_leaves_bundles_as_they_are(
    path: Path, owner: Owner
) -> None:
    owner.put(*run(1, 5))
    sort_in(owner)
    everybody(owner)
    owner.commit(batch(ends=[1, 2]))
    with pytest.raises(Contradiction):
        # What is pending is sorted in first, and that is taken back, too.
        owner.commit(batch(puts=[job(3)]))
    assert everybody(owner) == [3, 4, 5]
    sort_in(owner)
    assert everybody(owner) == [3, 4, 5]
    owner.store.close()
    assert problems(path) == []


def test_whoever_looks_at_the_file_sees_them(path: Path, owner: Owner) -> None:
    owner.put(*run(1, 5), job(6, turn=b"u"), *run(7, 11))
    sort_in(owner)
    owner.commit(
        batch(ends=[2], moves=[(HELD, b"", 0, 0, b"leased", 3)], results=[(4, 9, b"r")])
    )
    with Snapshot(path) as seen:
        assert seqs(list(seen.rows())) == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        assert seen.jobs_count() == 10
        assert list(seen.early_results()) == [(4,)]
    sort_in(owner)
    with Snapshot(path) as seen:
        found = list(seen.rows())
        assert seqs(found) == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
        assert found[1][1:6] == (HELD, b"", 0, 0, b"leased")
        assert seen.jobs_count() == 10
        assert list(seen.early_results()) == [(4,)]
    owner.store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE bundles SET count = 4 WHERE seq = 1", "is not what its row says"),
        ("UPDATE bundles SET last = 4 WHERE seq = 1", "is not what its row says"),
        ("UPDATE bundles SET second = 9 WHERE seq = 1", "is not what its row says"),
        ("UPDATE bundles SET seq = 2 WHERE seq = 1", "is not what its row says"),
        ("UPDATE bundles SET blob = x'c1' WHERE seq = 1", "bundle 1: "),
        ("UPDATE bundles SET lane = -1 WHERE seq = 1", "in lane -1"),
        ("UPDATE bundles SET first = 0 WHERE seq = 6", "overlaps with one before"),
        ("INSERT INTO gone VALUES(1, 99)", "job 99 has left bundle 1 and was not"),
        ("INSERT INTO gone VALUES(3, 3)", "has left bundle 3, which is not there"),
        ("INSERT INTO gone SELECT 1, seq FROM numbers", "bundle 1 is empty"),
        ("INSERT INTO held VALUES(17, NULL)", "job 17 is held and not there"),
        (
            "INSERT INTO jobs VALUES(2, 0, x'', 0, 0, NULL, x'')",
            "job 2 is in bundle 1 and has a row",
        ),
    ],
)
def test_damage_is_named(path: Path, owner: Owner, statement: str, said: str) -> None:
    owner.put(*run(1, 5, second=1))
    sort_in(owner)
    owner.put(*[job(seq, first=1) for seq in range(6, 11)])
    owner.store.close()
    assert shapes(path) == [(1, 5, 5), (6, 10, 5)]
    assert problems(path) == []
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TEMP TABLE numbers(seq)")
    connection.execute("INSERT INTO numbers VALUES(1), (2), (3), (4), (5)")
    connection.execute(statement)
    connection.close()
    assert any(said in problem for problem in problems(path))


def test_a_file_from_before_bundles_is_checked_and_goes_on(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, schema.MIGRATIONS[: schema.BUNDLES_SINCE - 1])
    connection.execute("INSERT INTO jobs VALUES(1, 0, x'74', 0, 0, NULL, x'62')")
    put = "INSERT INTO pending VALUES(1, ?)"
    connection.execute(put, (pack(run(2, 6), [], [1]),))
    connection.close()
    assert problems(path) == []
    with Snapshot(path) as seen:
        assert seqs(list(seen.rows())) == [2, 3, 4, 5, 6]
        assert seen.jobs_count() == 5
    owner = Owner(SqliteStore(path, FEW))
    sort_in(owner)
    assert shapes(path) == [(2, 6, 5)]
    assert everybody(owner) == [2, 3, 4, 5, 6]
    owner.store.close()
    assert problems(path) == []


def test_a_read_that_goes_on_within_a_bundle_knows_what_has_become_of_it(
    owner: Owner,
) -> None:
    owner.put(*run(1, 12))
    sort_in(owner)
    assert seqs(owner.store.rows(0, b"t", START, 5)) == [1, 2, 3, 4, 5]
    owner.commit(batch(ends=[6], moves=[(0, b"u", 0, 0, None, 7)]))
    assert seqs(owner.store.rows(0, b"t", Position(0, 0, 5), 3)) == [8, 9, 10]
    sort_in(owner)
    assert seqs(owner.store.rows(0, b"t", Position(0, 0, 5), 3)) == [8, 9, 10]
    owner.commit(batch(ends=[9, 11]))
    sort_in(owner)
    assert seqs(owner.store.rows(0, b"t", Position(0, 0, 8), 9)) == [10, 12]


def test_a_read_that_goes_on_elsewhere_begins_anew(owner: Owner) -> None:
    owner.put(*run(1, 8, second=3), *run(9, 16, turn=b"u", second=3))
    sort_in(owner)
    assert seqs(owner.store.rows(0, b"t", START, 5)) == [1, 2, 3, 4, 5]
    assert seqs(owner.store.rows(0, b"u", Position(0, 3, 9), 2)) == [10, 11]
    assert seqs(owner.store.rows(0, b"t", Position(0, 3, 2), 2)) == [3, 4]
    assert seqs(owner.store.rows(0, b"t", Position(0, 0, 0), 2)) == [1, 2]
    assert seqs(owner.store.rows(0, b"t", Position(0, 3, 6), 9)) == [7, 8]
    owner.put(job(17, second=3), *run(18, 24, second=4))
    assert seqs(owner.store.rows(0, b"t", Position(0, 3, 7), 4)) == [8, 17, 18, 19]


def test_what_comes_to_stand_before_a_bundle_that_was_read_is_read_first(
    owner: Owner,
) -> None:
    owner.put(*run(1, 8, second=5))
    sort_in(owner)
    assert seqs(owner.store.rows(0, b"t", START, 2)) == [1, 2]
    owner.put(*run(9, 14, second=4))
    sort_in(owner)
    assert seqs(owner.store.rows(0, b"t", START, 8)) == [*range(9, 15), 1, 2]
    assert seqs(owner.store.rows(0, b"t", Position(0, 5, 2), 2)) == [3, 4]
