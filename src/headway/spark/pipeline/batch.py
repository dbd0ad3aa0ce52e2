"""One batch: from events to tables, step by step, and the record that publishes it."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from deltalake.transaction import AddAction

from headway.spark import silver
from headway.spark.errors import GateClosed
from headway.spark.gold import shared
from headway.spark.gold.all import CONDITIONS, GOLD, VIEWS
from headway.spark.gold.fairness import WEIGHTS
from headway.spark.gold.table import DAY, Facts, Gold, View
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Published
from headway.spark.pipeline import gates
from headway.spark.source.staging import BRONZE, REST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APPLICATION: Final = "headway-pipeline"
_AT_A_TIME: Final = 4
"""Gold tables that are made at the same time."""
_DAY_MS: Final = 86_400_000
_EPOCH: Final = date(1970, 1, 1)
Tell = Callable[[str], None]
"""Hears of each step when it is about to be taken."""


class Staged(msgspec.Struct):
    """Files that a batch brings to a table, and those that they stand for."""

    adds: list[AddAction]
    removes: list[AddAction] = []


class Batch:
    """Takes the steps. Nothing of it is seen before the last one is taken."""

    def __init__(
        self,
        spark: "SparkSession",
        lake: Lake,
        before: Published,
        tell: Tell,
        mark: Callable[[str, int], str] | None = None,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._before = before
        self._tell = tell
        self._mark = mark
        """Tells what commit a partition's event belongs to."""
        self._staged: dict[str, Staged] = {}
        self._cached: list[DataFrame] = []

    def run(self, files: dict[str, list[AddAction]]) -> Published | None:
        """The record of the batch, published; None if it brought nothing new.

        `files` are staged already, by table: of its events, of jobs and attempts that
        are whole in them, and of the events of the other jobs.
        """
        bronze = self._lake[BRONZE]
        if BRONZE not in files:
            return None
        rest = files.pop(REST, [])
        self._staged = {name: Staged(adds) for name, adds in files.items()}
        events = bronze.frame(self._spark, files[BRONZE])
        record = self.made(events, bronze.frame(self._spark, rest))
        self._tell("publish")
        self._lake.ledger.publish(record)
        self._tell("published")
        bronze.forget(rest)
        return record

    def made(self, events: "DataFrame", rest: "DataFrame | None" = None) -> Published:
        """All tables of these events but bronze, committed; the record says so.

        `rest` are those whose jobs are not in the tables already: all, if left out.
        Nobody sees the tables before the record, or a later one, is published.
        """
        try:
            return self._made(events, events if rest is None else rest)
        finally:
            for frame in self._cached:
                frame.unpersist()

    def _made(self, events: "DataFrame", rest: "DataFrame") -> Published:
        before = self._before
        self._tell("check events")
        tallies = gates.tallies(events, CONDITIONS)
        reads = gates.continuity(tallies, before.vector)
        whole = [
            name
            for name, read in reads.items()
            if read.first == 1 or _is_whole(before, name)
        ]
        self._tell("check counts")
        told = gates.counted(events)
        counts = gates.conservation(tallies, told, before.counts, whole)
        facts = self._facts(events, *self._stage_silver(rest, whole))
        holding = {None, *gates.found(tallies, CONDITIONS)}
        changed = [gold for gold in GOLD if gold.condition in holding]
        self._stage_all_gold(changed, facts, _days(reads.values()))
        return Published(
            batch=before.batch + 1,
            at_ms=max([before.at_ms, *(read.at_ms for read in reads.values())]),
            vector={
                **before.vector,
                **{name: read.before for name, read in reads.items()},
            },
            marks=self._marks(reads),
            versions=self._commit(),
            counts=counts,
            events=before.events
            + sum(read.before - read.first for read in reads.values()),
        )

    def _marks(self, reads: dict[str, gates.Read]) -> dict[str, str]:
        marks = dict(self._before.marks)
        if self._mark is not None:
            for name, read in reads.items():
                marks[name] = self._mark(name, read.before - 1)
        return marks

    def _stage_silver(
        self, events: "DataFrame", whole: list[str]
    ) -> tuple["DataFrame", "DataFrame"]:
        """The jobs and the attempts that ended, those that were staged already too."""
        table = self._lake["silver.open_jobs"]
        buckets = [
            row[0]
            for row in events.where("job is not null")
            .selectExpr(f"job div {silver.BUCKET}")
            .distinct()
            .collect()
        ]
        carried = self._committed("silver.open_jobs", {"bucket": buckets})
        known = self._cache(silver.merged(events, table.frame(self._spark, carried)))
        self._tell("check jobs")
        broken = gates.illegal(known, whole)
        try:
            gates.refuse(broken)
        except GateClosed:
            self._quarantine(events, broken)
            raise
        ended, still = silver.jobs(known)
        self._stage("silver.open_jobs", still, carried)
        files = self._stage("silver.jobs", ended)
        jobs = self._lake["silver.jobs"].frame(self._spark, files)

        carried = self._committed("silver.open_leases")
        before = self._lake["silver.open_leases"].frame(self._spark, carried)
        leases = silver.open_leases(events, before, known, buckets)
        self._stage("silver.open_leases", leases.coalesce(1), carried)
        files = self._stage("silver.attempts", silver.attempts(events, before))
        return jobs, self._lake["silver.attempts"].frame(self._spark, files)

    def _facts(
        self, events: "DataFrame", jobs: "DataFrame", attempts: "DataFrame"
    ) -> Facts:
        weights = self._lake[WEIGHTS.name]
        return Facts(
            events,
            jobs,
            attempts,
            flow=self._cache(shared.flow(events)),
            work=self._cache(shared.work(attempts)),
            told=self._cache(shared.told_weights(events)),
            promised=self._cache(shared.promised(events)),
            weights=weights.frame(self._spark, self._committed(WEIGHTS.name)),
        )

    def _stage_all_gold(
        self, changed: list[Gold], facts: Facts, days: list[date]
    ) -> None:
        """Side by side: most of them are small, and of those planning is the cost."""
        from pyspark import inheritable_thread_target

        def stage(gold: Gold) -> None:
            self._stage_gold(gold, facts, days)

        # Or a stream that is stopped would not stop these.
        stage_as_here = inheritable_thread_target(self._spark)(stage)
        with ThreadPoolExecutor(_AT_A_TIME, "headway-gold") as threads:
            list(threads.map(stage_as_here, changed))

    def _stage_gold(self, gold: Gold, facts: Facts, days: list[date]) -> None:
        table = self._lake[gold.name]
        new = gold.rows(facts)
        if not gold.is_by_event:
            new = self._cache(new)
            days = [row[0] for row in new.select(DAY).distinct().collect()]
        if not days:
            return
        carried = self._committed(gold.name, {DAY: days})
        known = table.frame(self._spark, carried)
        rows = gold.added(known, new)
        files = self._stage(gold.name, rows.coalesce(1), carried)
        for view in VIEWS:
            if view.of == gold.name:
                whole = table.frame(self._spark, files)
                self._stage_view(view, whole, days)

    def _stage_view(self, view: View, whole: "DataFrame", days: list[date]) -> None:
        carried = self._committed(view.name, {DAY: days})
        self._stage(view.name, view.rows(whole).coalesce(1), carried)

    def _committed(
        self, name: str, where: dict[str, Any] | None = None
    ) -> list[AddAction]:
        """The files of a table as it was published."""
        version = self._before.versions.get(name)
        return [] if version is None else self._lake[name].files(version, where)

    def _stage(
        self, name: str, frame: "DataFrame", removes: list[AddAction] | None = None
    ) -> list[AddAction]:
        """All files that the batch brings to this table."""
        self._tell(f"write {name}")
        staged = self._staged.setdefault(name, Staged([]))
        staged.adds += self._lake[name].stage(frame)
        staged.removes += removes or []
        return staged.adds

    def _commit(self) -> dict[str, int | None]:
        versions = dict(self._before.versions)
        batch = APPLICATION, self._before.batch + 1
        for name in self._lake.tables:
            staged = self._staged.get(name, Staged([]))
            if not staged.adds and not staged.removes:
                continue
            self._tell(f"commit {name}")
            versions[name] = self._lake[name].commit(
                staged.adds, removes=staged.removes, batch=batch
            )
        return versions

    def _cache(self, frame: "DataFrame") -> "DataFrame":
        self._cached.append(frame.persist())
        return frame

    def _quarantine(self, events: "DataFrame", broken: "DataFrame") -> None:
        """Keeps the events of jobs that broke a rule, with the rule."""
        from pyspark.sql import functions as F

        table = self._lake.quarantine
        keys = ["partition", "job", "generation"]
        rules = broken.select(*keys, "broken")
        rows = (
            events.join(F.broadcast(rules), keys)
            .withColumn("batch", F.lit(self._before.batch + 1))
            .withColumn("quarantined_at", F.timestamp_millis(F.lit(_now_ms())))
        )
        table.commit(table.stage(rows), batch=(APPLICATION, self._before.batch + 1))


def _days(reads: Iterable[gates.Read]) -> list[date]:
    """The days on which the events happened."""
    days = set()
    for read in reads:
        first, last = read.since_ms // _DAY_MS, read.at_ms // _DAY_MS
        days |= {_EPOCH + timedelta(days=day) for day in range(first, last + 1)}
    return sorted(days)


def _is_whole(before: Published, partition: str) -> bool:
    return all(one.is_whole for one in before.counts.get(partition, {}).values())


def _now_ms() -> int:
    return int(time.time() * 1_000)
