"""The SQLite store's file: settings, schema, ownership, and how the log is kept short."""

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from headway.store.errors import (
    Corrupt,
    NotAStore,
    NotLocal,
    NotOpen,
    SchemaUnknown,
    StoreError,
    StoreFailed,
    StoreLocked,
)
from headway.store.port import HELD, START
from headway.store.sqlite import place, pragmas, schema
from headway.store.sqlite.connections import open_for_owner, open_for_reader
from headway.store.sqlite.options import SqliteOptions
from headway.store.sqlite.snapshot import Snapshot
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.verify import problems
from tests.store.rows import Owner, batch, job, segment

KIB = 1024
SHORT_LOG = SqliteOptions(wal_passive_bytes=200 * KIB, wal_truncate_bytes=800 * KIB)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "partition.db"


def test_every_setting_is_as_it_should_be(path: Path) -> None:
    connection = open_for_owner(path, SqliteOptions())
    expected = {
        "journal_mode": "wal",
        "synchronous": 2,
        "wal_autocheckpoint": 0,
        "page_size": 4096,
        "mmap_size": 0,
        "cache_size": -16 * KIB,
        "temp_store": 2,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "locking_mode": "normal",
    }
    assert {name: connection.pragma(name) for name in expected} == expected
    connection.close()


def test_a_setting_that_does_not_take_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = ("journal_mode", "NO_SUCH_MODE", "wal")
    monkeypatch.setattr(pragmas, "WRITING", (never,))
    with pytest.raises(StoreFailed, match="journal_mode"):
        SqliteStore(path).take_over()


def test_a_reader_cannot_write(path: Path) -> None:
    store = SqliteStore(path)
    store.take_over()
    reading = open_for_reader(path)
    assert reading.pragma("query_only") == 1
    with pytest.raises(apsw.ReadOnlyError):
        reading.execute("DELETE FROM jobs")
    reading.close()
    store.close()


def test_readers_are_bounded_and_see_what_is_committed(path: Path) -> None:
    store = SqliteStore(path, SqliteOptions(readers_max=1))
    owner = Owner(store)
    owner.commit(batch(segment=segment(1)))
    with store.reader() as reader:
        assert reader.history(1, 100) == [segment(1)]
        owner.commit(batch(segment=segment(2)))
        assert reader.history(1, 100) == [segment(1), segment(2)]
        with pytest.raises(StoreError, match="1 readers"), store.reader():
            pass
    with pytest.raises(NotOpen):
        reader.history(1, 100)
    with store.reader() as reader:
        assert reader.last_segment() == segment(2)
    store.close()


LATER_STEP = "ALTER TABLE history ADD COLUMN extra INTEGER"


def test_a_migrated_schema_equals_a_fresh_one() -> None:
    steps = (*schema.MIGRATIONS, LATER_STEP)
    fresh, migrated = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    schema.migrate(fresh, steps)
    for number in range(1, len(steps) + 1):
        schema.migrate(migrated, steps[:number])
    statement = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    assert list(fresh.execute(statement)) == list(migrated.execute(statement))
    assert schema.version_of(fresh) == schema.version_of(migrated) == len(steps)


def test_a_step_that_fails_is_taken_back_whole() -> None:
    connection = apsw.Connection(":memory:")
    broken = "CREATE TABLE more(x INTEGER) STRICT; INSERT INTO nowhere VALUES(1)"
    with pytest.raises(apsw.SQLError):
        schema.migrate(connection, (*schema.MIGRATIONS, broken))
    assert schema.version_of(connection) == len(schema.MIGRATIONS)
    assert not connection.table_exists("main", "more")


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, (*schema.MIGRATIONS, LATER_STEP))
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaUnknown, match=f"up to {len(schema.MIGRATIONS)}"):
        SqliteStore(path).take_over()
    assert path.read_bytes() == before
    assert f"up to {len(schema.MIGRATIONS)}" in problems(path)[0]


def test_a_file_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at " * 100)
    before = path.read_bytes()
    with pytest.raises(NotAStore, match=r"partition\.db is not a SQLite database"):
        SqliteStore(path).take_over()
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="something else"):
        SqliteStore(path).take_over()
    assert path.read_bytes() == before
    SqliteStore(path).close()


def test_a_directory_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="nowhere"):
        SqliteStore(tmp_path / "nowhere" / "partition.db").take_over()


def test_a_damaged_page_stops_the_store(path: Path) -> None:
    owner = Owner(SqliteStore(path))
    owner.put(*(job(seq, body=bytes(900)) for seq in range(300)))
    owner.store.close()
    content = bytearray(path.read_bytes())
    rows = 4096 * 20  # behind the beginnings of all tables
    content[rows:] = b"\xa5" * (len(content) - rows)
    path.write_bytes(content)
    again = SqliteStore(path)
    again.take_over()
    for _ in range(2):
        with pytest.raises(Corrupt):
            again.jobs(list(range(300)))
    again.close()


OWN = """
import sys
from headway.store.sqlite.store import SqliteStore
store = SqliteStore(sys.argv[1])
print(store.take_over(), flush=True)
sys.stdin.readline()
"""


