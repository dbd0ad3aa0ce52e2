"""A real lake: the page of it, and the queries that the documentation shows."""

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from headway.cli.report_page import write_page
from headway.spark.lake.lake import Lake
from headway.spark.report.figures import gather
from headway.spark.report.source import Span, of_lake
from tests.server.process import Served
from tests.spark.figures import ATTACK
from tests.spark.test_report_page import Parsed
from tests.spark.work import enqueue, lease, run, work

pytestmark = pytest.mark.xdist_group("spark")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "queries.md"
TABLES = (
    *("gold.promises", "gold.waits", "gold.limits", "gold.limit_tenants"),
    *("silver.jobs", "bronze.events"),
)
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Of fourteen jobs; some names and errors in it are attacks on a page."""
    folder = tmp_path_factory.mktemp("reported")
    served = Served(folder / "data")
    try:
        work(served)
        enqueue(served, 2, tenant=ATTACK, kind=ATTACK)
        limits = [{"type": "concurrency", "name": "one", "max": 1}]
        # One runs already, so nothing starts; a limit that goes is told at once.
        assert served.ask("PUT", "/v1/queues/mail", {"limits": limits}).status < 300
        assert lease(served, 1) == []
        assert served.ask("PUT", "/v1/queues/mail", {}).status < 300
        tokens = lease(served, 3)
        failures = [{"token": one, "error": ATTACK, "bury": True} for one in tokens]
        assert served.ask("POST", "/v1/nack", {"jobs": failures}).status == 200
        yield run(spark, served, folder / "lake")
    finally:
        served.stop()


def test_a_page_of_a_real_lake_says_what_happened(
    spark: Any, lake: Lake, tmp_path: Path
) -> None:
    figures = gather(of_lake(spark, lake), lake.published(), Span())
    assert figures.promises is not None
    assert figures.promises.total.judged == 14
    assert figures.promises.total.withdrawn == 1
    assert figures.waits is not None
    assert figures.waits.starts == 14
    assert figures.runs is not None
    assert {one.kind for one in figures.runs.kinds} == {"k", ATTACK}
    assert figures.limits is not None
    (limit,) = figures.limits.limits
    assert (limit.limit_name, limit.capacity, limit.highest) == ("one", 1, 1)
    assert limit.stops == 1
    out = tmp_path / "report.html"
    size = write_page(spark, lake.place.root, out, Span(), "Mail & more")
    made = out.read_text()
    assert size == len(made.encode())
    assert ATTACK not in made
    found = Parsed(made)
    assert "Mail & more" in found.texts
    assert ATTACK in found.texts
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_every_query_runs_in_its_engines_and_both_say_the_same(
    spark: Any, lake: Lake
) -> None:
    duck = duckdb.connect()
    duck.execute("set timezone = 'UTC'")
    for name in TABLES:
        view = name.replace(".", "_")
        lake.read(spark, name).createOrReplaceTempView(view)
        files = DeltaTable(lake[name].path).file_uris()
        duck.read_parquet(files, hive_partitioning=True).create_view(view)
    answers: dict[str, dict[str, list[Row]]] = {}
    for heading, engines, text in queries():
        found = answers.setdefault(heading, {})
        if "DuckDB" in engines:
            found["DuckDB"] = plain(duck.execute(text).fetchall())
        if "Spark" in engines:
            found["Spark"] = plain(asked(spark, text))
    wanted = {"Attainment by lane", "p99 by lane and hour", "Dead letters by error"}
    assert wanted <= set(answers)
    for heading, found in answers.items():
        assert set(found) == {"DuckDB", "Spark"}, heading
        assert found["DuckDB"], heading
        assert same(found["DuckDB"], found["Spark"]), (heading, found)
    dead = answers["Dead letters by error"]["DuckDB"]
    assert [row[:4] for row in dead] == [
        ("mail", ATTACK, ATTACK, 2.0),
        ("mail", "k", ATTACK, 1.0),
        ("mail", "k", "KeyError: 'x'", 1.0),
    ]


def test_a_number_may_differ_by_the_last_place_it_was_rounded_to() -> None:
    # 9 / 60000 is a tie for Spark's decimals and lies below it for DuckDB's doubles.
    assert same([("a", 1.0, 0.0001)], [("a", 1.0, 0.0002)])
    assert not same([("a", 1.0, 0.0001)], [("a", 1.0, 0.0003)])
    assert not same([("a", 1.0)], [("a", 2.0)])
    assert not same([("a", 1.0)], [("b", 1.0)])
    assert not same([("a", None)], [("a", 0.0)])
    assert not same([("a", 1.0)], [])
    assert same([("a", 0.002), ("b", 0.002)], [("b", 0.003), ("a", 0.002)])


def same(ours: list[Row], theirs: list[Row]) -> bool:
    """But for ties, which engines round either way, and the order that follows."""
    if len(ours) != len(theirs):
        return False
    pairs = zip(sorted(ours, key=_words), sorted(theirs, key=_words), strict=True)
    return all(
        len(one) == len(other) and all(map(_near, one, other)) for one, other in pairs
    )


def _words(row: Row) -> list[str]:
    return [value for value in row if isinstance(value, str)]


def _near(one: Any, other: Any) -> bool:
    if not (isinstance(one, float) and isinstance(other, float)):
        return bool(one == other)
    if one.is_integer() and other.is_integer():
        return one == other
    digits = [Decimal(repr(value)).as_tuple().exponent for value in (one, other)]
    places = max(-int(after) for after in digits)
    return abs(one - other) < 1.5 * 10.0**-places


def queries() -> list[tuple[str, str, str]]:
    """Heading, engine and text of each."""
    found = []
    heading = ""
    pattern = r"^## (.*)$|^```sql\n-- (.*)\n([\s\S]*?)^```$"
    for one in re.finditer(pattern, PAGE.read_text(), re.MULTILINE):
        heading = one[1] or heading
        if one[2]:
            found.append((heading, one[2], one[3]))
    return found


def asked(spark: Any, text: str) -> list[Row]:
    """Moments as text, or Python shows them in the zone of this machine."""
    frame = spark.sql(text)
    shown = [
        f"cast({name} as string)" if kind == "timestamp" else name
        for name, kind in frame.dtypes
    ]
    return [tuple(row) for row in frame.selectExpr(*shown).collect()]


def plain(rows: list[Row]) -> list[Row]:
    """Numbers as numbers and moments as text, whichever engine told them."""
    return [tuple(_plain(value) for value in row) for row in rows]


def _plain(value: Any) -> str | float | None:
    if value is None or isinstance(value, str):
        is_moment = value is not None and re.match(r"\d{4}-\d\d-\d\d \d\d:", value)
        return value[:19] if value is not None and is_moment else value
    return str(value)[:19] if hasattr(value, "year") else float(value)
