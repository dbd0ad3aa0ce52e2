"""Points of a grid as tasks of Spark: one for each partition, in any number of them."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from headway.sim.plan.outcome import Outcome
from headway.sim.plan.recorded import AttemptRow, JobRow
from headway.sim.plan.recording import Happened, Recording, look_back
from headway.sim.plan.replay import Point, replay, simulate
from headway.sim.scenario import Scenario
from headway.spark.errors import failure_of
from headway.spark.lake.delta import filesystem
from headway.spark.plan.traffic import Traffic, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS: Final = 20_000
"""Jobs that a replay reads at one go."""
POLL_S: Final = 0.25

Tell = Callable[[int, int], None]
"""Told how many points are done, and of how many."""


class Source(msgspec.Struct, frozen=True):
    """Where the jobs of every point come from: recorded traffic, or a scenario."""

    recording: Recording | None = None
    path: str = ""
    scenario: Scenario | None = None


def run_point(source: Source, point: Point) -> Outcome:
    """What an executor does with a point."""
    if source.recording is not None:
        return replay(source.recording, read_jobs(source.path), point)
    assert source.scenario is not None
    return simulate(source.scenario, point)


def read_jobs(path: str) -> Iterator[JobRow]:
    """The jobs in the order in which they were written, a few thousand at a time."""
    files, _ = filesystem(path)
    for name in files_of(path):
        with files.open_input_file(name) as opened:
            for batch in pq.ParquetFile(opened).iter_batches(ROWS):
                yield from _rows(batch)


def happened(spark: "SparkSession", traffic: Traffic) -> Happened:
    """Looks back on what really happened, on an executor."""
    source = msgspec.json.encode(Source(traffic.recording, traffic.path))

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            given = msgspec.json.decode(source, type=Source)
            assert given.recording is not None
            found = look_back(given.recording, read_jobs(given.path))
            yield _told(batch.column(0).to_pylist(), [msgspec.json.encode(found)])

    (row,) = _collected(spark.range(0, 1, 1, 1).mapInArrow(work, _SCHEMA))
    return msgspec.json.decode(row["told"], type=Happened)


def run_points(
    spark: "SparkSession", source: Source, points: list[Point], tell: Tell | None = None
) -> list[Outcome]:
    """The outcomes in the order of the points, whoever ran them."""
    packed = msgspec.json.encode(source)
    wanted = [msgspec.json.encode(point) for point in points]

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                given = msgspec.json.decode(packed, type=Source)
                point = msgspec.json.decode(wanted[place], type=Point)
                outcome = run_point(given, point)
                yield _told([place], [msgspec.json.encode(outcome)])

    count = len(points)
    frame = spark.range(0, count, 1, max(1, count)).mapInArrow(work, _SCHEMA)
    rows = _collected(frame) if tell is None else _watched(spark, frame, count, tell)
    found = {row["id"]: row["told"] for row in rows}
    return [msgspec.json.decode(found[n], type=Outcome) for n in range(count)]


_SCHEMA: Final = "id bigint, told binary"


def _told(places: list[int], told: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(places, pa.int64()), pa.array(told, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, ["id", "told"])


def _collected(frame: "DataFrame") -> list[Any]:
    from pyspark.errors import PySparkException

    try:
        return list(frame.collect())
    except PySparkException as error:
        raise failure_of(error) from error


def _watched(
    spark: "SparkSession", frame: "DataFrame", count: int, tell: Tell
) -> list[Any]:
    """Collects in a thread, and tells how many tasks are done meanwhile."""
    tracker = spark.sparkContext.statusTracker()
    with ThreadPoolExecutor(1) as threads:
        rows = threads.submit(_collected, frame)
        while True:
            try:
                found = rows.result(POLL_S)
            except NotYet:
                stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
                done = sum(stage.numCompletedTasks for stage in stages if stage)
                tell(min(done, count), count)
            else:
                tell(count, count)
                return found


def _rows(batch: pa.RecordBatch) -> Iterator[JobRow]:
    columns = batch.to_pydict()
    names = [name for name in JobRow.__struct_fields__ if name != "attempts"]
    plain = zip(*(columns[name] for name in names), strict=True)
    for values, attempts in zip(plain, columns["attempts"], strict=True):
        row = JobRow(*values)
        # Arrow tells a map as pairs.
        row.labels = dict(row.labels) if row.labels else None
        row.attempts = [_attempt(one) for one in attempts or ()]
        yield row


def _attempt(told: dict[str, Any]) -> AttemptRow:
    return AttemptRow(**{name: told[name] for name in AttemptRow.__struct_fields__})
