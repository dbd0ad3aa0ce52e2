"""What keeps a lake in shape: silver and gold made anew, small files joined, old ones
removed. A reader sees none of it before it is published, and nothing of it half.
"""

import time
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable
from msgspec.structs import replace

from headway.spark.errors import NoLake
from headway.spark.lake.delta import Table
from headway.spark.lake.lake import Lake
from headway.spark.lake.published import Published
from headway.spark.pipeline.batch import APPLICATION, Batch, Tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRONZE: Final = "bronze.events"
APPENDED: Final = (BRONZE, "silver.jobs", "silver.attempts")
"""Tables that only grow, by small files if batches are small."""
SMALL_BYTES: Final = 32 << 20
GOOD_BYTES: Final = 128 << 20
HOUR_MS: Final = 3_600_000


def rebuild(
    spark: "SparkSession", lake: Lake, from_ms: int, tell: Tell = lambda _: None
) -> Published:
    """Makes silver and gold anew from bronze, from the batch before this time on.

    Published once, at the end: whoever reads meanwhile sees what was there before.
    """
    records = lake.ledger.all()
    if not records:
        raise NoLake(f"nothing is published in {lake.place.root}")
    newest = records[-1]
    lake.heal(newest)
    base = _before(lake, records, from_ms)
    for name, table in lake.tables.items():
        if name != BRONZE:
            table.restore(base.versions.get(name))
    bronze = lake[BRONZE].read(spark, newest.versions[BRONZE])
    record = base
    record.versions[BRONZE] = newest.versions[BRONZE]
    for cut in _cuts(records, base):
        tell(f"rebuild to {max(cut.values())}")
        events = bronze.where(_between(record.vector, cut))
        record = Batch(spark, lake, record, tell).made(events)
    record = replace(record, batch=newest.batch + 1)
    tell("publish")
    lake.ledger.publish(record)
    return record


def _before(lake: Lake, records: list[Published], from_ms: int) -> Published:
    """The last record before this time whose tables can still be read."""
    for record in reversed(records):
        if record.at_ms < from_ms and _is_there(lake, record):
            return record
    return Published()


def _is_there(lake: Lake, record: Published) -> bool:
    return all(
        version is None or lake[name].has(version)
        for name, version in record.versions.items()
        if name != BRONZE and name in lake.tables
    )


def _cuts(records: list[Published], base: Published) -> list[dict[str, int]]:
    """Where the batches ended that come after, each only once."""
    cuts = []
    last = dict(base.vector)
    for record in records:
        if any(record.vector[name] > last.get(name, 1) for name in record.vector):
            cuts.append(record.vector)
            last = record.vector
    return cuts


def _between(after: dict[str, int], cut: dict[str, int]) -> str:
    """Events up to this cut that are not in the tables yet."""
    # Names of partitions are letters, digits, - and _ only: the server sees to that.
    parts = [
        f"(partition = '{name}' and event >= {after.get(name, 1)} and event < {before})"
        for name, before in cut.items()
    ]
    return " or ".join(parts)


def compact(
    spark: "SparkSession", lake: Lake, tell: Tell = lambda _: None
) -> Published:
    """Joins small files of the tables that only grow; answers the new record."""
    before = lake.published()
    lake.heal(before)
    versions = dict(before.versions)
    for name in APPENDED:
        table = lake[name]
        small = [one for one in table.files() if one.size < SMALL_BYTES]
        if len(small) < 2:
            continue
        tell(f"compact {name}: {len(small)} files")
        count = 1 + sum(one.size for one in small) // GOOD_BYTES
        adds = table.stage(table.frame(spark, small).coalesce(count))
        versions[name] = table.commit(
            adds, removes=small, batch=(APPLICATION, before.batch + 1)
        )
    if versions == before.versions:
        return before
    record = replace(before, batch=before.batch + 1, versions=versions)
    lake.ledger.publish(record)
    return record


def vacuum(lake: Lake, keep_hours: int, *, is_dry: bool = False) -> dict[str, int]:
    """Removes files that no batch of the last hours is made of; answers how many.

    The newest batch is always kept.
    """
    records = lake.ledger.all()
    if not records:
        raise NoLake(f"nothing is published in {lake.place.root}")
    since_ms = time.time() * 1_000 - keep_hours * HOUR_MS
    kept = [record for record in records[:-1] if record.at_ms >= since_ms]
    removed = {}
    for name, table in lake.tables.items():
        versions = {record.versions.get(name) for record in [*kept, records[-1]]}
        gone = _vacuum(table, [one for one in versions if one is not None], is_dry)
        if gone:
            removed[name] = gone
    return removed


def _vacuum(table: Table, versions: list[int], is_dry: bool) -> int:
    opened: DeltaTable | None = table.opened()
    if opened is None or not versions:
        return 0
    gone = opened.vacuum(
        retention_hours=0,
        dry_run=is_dry,
        enforce_retention_duration=False,
        keep_versions=versions,
        full=True,
    )
    return len(gone)
