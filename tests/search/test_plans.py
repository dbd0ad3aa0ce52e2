"""No search scans or sorts: each walks along an index, however many jobs there are."""

from array import array
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import pytest

from headway.core.errors import BadValue
from headway.core.states import JobState
from headway.search import lookups, plans, schema, statements
from headway.search.query import By, Search, check

NO_PLAN = {
    "PUT",
    "PUT_MANY",
    "PUT_PLAIN",
    "PUT_MANY_PLAIN",
    "PUT_MANY_TOLD",
    "PUT_GAP",
    "PUT_MARK",
    "PUT_LABEL",
    "PUT_TOLD",
    "PUT_REPLY_KEY",
    "PUT_GROUP",
    "COUNT",
    "COUNT_LANE",
}
"""They only put rows in."""
NO_STATEMENT = {"COLUMNS", "DONE", "ROWS", "MOVED", "HANDED"}
ONCE = {"ENDED"}
"""Read when the index is opened, and not again."""
WRITING = sorted(
    {name for name in vars(statements) if name.isupper() and name[0] != "_"}
    - NO_PLAN
    - NO_STATEMENT
    - ONCE
)
READING = sorted(
    {name for name in vars(lookups) if name.isupper() and name[0] != "_"} - NO_STATEMENT
)
ALLOWED_SCANS = {
    "SCAN place",  # one row
    "SCAN gaps",  # from one end, no further than asked
    "SCAN marks",
    "SCAN carray VIRTUAL TABLE INDEX 1:",  # the seqs asked for
}


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    opened = schema.open_for_indexer(tmp_path / "index.db")
    yield opened
    opened.close()


def steps_of(connection: apsw.Connection, statement: str, values: Any) -> list[str]:
    explained = connection.execute("EXPLAIN QUERY PLAN " + statement, values)
    return [row[3] for row in explained]


def check_steps(steps: list[str]) -> None:
    assert steps
    for step in steps:
        assert "TEMP B-TREE" not in step, steps
        assert step in ALLOWED_SCANS or not step.startswith("SCAN"), steps


@pytest.mark.parametrize("name", WRITING)
def test_no_statement_that_feeds_it_scans(
    connection: apsw.Connection, name: str
) -> None:
    statement = getattr(statements, name)
    value = apsw.carray(array("q", [1])) if "carray" in statement else 1
    check_steps(steps_of(connection, statement, (value,) * statement.count("?")))


@pytest.mark.parametrize("name", READING)
def test_no_lookup_scans_or_sorts(connection: apsw.Connection, name: str) -> None:
    statement = getattr(lookups, name)
    check_steps(steps_of(connection, statement, (1,) * statement.count("?")))


def searches() -> Iterator[Search]:
    """Every set of filters in both orders, from both ends."""
    queues = (None, "q")
    names = (None, "n")
    states: tuple[tuple[JobState, ...], ...] = (
        (),
        (JobState.DEAD,),
        (JobState.READY, JobState.DONE),
    )
    flags = (False, True)
    for queue, tenant, kind, worker, reason in product(queues, *[names] * 4):
        for some, by, has_labels, is_grouped in product(states, By, flags, flags):
            yield Search(
                queue=queue,
                tenant=tenant,
                kind=kind,
                worker=worker,
                reason=reason,
                error=reason,
                states=some,
                labels={"a": "b", "c": "d"} if has_labels else {},
                group=1 if is_grouped else None,
                by=by,
                since_ms=5,
                until_ms=9,
                is_newest_first=is_grouped != has_labels,
            )


def test_every_search_walks_along_the_index_it_names(
    connection: apsw.Connection,
) -> None:
    paths = set()
    for search in searches():
        try:
            check(search)
            path = plans.path_of(search)
        except BadValue:
            continue
        paths.add(path)
        plan = plans.plan(search, 3, 7)
        steps = steps_of(connection, plan.statement, plan.values)
        check_steps(steps)
        index = path.source.rpartition(" ")[2]
        if path.source.startswith("jobs INDEXED"):
            walks = [step for step in steps if f"INDEX {index} (" in step]
            key = path.key.partition(".")[2].replace("seq", "rowid")
            assert walks, steps
            assert all(f"{key}>? AND {key}<?" in step for step in walks), steps
    all_paths = {path for path in vars(plans).values() if isinstance(path, plans.Path)}
    assert paths == all_paths


def ticks(connection: apsw.Connection, search: Search) -> int:
    """Tens of steps of SQLite's machine for one page."""
    count = 0

    def tick() -> bool:
        nonlocal count
        count += 1
        return False

    plan = plans.plan(search, 0, plans.AFTER_ALL)
    connection.set_progress_handler(tick, 10)
    assert len(list(connection.execute(plan.statement, plan.values))) == 6
    connection.set_progress_handler(None)
    return count


def fill(connection: apsw.Connection, jobs: range) -> None:
    rows = [
        (
            *(seq, "q", "kind", f"t{seq % 2}", 1, 1, 1, seq, None, 0, seq % 2, seq),
            *(seq, 0, 0, 1, 0, 0, "", f"w{seq % 2}", "failed", "", 0),
        )
        for seq in jobs
    ]
    connection.executemany(statements.PUT, rows)
    connection.executemany(statements.PUT_LABEL, [("a", "b", row[0]) for row in rows])


def test_a_page_takes_as_many_steps_among_many_jobs_as_among_few(
    connection: apsw.Connection,
) -> None:
    scheduled = (JobState.SCHEDULED,)
    wanted = [
        Search(limit=5),
        Search(limit=5, queue="q", states=scheduled),
        Search(limit=5, queue="q", by=By.CHANGED),
        Search(limit=5, states=scheduled, by=By.CHANGED),
        Search(limit=5, queue="q", tenant="t1"),
        Search(limit=5, queue="q", kind="kind"),
        Search(limit=5, worker="w1"),
        Search(limit=5, reason="failed"),
        Search(limit=5, labels={"a": "b"}),
    ]
    fill(connection, range(1, 101))
    few = [ticks(connection, search) for search in wanted]
    fill(connection, range(101, 10_101))
    many = [ticks(connection, search) for search in wanted]
    for before, after in zip(few, many, strict=True):
        assert after <= before + 5
