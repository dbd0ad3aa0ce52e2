"""What docs/postgres.md shows works as it stands there."""

import re
from pathlib import Path

import psycopg

from headway.core.commands import Lease
from headway.runtime.tenure import Tenure
from headway.server.inbox import enqueue_of
from tests.postgres import shared
from tests.postgres.test_kills import Deaf

PAGE = Path(__file__).resolve().parents[2] / "docs" / "postgres.md"
PATIENCE_S = 60.0


def block(language: str, word: str) -> str:
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)
    (found,) = (text for text in blocks if word in text)
    return found


def test_the_examples_of_the_page_leave_a_job_each() -> None:
    with (
        shared.database("page") as address,
        psycopg.connect(address, autocommit=True) as connection,
    ):
        connection.execute("CREATE TABLE orders(id integer)")
        tenure = Tenure(address, "p1", read=enqueue_of, heard=Deaf())
        try:
            example = block("python", "enqueue(connection")
            named = "postgresql://shop@localhost/jobs"
            assert named in example
            exec(example.replace(named, address), {})
            first = tenure.submit(Lease(wait_ms=60_000)).result(PATIENCE_S)
            connection.execute(block("sql", "convert_to"))
            second = tenure.submit(Lease(wait_ms=60_000)).result(PATIENCE_S)
        finally:
            tenure.close()
        assert connection.execute("SELECT id FROM orders").fetchall() == [(42,)]
        connection.close()
    assert [job.payload for job in first.jobs] == [b'{"order": 42}']
    assert [job.spec.kind for job in second.jobs] == ["receipt"]
