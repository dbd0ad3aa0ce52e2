"""What only a store in PostgreSQL has to do: tables, steps, settings, lost connections."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from headway.store.errors import (
    Contradiction,
    Fenced,
    NotAStore,
    NotDurable,
    SchemaBehind,
    SchemaUnknown,
    StoreFailed,
)
from headway.store.postgres import store as store_module
from headway.store.postgres.connections import connect, shown
from headway.store.postgres.migrations import LOCK, State, check, migrate, state
from headway.store.postgres.reader import open_reader
from headway.store.postgres.steps import STEPS, Step
from headway.store.postgres.store import PostgresStore
from tests.postgres import shared
from tests.postgres.proxy import Cut, Proxy
from tests.store.rows import Owner, batch, job, segment

PARTS = """SELECT relname FROM pg_class
    WHERE relname LIKE 'history\\_%%' AND relkind = 'r'
        AND relname LIKE 'history\\_' || %s || '\\_%%' ORDER BY 1"""


@pytest.fixture
def address() -> Iterator[str]:
    with shared.database("care") as made:
        yield made


def execute(address: str, statement: str, *values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def parts(owner: Owner, address: str) -> list[str]:
    assert isinstance(owner.store, PostgresStore)
    rows = execute(address, PARTS, str(owner.store.id))
    return [str(name).rpartition("_")[2] for (name,) in rows]


def owner_at(address: str, partition: str = "p1") -> Owner:
    return Owner(PostgresStore(address, partition, part_events=10))


def test_history_lies_in_tables_that_are_dropped_as_a_whole(address: str) -> None:
    owner = owner_at(address)
    for first in range(1, 41, 4):
        owner.commit(batch(segment=segment(first, 4)))
    assert parts(owner, address) == ["0", "1", "2", "3"]
    owner.commit(batch(history_before=15))
    assert parts(owner, address) == ["1", "2", "3"]
    assert owner.store.history(13, 10**6)[0] == segment(13, 4)
    owner.commit(batch(history_before=1_000))
    assert parts(owner, address) == ["3"]
    owner.store.close()
    again = owner_at(address)
    again.commit(batch(segment=segment(41)))
    assert again.store.history(37, 10**6) == [segment(37, 4), segment(41)]
    again.store.close()


def test_a_reader_of_history_keeps_no_commit_waiting(address: str) -> None:
    """A table that somebody reads is dropped later."""
    owner = owner_at(address)
    for first in (1, 11, 21):
        owner.commit(batch(segment=segment(first, 10)))
    with psycopg.connect(address) as slow:
        slow.execute("SELECT * FROM headway.history").fetchall()
        owner.commit(batch(puts=[job(1)], history_before=21))
        assert parts(owner, address) == ["0", "1", "2"]
        owner.commit(batch(puts=[job(2)], history_before=21))
    store = owner.store
    assert isinstance(store, PostgresStore)
    store._drop_at_s = 0.0
    owner.commit(batch(history_before=21))
    assert parts(owner, address) == ["2"]
    store.close()


def test_partitions_of_one_database_know_nothing_of_each_other(address: str) -> None:
    one, two = owner_at(address, "one"), owner_at(address, "two")
    for owner, body in ((one, b"1"), (two, b"2")):
        owner.commit(
            batch(
                puts=[job(1, body=body)],
                facts=[("limit", b"k", body)],
                keys=[("q", "k", 1, body, 1)],
                results=[(1, 5, body)],
                segment=segment(1, blob=body),
            )
        )
    one.commit(batch(ends=[1], facts=[("limit", b"k", None)], keys_before_ms=9))
    one.commit(batch(results_over=(9, 9)))
    assert two.store.jobs([1]) == [job(1, body=b"2")]
    assert two.store.facts("limit") == [(b"k", b"2")]
    assert two.store.find_keys([("q", "k")]) == [("q", "k", 1, b"2", 1)]
    assert two.store.results([1]) == [(1, 5, b"2")]
    reader = open_reader(address, "two")
    assert reader.history(1, 100) == [segment(1, blob=b"2")]
    for opened in (one.store, two.store, reader):
        opened.close()


def test_whoever_returns_takes_over_only_if_nobody_else_has(address: str) -> None:
    first = PostgresStore(address, "p1", "me")
    assert first.take_over() == 1
    first.close()
    again = PostgresStore(address, "p1", "me", is_again=True)
    assert again.take_over() == 2
    again.close()
    other = PostgresStore(address, "p1", "another")
    assert other.take_over() == 3
    late = PostgresStore(address, "p1", "me", is_again=True)
    with pytest.raises(Fenced):
        late.take_over()
    late.close()
    other.commit(batch(puts=[job(1)]), 3)
    other.close()


def test_a_lost_connection_stops_the_store_for_good(address: str) -> None:
    owner = owner_at(address)
    owner.put(job(1))
    killed = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
    execute(address, f"{killed} application_name = 'headway'")
    for _ in range(2):
        with pytest.raises(StoreFailed):
            owner.put(job(2))
    with pytest.raises(StoreFailed):
        owner.store.jobs([1])
    with pytest.raises(StoreFailed):
        owner.store.take_over()
    owner.store.close()
    again = owner_at(address)
    assert again.store.jobs([1]) == [job(1)]
    again.store.close()


@pytest.mark.parametrize("cut", ["asked", "answered"])
def test_a_commit_without_an_answer_may_be_there_and_only_opening_anew_tells(
    address: str, cut: Cut
) -> None:
    proxy = Proxy(shared.cluster().port)
    direct = f":{shared.cluster().port}/"
    owner = owner_at(address.replace(direct, f":{proxy.port}/"))
    owner.commit(batch(puts=[job(1)], segment=segment(1)))
    proxy.cut = cut
    with pytest.raises(StoreFailed):
        owner.commit(batch(puts=[job(2)], segment=segment(2)))
    with pytest.raises(StoreFailed):
        owner.commit(batch(puts=[job(2)], segment=segment(2)))
    owner.store.close()
    proxy.close()
    again = owner_at(address)
    written = 2 if cut == "answered" else 1
    assert again.store.last_segment() == segment(written)
    assert len(again.store.jobs([1, 2])) == written
    again.store.close()


@pytest.mark.parametrize(
    "setting",
    [
        "synchronous_commit = off",
        "default_transaction_isolation = 'repeatable read'",
    ],
)
def test_a_database_that_may_lose_or_misread_is_refused(
    address: str, setting: str
) -> None:
    execute(address, f"ALTER DATABASE care SET {setting}")
    store = PostgresStore(address, "p1")
    with pytest.raises(NotDurable, match=setting.split(maxsplit=1)[0]):
        store.take_over()
    store.close()


def test_the_steps_are_taken_once_by_whoever_comes_first() -> None:
    with shared.database("steps", is_empty=True) as address:
        with pytest.raises(SchemaBehind, match="headway migrate"):
            PostgresStore(address, "p1").take_over()
        before, after = migrate(address, is_dry=True)
        assert (before.number, after.number) == (0, len(STEPS))
        with psycopg.connect(address) as connection:
            assert state(connection) == State(0, 0)
        with ThreadPoolExecutor(4) as threads:
            done = list(threads.map(lambda _: migrate(address), range(4)))
        assert sorted(one[0].number for one in done) == [0] + [len(STEPS)] * 3


def test_whoever_migrates_is_waited_for(address: str) -> None:
    later = (*STEPS, Step("CREATE TABLE headway.more(id integer)", 1))
    done = threading.Event()

    def take() -> None:
        migrate(address, steps=later)
        done.set()

    with psycopg.connect(address) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        thread = threading.Thread(target=take)
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while not execute(address, waiting)[0][0]:
            pass
        assert not done.is_set()
    thread.join()
    assert done.is_set()


def test_code_of_before_goes_on_beside_a_step_that_only_adds(address: str) -> None:
    owner = owner_at(address)
    later = (*STEPS, Step("ALTER TABLE headway.jobs ADD COLUMN more text", 1))
    migrate(address, steps=later)
    owner.put(job(1))
    owner.store.close()
    again = owner_at(address)
    assert again.store.jobs([1]) == [job(1)]
    again.store.close()


def test_a_schema_from_the_future_is_refused(address: str) -> None:
    future = (*STEPS, Step("SELECT 1", len(STEPS) + 1))
    migrate(address, steps=future)
    store = PostgresStore(address, "p1")
    with pytest.raises(SchemaUnknown):
        store.take_over()
    store.close()
    with pytest.raises(SchemaUnknown):
        migrate(address)


def test_a_step_that_fails_leaves_everything_as_it_was(address: str) -> None:
    broken = (*STEPS, Step("CREATE TABLE headway.half(id integer); SELECT 1 / 0", 1))
    with pytest.raises(StoreFailed):
        migrate(address, steps=broken)
    found = execute(address, "SELECT to_regclass('headway.half')")
    assert found == [(None,)]
    connection = connect(address)
    check(connection)
    connection.close()


def test_a_schema_of_something_else_is_left_alone() -> None:
    with shared.database("steps", is_empty=True) as address:
        execute(address, "CREATE SCHEMA headway")
        with pytest.raises(NotAStore):
            migrate(address)


def test_an_address_is_shown_without_its_secrets() -> None:
    address = "postgresql://me:hunter2@db.internal:5433/jobs?sslpassword=hunter3"
    assert shown(address) == "postgresql://db.internal:5433/jobs"
    assert "hunter" not in shown("postgresql://me:hunter2@[broken")


def test_the_epoch_row_is_not_rewritten_by_commits(address: str) -> None:
    """Nor is any other row: what every commit leaves behind grows without end."""
    owner = owner_at(address)
    where = "SELECT ctid, xmin FROM headway.partitions"
    before = execute(address, where)
    for number in range(1, 30):
        owner.commit(batch(puts=[job(number)], segment=segment(number)))
    assert execute(address, where) == before
    with pytest.raises(Contradiction):
        owner.put(job(1))
    owner.store.close()


def test_a_part_is_large_enough_to_be_made_rarely() -> None:
    assert store_module.PART_EVENTS >= 1_000_000
