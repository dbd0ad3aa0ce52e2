"""Tables that an older version made, written by this one, which knows more columns."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from headway.spark.columns import Column, Columns, arrow_schema
from headway.spark.errors import LakeFromFuture
from headway.spark.lake.delta import Place, Table

OLD: Columns = {"day": Column("date", "the day"), "starts": Column("bigint", "starts")}
NEW: Columns = {**OLD, "stops": Column("bigint", "stops")}


def staged(table: Table, number: int) -> list[AddAction]:
    """A file with one row, as Spark would have written it."""
    name = f"write={number}/day=2026-11-15/part-0.parquet"
    file = Path(table.path) / name
    file.parent.mkdir(parents=True)
    row = {"starts": [number], "stops": [2 * number]}
    kept = {key: value for key, value in row.items() if key in table.columns}
    schema = arrow_schema({key: table.columns[key] for key in kept})
    pq.write_table(pa.table(kept, schema=schema), file)
    return [
        AddAction(name, file.stat().st_size, {"day": "2026-11-15"}, 0, True, "{}"),
    ]


def test_a_column_that_is_new_to_a_table_is_read_by_all(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    old = Table(place, "gold.some", OLD, ("day",))
    old.commit(staged(old, 1), batch=("test", 1))
    new = Table(place, "gold.some", NEW, ("day",))
    new.check()
    version = new.commit(staged(new, 2), batch=("test", 2))
    assert version == new.version()
    rows = DeltaTable(new.path, version=version).to_pyarrow_table().to_pylist()
    told = [(row["starts"], row["stops"]) for row in rows]
    assert sorted(told, key=str) == [(1, None), (2, 4)]
    with pytest.raises(LakeFromFuture, match="stops"):
        old.check()


def test_columns_that_are_there_are_not_added_again(tmp_path: Path) -> None:
    table = Table(Place(str(tmp_path)), "gold.some", NEW, ("day",))
    versions = [table.commit(staged(table, n), batch=("test", n)) for n in (1, 2, 3)]
    assert versions == [0, 1, 2]
