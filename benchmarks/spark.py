"""The data pipeline: history to gold, the same tables by DuckDB, jobs through the sink,
and what live jobs notice of it.

The history is made up, so that its size can be chosen; the server that serves it, the
tables and the jobs are real. docs/benchmarks.md says how, and what is fair.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import history
from benchmarks.client import program
from benchmarks.figure import Figure, shown
from benchmarks.http import ADDRESS, READY_S, SERVE
from benchmarks.processes import cpu_s, descendants, started, wait_for_line

EVENTS_FLOOR, JOBS_FLOOR = 150_000, 50_000
GROWTH_MAX, LIVE_MAX = 1.3, 2.0
PER_BATCH = 8_000_000
IDLE_S = 1.0
"""An index that used less than a tenth of this in such a time has caught up."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Events and jobs of each part."""

    warm: int = PER_BATCH
    """Events that come before those that are measured: Java has compiled by then."""
    events: int = PER_BATCH
    small: int = 1_000_000
    large: int = 0
    """Events whose cost is held against that of the small ones; 0 for not measured."""
    jobs: int = 500_000
    live_s: float = 20


FULL = Sizes(large=50_000_000, jobs=1_000_000)


class Server(NamedTuple):
    address: str
    pid: int

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


class Ingested(NamedTuple):
    """What a run over one history took, batch by batch."""

    events: int
    batches: list[tuple[int, float]]
    """Events and seconds of each."""
    lake: Path

    def per_s(self, skipped: int = 0) -> float:
        """Without the batches in which these first events were."""
        events, seconds = 0, 0.0
        for count, took_s in self.batches:
            if skipped > 0:
                skipped -= count
                continue
            events += count
            seconds += took_s
        return events / seconds


def run(sizes: Sizes | None = None) -> list[Figure]:
    if sizes is None:
        sizes = FULL if os.environ.get("BENCH_FULL") == "1" else Sizes()
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as name:
        folder = Path(name)
        found = _told(_ingest_figures(folder / "ingest", sizes))
        found += _told([_sink_figure(folder / "sink", sizes)])
        return found + _told([_live_figure(folder / "live", sizes)])


def _told(figures: list[Figure]) -> list[Figure]:
    """It takes long: each figure is said as soon as it is known."""
    for one in figures:
        print(
            f"{one.name}: {shown(one.value)} {one.unit} ({one.note})", file=sys.stderr
        )
    return figures


def _ingest_figures(folder: Path, sizes: Sizes) -> list[Figure]:
    found = ingested(folder / "first", sizes.warm + sizes.events)
    skipped = sizes.warm - PER_BATCH // 2
    per_s = found.per_s(skipped)
    took_s = sizes.events / per_s
    duckdb_s = _duckdb_s(found.lake) * sizes.events / found.events
    figures = [
        Figure(
            "Spark, history to gold",
            per_s,
            "events/s",
            EVENTS_FLOOR,
            note=f"{sizes.events:,} events after {sizes.warm:,} others, batches of "
            f"{PER_BATCH:,}, local[{os.cpu_count()}]; first batch: "
            f"{found.batches[0][0] / found.batches[0][1]:,.0f}/s",
        ),
        Figure(
            "Spark to DuckDB, the same gold tables",
            took_s / duckdb_s,
            "x",
            note="time of Spark from history to gold by that of DuckDB from the bronze "
            "files to gold, without silver, sketches and commits",
        ),
    ]
    if sizes.large:
        small = ingested(folder / "small", sizes.small, per_batch=sizes.small)
        large = ingested(folder / "large", sizes.large)
        name = "Spark, cost of an event, many by few"
        note = f"{sizes.large:,} in one lake by {sizes.small:,} in one batch, both warm"
        ratio = small.per_s() / large.per_s(sizes.warm)
        figures.append(Figure(name, ratio, "x", ceiling=GROWTH_MAX, note=note))
    return figures


def ingested(folder: Path, count: int, per_batch: int = PER_BATCH) -> Ingested:
    """A server with so much history, and the pipeline over all of it."""
    from headway.spark.lake.lake import Lake
    from headway.spark.lake.published import Published
    from headway.spark.pipeline.run import Pipeline, Settings
    from headway.spark.session import session

    events = history.write(folder / "data" / "headway.db", count)
    lake = folder / "lake"
    batches: list[tuple[int, float]] = []
    with _served(folder) as server, _index_held(server.pid):
        settings = Settings(url=server.address, events_per_batch=per_batch)
        last = [0, time.perf_counter()]

        def published(record: Published) -> None:
            now_s = time.perf_counter()
            batches.append((record.events - int(last[0]), now_s - last[1]))
            last[:] = [record.events, now_s]

        Pipeline(session(), Lake(str(lake)), settings, published=published).run()
    return Ingested(events, batches, lake)


