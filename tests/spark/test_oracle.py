"""Every figure of every gold table is what plain SQL over the raw events says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from deltalake import DeltaTable

from headway.spark.columns import Columns
from headway.spark.gold.all import GOLD, VIEWS
from headway.spark.gold.table import DISTINCT_LOG, SKETCH_K
from headway.spark.lake.lake import Lake
from headway.spark.pipeline.batch import Tell
from headway.spark.pipeline.run import Pipeline, Settings
from tests.server.process import Served
from tests.spark.oracle import Oracle, dumped
from tests.spark.raw import count_of, dump
from tests.spark.traffic import Traffic

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1_200)]

TABLES = {gold.name: gold for gold in (*GOLD, *VIEWS)}
KEYS = {name: ("day", *gold.keys) for name, gold in TABLES.items()}
UNSAID = ("weight_told",)
"""Columns that are there to be added up, besides sketches."""
QUANTILES = (0.5, 0.95, 0.99)
RANK_OFF = 0.01
SKETCHES = {
    "gold.waits": ("wait_sketch", "wait_ms", "starts where true"),
    "gold.runs": ("run_sketch", "took", "tries where true"),
    "gold.replies": ("answer_sketch", "waited_ms", "e where type = 'reply'"),
}


class Made(NamedTuple):
    lake: Lake
    oracle: Oracle


def make(
    spark: Any, place: Path, jobs: int, batches: int, tell: Tell = lambda _: None
) -> Made:
    """A lake in several batches, and the oracle of the same history."""
    served = Served(place / "data")
    try:
        Traffic(served, seed=jobs).run(jobs)
        lake = Lake(str(place / "lake"))
        size = count_of(served.address) // batches + 1
        settings = Settings(
            url=served.address, events_per_batch=size, events_per_task=size // 2 + 1
        )
        record = Pipeline(spark, lake, settings, tell).run()
        # Jobs go on running out of time meanwhile.
        count = dump(served.address, place / "raw.parquet", record.vector)
    finally:
        served.stop()
    assert record.events == count
    assert record.batch > 1
    return Made(lake, Oracle(dumped(place / "raw.parquet")))


@pytest.fixture(scope="module")
def made(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    found = make(spark, tmp_path_factory.mktemp("oracle"), 2_000, 2)
    yield found
    found.oracle.close()


def shown(lake: Lake, name: str) -> list[dict[str, Any]]:
    """A table as readers of Delta tables find it, without Spark."""
    version = lake.published().versions[name]
    dataset = DeltaTable(lake[name].path, version=version).to_pyarrow_dataset()
    wanted = said(TABLES[name].columns)
    columns = ", ".join(_plain(column, kind) for column, kind in wanted.items())
    with duckdb.connect() as base:
        base.register("found", dataset)
        rows = base.execute(f"select {columns} from found").fetchall()
    return [dict(zip(wanted, row, strict=True)) for row in rows]


def said(columns: Columns) -> dict[str, str]:
    return {
        name: one.type
        for name, one in columns.items()
        if one.type != "binary" and name not in UNSAID
    }


def _plain(name: str, kind: str) -> str:
    if kind == "timestamp":
        return f'epoch_ms("{name}")'
    return f"{name} - date '1970-01-01'" if kind == "date" else f'"{name}"'


def differences(made: Made, name: str) -> list[tuple[Any, ...]]:
    """Figures that are not what the oracle says: key, column, found, wanted."""
    keys = KEYS[name]
    found = {tuple(row[key] for key in keys): row for row in shown(made.lake, name)}
    told = made.oracle.rows(name)
    wanted = {tuple(row[key] for key in keys): row for row in told}
    assert wanted
    assert len(wanted) == len(told)
    assert found.keys() == wanted.keys()
    columns = said(TABLES[name].columns)
    assert all(row.keys() == columns.keys() for row in told)
    return [
        (key, column, found[key][column], value)
        for key, row in wanted.items()
        for column, value in row.items()
        if found[key][column] != _about(column, value)
    ]


def _about(column: str, value: Any) -> Any:
    if isinstance(value, float):
        # Sums of fractions are off by what their order makes of the last bit.
        return pytest.approx(value, rel=1e-9, abs=1e-9)
    if column == "jobs" and value > 1 << DISTINCT_LOG:
        return pytest.approx(value, rel=0.03)
    return value


def quantiles_off(spark: Any, made: Made, name: str) -> list[tuple[Any, ...]]:
    """Sketched quantiles whose rank is more than a hundredth off."""
    from pyspark.sql import functions as F

    sketch, values, where = SKETCHES[name]
    ranks = F.array(*map(F.lit, QUANTILES))
    merged = F.kll_merge_agg_bigint(sketch, F.lit(SKETCH_K))
    table = made.lake.read(spark, name)
    found = (
        table.groupBy("queue")
        .agg(merged.alias("whole"))
        .where("kll_sketch_get_n_bigint(whole) > 0")
        .select("queue", F.kll_sketch_get_quantile_bigint("whole", ranks).alias("at"))
        .collect()
    )
    assert found
    off = []
    for row in found:
        for quantile, value in zip(QUANTILES, row["at"], strict=True):
            of_queue = f"{where} and queue = '{row['queue']}'"
            less, not_greater = made.oracle.rank(values, of_queue, value)
            if not less - RANK_OFF <= quantile <= not_greater + RANK_OFF:
                off.append((row["queue"], quantile, value, less, not_greater))
    return off


@pytest.mark.parametrize("name", TABLES)
def test_every_figure_is_that_of_the_raw_events(made: Made, name: str) -> None:
    assert differences(made, name) == []


@pytest.mark.parametrize("name", SKETCHES)
def test_sketched_quantiles_have_the_rank_that_they_say(
    spark: Any, made: Made, name: str
) -> None:
    assert quantiles_off(spark, made, name) == []


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_every_figure_of_many_jobs_is_that_of_the_raw_events(
    spark: Any, tmp_path: Path
) -> None:
    many = make(spark, tmp_path, 200_000, 3)
    for name in TABLES:
        assert differences(many, name) == [], name
    for name in SKETCHES:
        assert quantiles_off(spark, many, name) == [], name
    many.oracle.close()
