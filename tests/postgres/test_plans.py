"""A commit reads the rows it names and no others, whatever else is in the tables."""

from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from headway.store.port import HELD
from headway.store.postgres import statements
from headway.store.postgres.store import PostgresStore
from tests.postgres import shared
from tests.store.rows import Owner, batch, job

READ = """SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes
    WHERE schemaname = 'headway' AND relname = 'jobs'"""
OLDER = 3_000
NAMED = 10


@pytest.fixture
def address() -> Iterator[str]:
    with shared.database("plans") as made:
        # What the server knows of the table stays what it was when it was empty.
        execute(made, "ALTER TABLE headway.jobs SET (autovacuum_enabled = off)")
        yield made


def execute(address: str, statement: LiteralString) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


def rows_read(owner: Owner) -> int:
    """Entries that scans of the indexes have found until now."""
    store = owner.store
    assert isinstance(store, PostgresStore)
    connection = store._connection
    connection.execute("SELECT pg_stat_force_next_flush()")
    return int(connection.execute(READ).fetchone()[0])


def cycle(owner: Owner, first: int) -> None:
    """Puts, moves and ends a few jobs, in a commit each."""
    seqs = range(first, first + NAMED)
    owner.commit(batch(puts=[job(seq) for seq in seqs]))
    owner.commit(batch(moves=[(HELD, b"", 0, 0, None, seq) for seq in seqs]))
    owner.commit(batch(ends=list(seqs)))


def read_by_a_cycle_after_older_jobs(address: str) -> int:
    owner = Owner(PostgresStore(address))
    for number in range(12):
        cycle(owner, number * NAMED)
    owner.commit(batch(puts=[job(1_000 + number) for number in range(OLDER)]))
    before = rows_read(owner)
    cycle(owner, 1_000 + OLDER)
    found = rows_read(owner) - before
    owner.store.close()
    return found


def test_jobs_that_wait_for_long_cost_the_commits_of_others_nothing(
    address: str,
) -> None:
    # A moved job is found twice: where it was, and where it is.
    assert read_by_a_cycle_after_older_jobs(address) <= 3 * NAMED


def test_without_that_a_commit_reads_all_that_is_older(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the test above would show nothing."""
    former = statements.COMMIT.replace("commit_2", "commit_1")
    monkeypatch.setattr(statements, "COMMIT", former)
    assert read_by_a_cycle_after_older_jobs(address) >= OLDER


def test_rows_that_a_transaction_left_open_keeps_are_not_read_again(
    address: str,
) -> None:
    owner = Owner(PostgresStore(address))
    with psycopg.connect(address) as idle:
        idle.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        idle.execute("SELECT count(*) FROM headway.jobs")
        for number in range(100):
            cycle(owner, number * NAMED)
        before = rows_read(owner)
        cycle(owner, 100 * NAMED)
        assert rows_read(owner) - before <= 3 * NAMED
    owner.store.close()