def _duckdb_s(lake: Path) -> float:
    """Seconds in which DuckDB makes all gold tables of a lake's bronze files."""
    from headway.spark.lake.lake import Lake
    from tests.spark.oracle import QUERIES, Oracle

    bronze = Lake(str(lake))["bronze.events"]
    files = ", ".join(f"'{bronze.path}/{one.path}'" for one in bronze.files())
    began_s = time.perf_counter()
    oracle = Oracle(
        "select * exclude (labels), event as number, job as seq,"
        ' limit_name as "limit", limit_value as "value", limit_parts as parts,'
        " split_part(text, chr(10), 1) as line"
        f" from read_parquet([{files}]) where type <> 'count'"
    )
    for table in QUERIES:
        oracle.rows(table)
    took_s = time.perf_counter() - began_s
    oracle.close()
    return took_s


def _sink_figure(folder: Path, sizes: Sizes) -> Figure:
    from headway.spark.session import session

    spark: Any = session()
    with _served(folder) as server:

        def write(count: int) -> float:
            frame = spark.range(0, count, 1, os.cpu_count() or 2).selectExpr(
                "'mail' as kind",
                "concat('t', id % 100) as tenant",
                "to_json(named_struct('id', id, 'to', 'someone@example.org')) as payload",
            )
            began_s = time.perf_counter()
            writer = frame.write.format("headway").option("url", server.address)
            writer.option("queue", "bulk").mode("append").save()
            return time.perf_counter() - began_s

        write(sizes.jobs // 10)
        _settled(server.pid)
        took_s = write(sizes.jobs)
    note = (
        f"{sizes.jobs:,} jobs, staged by {os.cpu_count()} tasks and published at once"
    )
    per_s = sizes.jobs / took_s
    return Figure(
        "Spark, jobs through the sink", per_s, "jobs/s", JOBS_FLOOR, note=note
    )


def _live_figure(folder: Path, sizes: Sizes) -> Figure:
    """Start latency of live jobs while a pipeline reads, by that without one."""
    folder.mkdir(parents=True)
    client = program.build(folder)
    history.write(folder / "data" / "headway.db", sizes.small)
    with _served(folder) as server:
        _settled(server.pid)

        def p99_ms() -> float:
            report = client.run(
                "latency", server.port, sizes.live_s, warmup=2, wait="10s"
            )
            return float(report["start"]["p99_ms"])

        alone_ms = p99_ms()
        command = [sys.executable, "-m", "headway.cli.main", "pipeline", "run"]
        told = ["--server", server.address, "--lake", str(folder / "lake"), "--quiet"]
        with started(
            [*command, *told, "--every", "1s"], folder / "pipeline.log"
        ) as one:
            _reads(one, folder / "lake")
            beside_ms = p99_ms()
    note = f"p99 {alone_ms:.2f} ms alone, {beside_ms:.2f} ms beside it; 1,000 jobs/s"
    ratio = beside_ms / alone_ms
    name = "start p99 of live jobs during ingest"
    return Figure(f"Spark, {name}", ratio, "x", ceiling=LIVE_MAX, note=note)


@contextmanager
def _served(folder: Path) -> Iterator[Server]:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    with started([*SERVE, str(folder / "data")], log) as process:
        found = ADDRESS.search(wait_for_line(process, log, "listens on", READY_S))
        assert found is not None
        yield Server(found[0], process.pid)


@contextmanager
def _index_held(pid: int) -> Iterator[None]:
    """A live server's index has read all events but the last; this one would begin to."""
    held: list[int] = []
    while not held:
        time.sleep(IDLE_S / 10)
        held = [one for one in descendants(pid) if _is_index(one)]
    for one in held:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in held:
            os.kill(one, signal.SIGCONT)


def _is_index(pid: int) -> bool:
    return b"headway.search" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _settled(pid: int) -> None:
    """Waits until the server's index has read what is there."""
    used_s = cpu_s(pid)
    while True:
        time.sleep(IDLE_S)
        now_s = cpu_s(pid)
        if now_s - used_s < IDLE_S / 10:
            return
        used_s = now_s


def _reads(pipeline: "subprocess.Popen[bytes]", lake: Path) -> None:
    """Waits until the pipeline has begun to write its first table."""
    while not list(lake.glob("bronze/events/*")):
        assert pipeline.poll() is None, "the pipeline has ended"
        time.sleep(0.1)
