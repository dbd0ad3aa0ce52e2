"""What a task makes of its range: files, and the same rows however it holds them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.history import chapters
from headway.core import events as told
from headway.spark import decode
from headway.spark.lake.delta import Place
from headway.spark.source import staging
from headway.spark.source.lives import lives
from headway.wire.history import Commit

EVENTS = 60_000


def commits() -> Iterator[Commit]:
    """A made-up history: jobs come and end all the time, thousands are under way."""
    for segment in chapters(EVENTS):
        yield Commit(segment.first, segment.count, segment.at_ms, segment.blob)


def decoded() -> Iterator[list[pa.RecordBatch]]:
    return decode.piles("p1", commits(), 1, EVENTS + 1)


def written(root: Path, told: Iterable[list[pa.RecordBatch]]) -> dict[str, pa.Table]:
    """All rows of the files, by table."""
    found = {}
    for row in staging.staged(str(root), told):
        (one,) = row.to_pylist()
        path = Path(Place(str(root)).table(staging.home(one["table"]))) / one["path"]
        assert path.stat().st_size == one["size"]
        table = pq.ParquetFile(path).read()
        assert msgspec.json.decode(one["stats"])["numRecords"] == table.num_rows
        assert one["table"] not in found
        found[one["table"]] = table
    return found


def in_order(table: pa.Table, name: str) -> pa.Table:
    return table.sort_by([(name, "ascending")])


ORDERS = {"bronze.events": "event", "silver.jobs": "job", "silver.attempts": "token"}


def test_a_task_that_holds_less_at_a_time_writes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = written(tmp_path / "whole", decoded())
    monkeypatch.setattr(decode, "ROWS", 5_000)
    monkeypatch.setattr(staging, "CHUNK", EVENTS // 2)
    in_parts = written(tmp_path / "parts", decoded())
    assert at_once.keys() == in_parts.keys() == {*ORDERS, "rest"}
    assert at_once["silver.jobs"].num_rows > EVENTS // 20
    for table, name in {**ORDERS, "rest": "event"}.items():
        assert in_order(in_parts[table], name) == in_order(at_once[table], name)


def test_what_is_never_whole_does_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []

    def watched(by_type: Any, before: pa.Table) -> Any:
        held.append(before.num_rows)
        return lives(by_type, before)

    monkeypatch.setattr(decode, "ROWS", 500)
    begins = [
        [one for one in pile if one.column("type")[0].as_py() == "enqueue"]
        for pile in decoded()
    ]
    monkeypatch.setattr(staging, "lives", watched)
    monkeypatch.setattr(staging, "CHUNK", 1_000)
    found = written(tmp_path, begins)
    assert found["rest"].num_rows == sum(len(one) for pile in begins for one in pile)
    assert len(held) > 10
    assert max(held) <= 1_000


WHOSE: Any = {"queue": "mail", "slo_ms": 1_000, "tenant": "t", "kind": "k"}


def enqueue(seq: int) -> told.Enqueued:
    job: Any = {"seq": seq, "generation": 0, **WHOSE}
    return told.Enqueued(at_ms=1, **job, run_at_ms=1, priority=1, cost=1)


def life(seq: int, *between: str) -> Iterator[Any]:
    job: Any = {"seq": seq, "generation": 0, **WHOSE}
    lease: Any = {"worker": "w", "wait_ms": 0, "held_ms": 0, "lease_until_ms": 9}
    yield enqueue(seq)
    yield told.Leased(at_ms=2, **job, attempt=1, token=seq, **lease)
    if "extend" in between:
        yield told.Extended(at_ms=3, **job, lease_until_ms=9)
    yield told.Acked(at_ms=4, **job, attempt=1, run_ms=2, token=seq)


def test_a_job_that_is_whole_has_all_of_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened = [*life(7), *life(8, "extend")]
    blob = msgspec.msgpack.encode([0, {}, happened])
    monkeypatch.setattr(staging, "CHUNK", 1)
    found = written(
        tmp_path, decode.piles("p1", [Commit(1, len(happened), 4, blob)], 1, 9)
    )
    assert found["silver.jobs"].column("job").to_pylist() == [7, 8]
    assert "rest" not in found


def test_a_job_knows_its_schedule_though_its_tick_is_of_the_next_task() -> None:
    tick = told.Ticked(at_ms=1, queue="mail", schedule="daily", tick_ms=1, seq=7)
    commit = Commit(1, 2, 1, msgspec.msgpack.encode([0, {}, [enqueue(7), tick]]))
    for before in (2, 3):
        ((first, *_),) = decode.piles("p1", [commit], 1, before)
        (row,) = first.to_pylist()
        assert (row["type"], row["event"]) == ("enqueue", 1)
        assert (row["schedule"], row["tick_ms"]) == ("daily", 1)
    ((second,),) = decode.piles("p1", [commit], 2, 3)
    assert second.column("type").to_pylist() == ["tick"]
