"""What a statement costs does not grow with the jobs in the file."""

from array import array
from collections.abc import Callable

import apsw
import pytest

from headway.store.port import START, Position, Row
from headway.store.sqlite import bundle_statements, schema, statements
from headway.store.sqlite.rows import Rows
from tests.store.rows import job

BINDINGS = {
    "EPOCH": 0,
    "MOVE": 6,
    "HOLD": 2,
    "LET_GO": 1,
    "END": 1,
    "END_BODY": 1,
    "PENDING": 0,
    "SORTED_IN": 1,
    "LAST_JOB": 0,
    "LAST_ROW": 0,
    "JOBS_AMONG": 1,
    "FORGET_FACT": 2,
    "FORGET_KEYS": 1,
    "DROP_HISTORY": 1,
    "DROP_RESULTS": 2,
    "RESULTS": 1,
    "FIRST_OVER": 0,
    "FACTS": 1,
    "JOBS": 1,
    "FIND_KEY": 2,
    "ROWS_OF_SECOND": 6,
    "ROWS_OF_FIRST": 5,
    "ROWS": 4,
    "HELD": 2,
    "SOME_HELD": 3,
    "TURNS": 4,
    "HEADS": 3,
    "OLDEST": 0,
    "HISTORY": 1,
    "LAST_SEGMENT": 0,
    "APPEND": 4,
}
OF_BUNDLES = {
    "LAST_BUNDLED": 0,
    "TAIL": 3,
    "BUNDLES_OF_SECOND": 5,
    "BUNDLES_OF_FIRST": 4,
    "BUNDLES": 3,
    "NAMES": 3,
    "BUNDLE_BEFORE": 1,
    "BUNDLES_AMONG": 1,
    "HELD_BETWEEN": 2,
    "MEMBERS_LEFT": 1,
    "DROP_BUNDLES": 1,
    "DROP_GONE": 1,
    "GONE_OF": 1,
}
CARRIED = (
    "BUNDLE_BEFORE",
    "BUNDLES_AMONG",
    "MEMBERS_LEFT",
    "DROP_BUNDLES",
    "DROP_GONE",
    "LET_GO",
    "END",
    "END_BODY",
    "JOBS",
    "JOBS_AMONG",
    "RESULTS",
)
ALLOWED_SCANS = {
    "SCAN CONSTANT ROW",  # no table
    "SCAN names",  # the turns found so far, one by one
    "SCAN heads",  # the same
    "SCAN carray VIRTUAL TABLE INDEX 1:",  # the seqs asked for
    "SCAN pending",  # all of it is wanted
    "SCAN history",  # from one end, one row
    "SCAN bundles",  # the same
    "SCAN results USING COVERING INDEX results_by_time",  # the same
}


@pytest.fixture
def connection() -> apsw.Connection:
    opened = apsw.Connection(":memory:")
    schema.migrate(opened)
    return opened


@pytest.mark.parametrize("name", [*BINDINGS, *OF_BUNDLES])
def test_no_statement_scans_or_sorts(connection: apsw.Connection, name: str) -> None:
    module = bundle_statements if name in OF_BUNDLES else statements
    statement = "EXPLAIN QUERY PLAN " + getattr(module, name)
    count = (BINDINGS | OF_BUNDLES)[name]
    values = [apsw.carray(array("q", [1])) if name in CARRIED else 1] * count
    steps = [row[3] for row in connection.execute(statement, values)]
    assert steps
    for step in steps:
        assert "TEMP B-TREE" not in step
        assert step in ALLOWED_SCANS or not step.startswith("SCAN")


def fill(connection: apsw.Connection, jobs: int) -> None:
    rows = (job(seq, lane=seq % 2, turn=b"%d" % (seq % 4)) for seq in range(jobs))
    connection.executemany(statements.PUT, rows)


def steps_of(connection: apsw.Connection, jobs: int) -> list[int]:
    """Steps of SQLite's machine for reads at the head and deep inside a tie."""
    fill(connection, jobs)
    reader = Rows(connection)
    return [
        steps(connection, lambda: reader.rows(0, b"0", START, 10)),
        steps(connection, lambda: reader.rows(0, b"0", Position(0, 0, jobs - 100), 10)),
        steps(connection, lambda: reader.turns(0, None, 10, 3)),
        steps(connection, lambda: reader.turns(0, b"0", 10, 3)),
    ]


def steps(connection: apsw.Connection, read: Callable[[], list[Row]]) -> int:
    """In tens."""
    ticks: list[int] = []

    def count() -> bool:
        ticks.append(1)
        return False

    connection.set_progress_handler(count, 10)
    assert read()
    return len(ticks)


def test_reads_take_as_many_steps_among_many_jobs_as_among_few() -> None:
    taken = []
    for jobs in (400, 40_000):
        connection = apsw.Connection(":memory:")
        schema.migrate(connection)
        taken.append(steps_of(connection, jobs))
    for few, many in zip(*taken, strict=True):
        assert many <= few + 5