def test_a_second_process_is_locked_out_until_the_first_is_dead(path: Path) -> None:
    command = [sys.executable, "-c", OWN, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        store = SqliteStore(path)
        with pytest.raises(StoreLocked, match=f"owned by process {process.pid}"):
            store.take_over()
        with pytest.raises(NotOpen):
            store.jobs([1])
        process.kill()
        process.wait()
        assert store.take_over() == 2
        store.close()


def test_a_second_store_in_one_process_is_locked_out_too(path: Path) -> None:
    first, second = SqliteStore(path), SqliteStore(path)
    first.take_over()
    with pytest.raises(StoreLocked, match=r"partition\.db\.owner"):
        second.take_over()
    first.close()
    assert second.take_over() == 2
    second.close()


def test_an_exclusive_store_keeps_every_other_connection_out(path: Path) -> None:
    store = SqliteStore(path, SqliteOptions(is_exclusive=True))
    Owner(store).put(job(1))
    with pytest.raises(StoreLocked):
        open_for_reader(path, SqliteOptions(busy_ms=0))
    assert not path.with_name("partition.db-shm").exists()
    store.close()


MOUNTS = """\
24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 24 0:40 / /mnt/far rw - nfs4 server:/x rw
41 40 8:2 / /mnt/far/near rw - xfs /dev/sdb rw
42 24 0:41 / /mnt/my\\040share rw - cifs //server/x rw
43 24 8:3 / /mnt/over rw - ext4 /dev/sdc rw
44 24 0:42 / /mnt/over rw - fuse.sshfs user@host:/x rw
a line that says nothing
"""


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("/var/partition.db", "ext4"),
        ("/mnt/far/partition.db", "nfs4"),
        ("/mnt/farther/partition.db", "ext4"),
        ("/mnt/far/near/deep/partition.db", "xfs"),
        ("/mnt/my share/partition.db", "cifs"),
        ("/mnt/over/partition.db", "fuse.sshfs"),
    ],
)
def test_the_file_system_of_a_path_is_known(where: str, kind: str) -> None:
    assert place.filesystem_type(Path(where), MOUNTS) == kind
    if kind in {"nfs4", "cifs", "fuse.sshfs"}:
        with pytest.raises(NotLocal, match=kind):
            place.refuse_network(Path(where), MOUNTS)
    else:
        place.refuse_network(Path(where), MOUNTS)


def test_a_network_file_system_is_refused_unless_allowed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = path.with_name("mountinfo")
    mounts.write_text("24 1 0:40 / / rw - nfs server:/x rw\n")
    monkeypatch.setattr(place, "MOUNTS", mounts)
    with pytest.raises(NotLocal):
        SqliteStore(path).take_over()
    assert not path.exists()
    allowed = SqliteStore(path, SqliteOptions(is_network_allowed=True))
    assert allowed.take_over() == 1
    allowed.close()


def test_a_log_is_copied_and_begun_anew_when_it_has_grown(path: Path) -> None:
    store = SqliteStore(path, SHORT_LOG)
    owner = Owner(store)
    log = path.with_name("partition.db-wal")
    for number in range(100):
        owner.put(job(number, body=bytes(20 * KIB)))
        assert store.wal_bytes < 300 * KIB
    assert log.stat().st_size < 400 * KIB
    assert path.stat().st_size > 1500 * KIB
    assert not store.is_wal_stuck
    store.close()
    assert not log.exists()


def test_a_reader_of_an_old_state_raises_the_alarm_until_it_ends(path: Path) -> None:
    store = SqliteStore(path, SHORT_LOG)
    owner = Owner(store)
    reading = open_for_reader(path)
    reading.execute("BEGIN; SELECT count(*) FROM jobs")
    for number in range(60):
        owner.put(job(number, body=bytes(20 * KIB)))
    was_stuck = store.is_wal_stuck
    assert store.wal_bytes > 800 * KIB
    reading.close()
    for number in range(60, 80):
        owner.put(job(number, body=bytes(20 * KIB)))
    assert (was_stuck, store.is_wal_stuck) == (True, False)
    assert store.wal_bytes < 300 * KIB
    assert path.with_name("partition.db-wal").stat().st_size < 400 * KIB
    store.close()


def test_a_file_of_the_first_schema_is_brought_up_to_date(path: Path) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, schema.MIGRATIONS[:1])
    connection.close()
    assert problems(path) == []
    store = SqliteStore(path)
    epoch = store.take_over()
    store.commit(batch(results=[(1, 50, b"left")]), epoch)
    assert store.results([1]) == [(1, 50, b"left")]
    store.close()


def test_what_was_leased_before_leases_were_written_apart_is_still_leased(
    path: Path,
) -> None:
    connection = apsw.Connection(str(path))
    schema.migrate(connection, schema.MIGRATIONS[: schema.HELD_SINCE - 1])
    rows = [(1, HELD, b"", 0, 0, b"old", b"body"), job(2), job(3)]
    connection.executemany("INSERT INTO jobs VALUES(?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    with Snapshot(path) as before:
        assert list(before.rows()) == rows
    assert problems(path) == []
    owner = Owner(SqliteStore(path))
    owner.commit(batch(moves=[(HELD, b"", 0, 0, b"new", 2)]))
    held = [rows[0], (2, HELD, b"", 0, 0, b"new", b"body")]
    assert owner.store.rows(HELD, b"", START, 10) == held
    owner.commit(batch(moves=[(HELD, b"", 0, 0, b"extended", 1)]))
    held[0] = (1, HELD, b"", 0, 0, b"extended", b"body")
    assert owner.store.rows(HELD, b"", START, 10) == held
    owner.commit(batch(ends=[1, 2]))
    assert owner.store.rows(HELD, b"", START, 10) == []
    owner.store.close()
    with Snapshot(path) as after:
        assert list(after.rows()) == [rows[2]]
    assert problems(path) == []
