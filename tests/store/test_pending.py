"""What was committed of jobs and is not sorted into their tables yet."""

from pathlib import Path

import apsw
import pytest

from headway.store.errors import Contradiction
from headway.store.port import HELD, START
from headway.store.sqlite import verify
from headway.store.sqlite.connections import open_for_reader
from headway.store.sqlite.options import MIB, SqliteOptions
from headway.store.sqlite.pending import Written, pack
from headway.store.sqlite.pending import unpack as unpack_really
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.store.rows import Owner, batch, job, seqs


def sorted_in(path: Path) -> list[int]:
    """Jobs that have a row."""
    connection = open_for_reader(path)
    try:
        return [seq for (seq,) in connection.execute("SELECT seq FROM jobs")]
    finally:
        connection.close()


def pending(path: Path) -> tuple[int, int]:
    """Commits that wait to be sorted in, and their bytes."""
    connection = open_for_reader(path)
    statement = "SELECT count(*), coalesce(sum(length(blob)), 0) FROM pending"
    try:
        ((commits, size),) = connection.execute(statement)
        return int(str(commits)), int(str(size))
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def test_a_job_that_comes_and_goes_never_becomes_a_row(path: Path) -> None:
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=2, pending_bytes=MIB)))
    for seq in range(1, 40):
        owner.commit(batch(puts=[job(seq)]))
        owner.commit(batch(moves=[(HELD, b"", 0, 0, b"leased", seq)]))
        owner.commit(batch(ends=[seq]))
        assert sorted_in(path) == []
    assert owner.store.jobs(list(range(50))) == []
    owner.store.close()


def test_jobs_that_stay_are_sorted_in_together(path: Path) -> None:
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=3)))
    for seq in range(1, 5):
        owner.put(job(seq))
        assert sorted_in(path) == []
    owner.put(job(5))
    assert sorted_in(path) == [1, 2, 3, 4]
    assert pending(path)[0] == 1
    assert seqs(owner.store.rows(0, b"t", START, 9)) == [1, 2, 3, 4, 5]
    owner.store.close()


def test_what_no_longer_matters_is_thrown_out(path: Path) -> None:
    options = SqliteOptions(pending_bytes=10_000)
    owner = Owner(SqliteStore(path, options))
    owner.put(job(1, body=b"stays"))
    for seq in range(2, 100):
        owner.put(job(seq, body=bytes(900)))
        owner.commit(batch(ends=[seq]))
        _, size = pending(path)
        assert size < 12_000
    assert sorted_in(path) == []
    assert owner.store.jobs([1]) == [job(1, body=b"stays")]
    owner.store.close()


def test_a_closed_store_has_everything_in_its_tables(path: Path) -> None:
    owner = Owner(SqliteStore(path))
    owner.put(job(1), job(2))
    assert pending(path)[0] == 1
    owner.store.close()
    assert sorted_in(path) == [1, 2]
    assert pending(path) == (0, 0)


def test_rows_come_in_order_wherever_they_are(path: Path) -> None:
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=0)))
    owner.put(job(1, first=10), job(2, first=20), job(3, first=30), job(9, turn=b"u"))
    owner.commit(batch(facts=[("", b"", b"")]))
    assert sorted_in(path) == [1, 2, 3, 9]
    owner.commit(
        batch(
            puts=[job(4, first=15), job(5, first=40)],
            moves=[(0, b"t", 35, 0, b"later", 1), (0, b"t", 5, 0, b"came", 9)],
            ends=[2],
        )
    )
    rows = owner.store.rows(0, b"t", START, 9)
    assert seqs(rows) == [9, 4, 3, 1, 5]
    assert [row[5] for row in rows] == [b"came", None, None, b"later", None]
    assert seqs(owner.store.rows(0, b"t", START, 2)) == [9, 4]
    assert owner.store.rows(0, b"u", START, 9) == []
    owner.store.close()


def test_a_batch_that_contradicts_what_is_pending_leaves_it_as_it_is(
    path: Path,
) -> None:
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=0)))
    owner.put(job(1), job(2))
    owner.commit(batch(ends=[1]))
    for wrong in (batch(ends=[1]), batch(moves=[(0, b"t", 0, 0, None, 1)])):
        with pytest.raises(Contradiction):
            owner.commit(wrong)
    assert seqs(owner.store.rows(0, b"t", START, 9)) == [2]
    owner.put(job(3))
    assert seqs(owner.store.rows(0, b"t", START, 9)) == [2, 3]
    owner.store.close()


@pytest.mark.parametrize(
    "blob",
    [b"\xc1", pack([], [], [7]), pack([job(1)], [], []), pack([], [], [2, 2])],
    ids=["torn", "ends nothing", "puts again", "ends twice"],
)
def test_damage_to_what_is_pending_is_named(path: Path, blob: bytes) -> None:
    owner = Owner(SqliteStore(path))
    owner.put(job(1), job(2))
    owner.store.close()
    assert problems(path) == []
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO pending VALUES(1, ?)", (blob,))
    connection.close()
    (problem,) = problems(path)
    assert problem.startswith("pending: commit 1: ")


def test_a_live_file_is_checked_as_of_one_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner sorts in between two looks: nothing is there twice."""
    owner = Owner(SqliteStore(path, SqliteOptions(pending_rows=1)))
    owner.put(job(1), job(2), job(3))

    def unpack(blob: bytes) -> Written:
        if not sorted_in(path):
            owner.put(job(4))
        assert sorted_in(path) == [1, 2, 3]
        return unpack_really(blob)

    monkeypatch.setattr(verify, "unpack", unpack)
    assert problems(path) == []
    owner.store.close()
